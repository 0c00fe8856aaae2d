"""Records of real handwritten digits, from the data that scikit-learn brings: no download.

Owns: 1,797 digits of 8 x 8 pixels (UCI, bundled with scikit-learn) made 28 x 28, as records of
either encoding, split into 1,500 to train and 297 to test. Does not know about: models.

They are not MNIST: each pixel of 8 x 8 becomes 3 x 3, with a border of 2, and values 0 to 255.
`--records N` above 1,500 repeats the training digits shifted by up to two pixels (the seed is fixed).

    python3 -m elastane.digits DIRECTORY [--codec bytes|tf_example] [--compressor snappy|gzip|none]
"""

from __future__ import annotations

import argparse
import os
from typing import Iterator, List, Tuple

import numpy as np

from . import codec, example
from .recordio import COMPRESSORS, write_records

TRAIN_COUNT = 1500
COLUMNS = (
    codec.Column("image", np.dtype("float32"), (28, 28)),
    codec.Column("label", np.dtype("int64"), (1,)),
)


def load() -> Tuple[np.ndarray, np.ndarray]:
    """Images as float32 of shape [1797, 28, 28], 0 to 255, and labels as int64 of shape [1797]."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise SystemExit(
            "the digits come with scikit-learn: pip install 'elastane[digits]'"
        ) from None
    digits = load_digits()
    small = np.asarray(digits.images, dtype=np.float32) * (255.0 / 16.0)
    large = small.repeat(3, axis=1).repeat(3, axis=2)
    return np.pad(large, ((0, 0), (2, 2), (2, 2))), np.asarray(digits.target, dtype=np.int64)


def encode(image: np.ndarray, label: int, codec_type: str) -> bytes:
    """A record of an image of shape [28, 28]."""
    values = {"image": image.astype(np.float32), "label": np.array([label], dtype=np.int64)}
    if codec_type == "bytes":
        return codec.encode(COLUMNS, values)
    values["image"] = values["image"].ravel()
    return example.encode(values)


def _more(images: np.ndarray, labels: np.ndarray, count: int) -> Iterator[Tuple[np.ndarray, int]]:
    """`count` of them; those beyond the first pass are shifted."""
    random = np.random.default_rng(7)
    for n in range(count):
        image, label = images[n % len(images)], int(labels[n % len(images)])
        if n >= len(images):
            image = np.roll(image, random.integers(-2, 3, size=2), axis=(0, 1))
        yield image, label


def write(
    directory: str,
    codec_type: str = "tf_example",
    compressor: str = "snappy",
    records: int = TRAIN_COUNT,
    files: int = 3,
) -> List[str]:
    """Writes `train` and `test` below the directory; returns the files."""
    images, labels = load()
    order = np.random.default_rng(1).permutation(len(images))
    images, labels = images[order], labels[order]
    train = list(_more(images[:TRAIN_COUNT], labels[:TRAIN_COUNT], records))
    test = [(image, int(label)) for image, label in zip(images[TRAIN_COUNT:], labels[TRAIN_COUNT:])]
    paths = []
    for part, rows, pieces in (("train", train, files), ("test", test, 1)):
        os.makedirs(os.path.join(directory, part), exist_ok=True)
        for piece in range(pieces):
            begin, end = (len(rows) * n // pieces for n in (piece, piece + 1))
            path = os.path.join(directory, part, f"data-{piece:05d}")
            encoded = (encode(image, label, codec_type) for image, label in rows[begin:end])
            write_records(path, encoded, compressor)
            paths.append(path)
    return paths


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="elastane.digits", description=__doc__.split("\n")[0])
    parser.add_argument("directory", help="train/ and test/ are written below it")
    parser.add_argument("--codec", choices=("bytes", "tf_example"), default="tf_example")
    parser.add_argument("--compressor", choices=tuple(COMPRESSORS), default="snappy")
    parser.add_argument("--records", type=int, default=TRAIN_COUNT, help="training records")
    parser.add_argument("--files", type=int, default=3, help="files of training records")
    options = parser.parse_args()
    if options.records < 1 or not 1 <= options.files <= options.records:
        parser.error(
            "--records and --files are at least 1, and there are no more files than records"
        )
    paths = write(
        options.directory, options.codec, options.compressor, options.records, options.files
    )
    print(f"{options.records} records to train, 297 to test (handwritten digits of scikit-learn):")
    print("\n".join(paths))


if __name__ == "__main__":
    main()
