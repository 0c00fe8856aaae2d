"""Trains each model of `forms` in this process and prints a line of JSON for each: name, loss and accuracy
before and after, warnings. Which Keras it is follows TF_USE_LEGACY_KERAS.

    python3 train_forms.py FOLDER [FORM...]
"""

import contextlib
import io
import json
import os
import sys

import numpy as np
import tensorflow as tf

from elastane import backends, codec, contract, example
from elastane.metrics import Metrics

FORMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "forms")
LINES = ("lines", "nothing_learned")
STEPS, MINIBATCH = 60, 40


def records(form):
    random = np.random.default_rng(7)
    x = random.normal(size=(240, 8)).astype(np.float32)
    labels = (x[:, 0] > 0).astype(np.int64) + (x[:, 1] > 0)
    for point, label in zip(x, labels):
        if form in LINES:
            yield ",".join(map(str, [*point, label])).encode()
        elif form == "may_2019":
            columns = [
                codec.Column("x", np.dtype(np.float32), (8,)),
                codec.Column("label", np.dtype(np.int64), (1,)),
            ]
            yield codec.encode(columns, {"x": point, "label": np.array([label])})
        else:
            yield example.encode({"x": point, "label": np.array([label])})


def load(form):
    if form.endswith("2019"):
        return contract.load(os.path.join(FORMS, form + ".py"))
    symbol = "CustomModel" if form == "subclass_2020" else "custom_model"
    return contract.load_definition(FORMS, f"{form}.{symbol}")


def train(form, folder):
    tf.keras.utils.set_random_seed(7)
    model = load(form)
    backend = backends.choose(model)
    backend.codec_type = "bytes" if form == "may_2019" else "tf_example"
    bad = []
    all_records = list(enumerate(records(form)))
    batches = list(backend.batches(all_records, "training", MINIBATCH, lambda *of: bad.append(of)))
    backend.build(batches[0])
    before = np.mean([backend.step(batch).loss for batch in batches])
    rule = backend.optimizer()
    slots = {}
    for step in range(STEPS):
        backend.callbacks.batch_begin(step)
        made = backend.step(batches[step % len(batches)])
        values = backend.parameters()
        for name, gradient in made.gradients.items():
            if rule.kind == "adam":
                m, v = slots.get(name, (0.0, 0.0))
                m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
                slots[name] = (m, v)
                gradient = m / (np.sqrt(v) + 1e-7) / np.sqrt(1 - 0.9 ** (step + 1))
            values[name] = values[name] - backend.learning_rate(step) * gradient
        backend.assign(values, backend.state())
    after = np.mean([backend.step(batch).loss for batch in batches])
    metrics = Metrics(model)
    for batch in backend.batches(all_records, "evaluation", MINIBATCH, lambda *of: bad.append(of)):
        metrics.update(batch.labels, backend.predict(batch))
    found = {name: one.total / one.weight for name, one in metrics.result().items()}
    backend.save(os.path.join(folder, form))
    return dict(
        before=float(before),
        after=float(after),
        metrics=found,
        bad=len(bad),
        saved=sorted(os.listdir(os.path.join(folder, form))),
    )


def main():
    folder, *forms = sys.argv[1:]
    for form in forms:
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            try:
                line = train(form, folder)
            except Exception as error:
                line = {"error": f"{type(error).__name__}: {error}"}
        line["warnings"] = [s for s in said.getvalue().splitlines() if s.startswith("warning: ")]
        print(json.dumps({"form": form, **line}), flush=True)


if __name__ == "__main__":
    main()
