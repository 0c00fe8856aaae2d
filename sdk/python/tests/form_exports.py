"""The part of the records that an exported model of `forms` predicts rightly.

Owns: applying a SavedModel, a module of PyTorch and the rows of its tables, as a program without
elastane would. Does not know about: jobs.
"""

import importlib.util
import os

import numpy as np


def right_of_export(folder, points, ids, labels):
    """The part of these records whose label the model in `folder` predicts, from 0 to 1. A model
    with one output is right within 1 of the label."""
    if os.path.exists(os.path.join(folder, "model.pt")):
        outputs = _of_torch(folder, points, ids)
    else:
        outputs = _of_saved_model(folder, points, ids)
    if outputs.shape[1] == 1:
        return float(np.mean(np.abs(outputs[:, 0] - labels) < 1))
    return float(np.mean(outputs.argmax(1) == labels))


def _of_saved_model(folder, points, ids):
    import tensorflow as tf

    serve = tf.saved_model.load(folder).signatures["serving_default"]
    wanted = serve.structured_input_signature[1]
    given = {
        name: tf.constant(ids if of.dtype.is_integer else points) for name, of in wanted.items()
    }
    outputs = serve(**given)
    (output,) = [one for name, one in outputs.items() if name == "logits" or len(outputs) == 1]
    return output.numpy()


def _of_torch(folder, points, ids):
    import torch

    def module(name):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "forms", f"{name}.py")
        spec = importlib.util.spec_from_file_location(f"export_{name}", path)
        found = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
        return found

    state = torch.load(os.path.join(folder, "model.pt"))
    tables = os.path.join(folder, "embeddings.npz")
    if not os.path.exists(tables):
        model, features = module("torch_2020").custom_model(), points
    else:
        model, features = module("torch_embedding").CustomModel(), ids
        model.bins.table.source = _Rows(np.load(tables))
    model.load_state_dict(state)
    model.eval()
    with torch.no_grad():
        return model(torch.from_numpy(features)).numpy()


class _Rows:
    """Rows of a file, in place of those of parameter servers."""

    def __init__(self, arrays):
        self._arrays = arrays

    def rows(self, table, ids):
        known, rows = (self._arrays[f"{table.name}/{of}"] for of in ("ids", "rows"))
        at = np.searchsorted(known, ids)
        assert (known[at] == ids).all(), "an id that was trained has no row"
        return rows[at]
