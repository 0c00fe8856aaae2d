"""Trains each model of `forms` in this process and prints a line of JSON for each: name, loss before
and after, accuracy of the model and of its export, warnings. Which Keras it is follows
TF_USE_LEGACY_KERAS.

    python3 train_forms.py FOLDER [FORM...]
"""

import contextlib
import io
import json
import os
import sys

import numpy as np
import tensorflow as tf
from form_exports import right_of_export
from form_records import points, records

from elastane import backends, contract
from elastane.metrics import Metrics

FORMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "forms")
LINES = ("lines", "nothing_learned")
CLASSES = ("subclass_2020", "preprocess_2020")
STEPS, MINIBATCH = 60, 40


def load(form):
    if form.endswith("2019"):
        return contract.load(os.path.join(FORMS, form + ".py"))
    symbol = "CustomModel" if form in CLASSES else "custom_model"
    return contract.load_definition(FORMS, f"{form}.{symbol}")


def format_of(form):
    """The format of the records of a form."""
    return "lines" if form in LINES else "bytes" if form == "may_2019" else "examples"


def train(form, folder):
    tf.keras.utils.set_random_seed(7)
    model = load(form)
    backend = backends.choose(model)
    backend.codec_type = "bytes" if form == "may_2019" else "tf_example"
    bad = []
    all_records = list(enumerate(records(format_of(form))))
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
        exported=right_of_export(os.path.join(folder, form), *points()),
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
