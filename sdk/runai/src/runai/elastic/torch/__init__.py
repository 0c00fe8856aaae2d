"""Elastic training with PyTorch. Owns: counting GPUs. Does not know about: the model; wrap the
optimizer with `runai.ga.torch.optim.Optimizer(optimizer, runai.elastic.steps)`."""

import runai.elastic


def init(global_batch_size, max_gpu_batch_size, gpus=None):
    """Sets the numbers of `runai.elastic`; `gpus` is how many PyTorch sees, if not given."""
    if gpus is None:
        import torch

        gpus = torch.cuda.device_count()
    if gpus < 1:
        raise ValueError(f"gpus is {gpus}: PyTorch sees none; give gpus=1 to train on the CPU")
    runai.elastic._init(global_batch_size, max_gpu_batch_size, gpus)
