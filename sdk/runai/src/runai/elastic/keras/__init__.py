"""Elastic training with Keras. Owns: counting GPUs. Does not know about: how a model runs on several
GPUs; build it inside `tf.distribute.MirroredStrategy().scope()`."""

import runai.elastic

from . import models

__all__ = ["init", "models"]


def init(global_batch_size, max_gpu_batch_size, gpus=None):
    """Sets the numbers of `runai.elastic`; `gpus` is how many the machine has, if not given."""
    if gpus is None:
        gpus = runai.elastic.gpus_of_the_machine()
    if gpus < 1:
        raise ValueError(f"gpus is {gpus}: nvidia-smi shows none; give gpus=1 to train on the CPU")
    runai.elastic._init(global_batch_size, max_gpu_batch_size, gpus)
