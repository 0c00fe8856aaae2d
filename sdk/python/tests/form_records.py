"""The records that the models of `forms` train on: points with three labels, in each format.

Owns: the points, and their encoding as `tf.train.Example`, as bytes and as lines. Does not know
about: which form reads which format.
"""

import os

import numpy as np

from elastane import codec, example
from elastane.recordio import write_records

FORMATS = ("examples", "bytes", "lines", "table")
TEXTS = ("lines", "table")
_COLUMNS = [
    codec.Column("x", np.dtype(np.float32), (8,)),
    codec.Column("label", np.dtype(np.int64), (1,)),
]


def points(count=240, seed=7):
    """Points with eight numbers, the bins (0 to 7) of the first two, and the label: how many of
    these two are positive."""
    x = np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32)
    ids = (np.floor(np.clip(x[:, :2] * 2, -4, 3.99)) + 4).astype(np.int64)
    labels = (x[:, 0] > 0).astype(np.int64) + (x[:, 1] > 0)
    return x, ids, labels


def encode(form, point, ids, label):
    """A record of this format."""
    if form in TEXTS:
        return ",".join(map(str, [*point, label])).encode()
    if form == "bytes":
        return codec.encode(_COLUMNS, {"x": point, "label": np.array([label])})
    return example.encode({"x": point, "ids": ids, "label": np.array([label])})


def records(form, count=240, seed=7):
    """Records of this format."""
    for point, ids, label in zip(*points(count, seed)):
        yield encode(form, point, ids, label)


def write(folder, form, count, seed, files=1):
    """Writes records into `folder`, or as lines into the file FOLDER.csv, of which a table has one more
    with the names of the columns; returns the path."""
    made = list(records(form, count, seed))
    if form in TEXTS:
        path = f"{folder}.csv"
        with open(path, "wb") as file:
            if form == "table":
                file.write(b"x0,x1,x2,x3,x4,x5,x6,x7,label\n")
            file.writelines(line + b"\n" for line in made)
        return path
    os.makedirs(folder)
    for number in range(files):
        write_records(os.path.join(folder, f"part-{number}"), made[number::files])
    return folder
