"""Models of Keras that accumulate. Owns: what `compile` and `fit` do differently, and the step that
computes a batch in pieces. Does not know about: the numbers, which are in `runai.elastic`."""

import keras
import tensorflow as tf

import runai.elastic


def Model(model):
    """The same model: `fit` takes `runai.elastic.batch_size`, which is the batch of one GPU and
    step, and updates once in `runai.elastic.steps` of them.

    A batch of Keras is a whole update then: its steps, metrics and schedules of a learning rate
    count updates, and the optimizer has the same variables with any number of GPUs, so that a
    checkpoint of one size can be loaded with another.
    """
    compile_, fit = model.compile, model.fit

    def compile(optimizer, *args, **kwargs):
        if isinstance(optimizer, str):
            raise ValueError(
                f"optimizer {optimizer!r} is a name: give an object, like keras.optimizers.SGD()"
            )
        if runai.elastic.steps is None:
            raise RuntimeError("call runai.elastic.keras.init(...) before compile")
        if runai.elastic.steps > 1:
            if type(model).train_step is not keras.Model.train_step:
                raise RuntimeError("the model has a train_step of its own: accumulate in that")
            model.train_step = lambda data: _train_step(model, runai.elastic.steps, data)
        return compile_(optimizer, *args, **kwargs)

    def fit_with_all_gpus(
        x=None, *args, batch_size=None, validation_batch_size=None, **kwargs
    ):
        replicas = _replicas(model)
        if replicas != runai.elastic.gpus:
            raise RuntimeError(
                f"the model is on {replicas} of {runai.elastic.gpus} GPUs: build it inside "
                "tf.distribute.MirroredStrategy().scope()"
            )
        if batch_size is not None:
            # Keras counts the batch of all GPUs together.
            validation_batch_size = validation_batch_size or batch_size * replicas
            batch_size *= replicas * runai.elastic.steps
        elif isinstance(x, tf.data.Dataset):
            x = x.rebatch(runai.elastic.effective_batch_size)
        elif runai.elastic.steps > 1:
            raise ValueError(
                f"{runai.elastic.steps} batches are to be accumulated: give a tf.data.Dataset, "
                "or arrays with batch_size=runai.elastic.batch_size"
            )
        sizes = dict(batch_size=batch_size, validation_batch_size=validation_batch_size)
        return fit(x, *args, **sizes, **kwargs)

    model.compile = compile
    model.fit = fit_with_all_gpus
    return model


def _replicas(model):
    strategy = getattr(model, "distribute_strategy", None)
    return strategy.num_replicas_in_sync if strategy is not None else 1


def _train_step(model, steps, data):
    """One update with what this GPU has of a batch, computed in so many pieces."""
    x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
    samples = tf.shape(keras.tree.flatten(x)[0])[0]
    variables = model.trainable_weights
    sums = [None] * len(variables)
    for step in range(steps):
        # With fewer samples than steps, some pieces have one that does not count.
        start, end = step * samples // steps, (step + 1) * samples // steps
        part = tf.math.divide_no_nan(tf.cast(end - start, tf.float32), tf.cast(samples, tf.float32))
        piece = slice(start, tf.maximum(end, start + 1))
        # One piece after the other: a GPU has not the memory for all of them.
        with tf.control_dependencies([total for total in sums if total is not None]):
            cut = [_cut(of, piece) for of in (x, y, weight)]
            gradients = _gradients(model, variables, end - start, *cut)
        for index, gradient in enumerate(gradients):
            if gradient is not None:
                gradient = tf.convert_to_tensor(gradient)
                scaled = tf.math.multiply_no_nan(gradient, tf.cast(part, gradient.dtype))
                sums[index] = scaled if sums[index] is None else sums[index] + scaled
    model.optimizer.apply(sums, variables)
    return model.get_metrics_result()


def _cut(tensors, piece):
    return keras.tree.map_structure(lambda of: None if of is None else of[piece], tensors)


def _gradients(model, variables, samples, x, y, weight):
    with tf.GradientTape() as tape:
        outputs = model(x, training=True)
        loss = model.compute_loss(x=x, y=y, y_pred=outputs, sample_weight=weight, training=True)
        scaled = model.optimizer.scale_loss(loss)
    # As Keras counts it: the mean over the samples of all GPUs.
    model.metrics[0].update_state(loss * _replicas(model), sample_weight=samples)
    model.compute_metrics(x, y, outputs, sample_weight=weight)
    return tape.gradient(scaled, variables)
