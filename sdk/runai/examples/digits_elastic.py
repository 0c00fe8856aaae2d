"""Handwritten digits with Keras, on as many GPUs as the scheduler gives, which changes at any time.

Each start reads how many GPUs there are and goes on from the checkpoint. An update always sees 256
samples: `runai.elastic` accumulates more batches where there are fewer GPUs.

    pip install tensorflow scikit-learn ./sdk/python ./sdk/runai
    runai submit digits -g 1 --elastic --command -- python3 digits_elastic.py
"""

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

import elastane
import runai.elastic.keras

FOLDER = os.environ.get("ELASTANE_CHECKPOINT_DIR", "checkpoint")
CHECKPOINT = os.path.join(FOLDER, "digits.weights.h5")
TRAIN = 1500  # of 1,797 images
SEED = 7


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=240, help="in all")
    parser.add_argument("--save-every", type=int, default=10, metavar="UPDATES")
    parser.add_argument("--slow", type=float, default=0, help="s a batch of a simulated GPU takes")
    options = parser.parse_args()

    runai.elastic.keras.init(global_batch_size=256, max_gpu_batch_size=64)
    with devices(runai.elastic.gpus).scope():
        model = build()
        if os.path.exists(CHECKPOINT):
            model.load_weights(CHECKPOINT)  # with what the optimizer knows
        done = int(keras.ops.convert_to_numpy(model.optimizer.iterations))
    tell_start(done)

    images, labels = digits()
    if done < options.updates:
        # The order follows from the seed: the samples that were seen are skipped.
        train = tf.data.Dataset.from_tensor_slices((images[:TRAIN], labels[:TRAIN]))
        train = train.shuffle(TRAIN, seed=SEED).repeat()
        train = train.skip(done * runai.elastic.effective_batch_size)
        model.fit(
            train.batch(runai.elastic.batch_size),
            steps_per_epoch=options.updates - done,
            callbacks=[Checkpoints(done, options)],
            shuffle=False,
            verbose=0,
        )
    outputs = model.predict(images[TRAIN:], verbose=0)
    right = int(np.sum(outputs.argmax(axis=1) == labels[TRAIN:]))
    print(f"accuracy {right / len(outputs):.2f}: {right} of {len(outputs)} new images", flush=True)


def digits():
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(images))
    return (images[order] / 16).astype("float32"), labels[order]


def devices(gpus):
    """Where the model runs. Parts of the CPU stand in for simulated GPUs."""
    if gpus == 1:
        return tf.distribute.get_strategy()
    if tf.config.list_physical_devices("GPU"):
        return tf.distribute.MirroredStrategy()
    parts = [tf.config.LogicalDeviceConfiguration()] * gpus
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], parts)
    return tf.distribute.MirroredStrategy([f"CPU:{part}" for part in range(gpus)])


def build():
    keras.utils.set_random_seed(SEED)
    layers = [keras.Input((64,)), keras.layers.Dense(128, "relu"), keras.layers.Dense(10)]
    model = runai.elastic.keras.models.Model(keras.Sequential(layers))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss=loss)
    model.optimizer.build(model.trainable_variables)
    return model


def tell_start(done):
    before = os.environ.get("ELASTANE_RESIZED_FROM")
    resized = f"resized from {before} to" if before else "on"
    batches = f"{runai.elastic.steps} batches of {runai.elastic.batch_size} on each"
    print(f"{resized} {runai.elastic.gpus} GPU(s), {batches}: after update {done}", flush=True)


class Checkpoints(keras.callbacks.Callback):
    """Saves now and then, and before the workload is stopped, moved or resized."""

    def __init__(self, done, options):
        super().__init__()
        self.done, self.options = done, options

    def on_train_batch_end(self, batch, logs=None):
        self.done += 1
        time.sleep(self.options.slow * runai.elastic.steps)
        wanted_for = elastane.save_wanted()
        if wanted_for or self.done % self.options.save_every == 0:
            os.makedirs(FOLDER, exist_ok=True)
            new = os.path.join(FOLDER, "new.weights.h5")
            self.model.save_weights(new)
            os.replace(new, CHECKPOINT)
            print(f"update {self.done} is saved, mean loss {logs['loss']:.3f}", flush=True)
            elastane.checkpoint(CHECKPOINT, step=self.done)
            time.sleep(wanted_for)  # meanwhile it is stopped


if __name__ == "__main__":
    main()
