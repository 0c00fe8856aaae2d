"""Models of Keras that accumulate. Owns: what `compile` and `fit` do differently. Does not know
about: the numbers, which are in `runai.elastic`."""

import runai.elastic


def Model(model):
    """The same model: `compile` makes its optimizer accumulate `runai.elastic.steps` batches, and
    `fit` takes `runai.elastic.batch_size`, which is the batch of one GPU."""
    compile_, fit = model.compile, model.fit

    def compile(optimizer, *args, **kwargs):
        if isinstance(optimizer, str):
            raise ValueError(
                f"optimizer {optimizer!r} is a name: give an object, like keras.optimizers.SGD()"
            )
        if runai.elastic.steps is None:
            raise RuntimeError("call runai.elastic.keras.init(...) before compile")
        if runai.elastic.steps > 1:
            from runai.ga.keras.optimizers import Optimizer

            optimizer = Optimizer(optimizer, runai.elastic.steps)
        return compile_(optimizer, *args, **kwargs)

    def fit_with_all_gpus(*args, batch_size=None, **kwargs):
        replicas = _replicas(model)
        if replicas != runai.elastic.gpus:
            raise RuntimeError(
                f"the model is on {replicas} of {runai.elastic.gpus} GPUs: build it inside "
                "tf.distribute.MirroredStrategy().scope()"
            )
        # Keras counts the batch of all GPUs together.
        batch_size = None if batch_size is None else batch_size * replicas
        return fit(*args, batch_size=batch_size, **kwargs)

    model.compile = compile
    model.fit = fit_with_all_gpus
    return model


def _replicas(model):
    strategy = getattr(model, "distribute_strategy", None)
    return strategy.num_replicas_in_sync if strategy is not None else 1
