"""Records, readers and codecs. No framework, no network."""

import gzip
import struct
import zlib

import numpy as np
import pytest

from elastane import codec, example, readers, snappy
from elastane.recordio import (
    BadRecordError,
    NotRecordIOError,
    RecordFile,
    RecordWriter,
    write_records,
)

RECORDS = [b"", b"one", bytes(range(256)) * 40, b"\x00" * 5000, "ü".encode()]


@pytest.mark.parametrize("compressor", ["none", "snappy", "gzip"])
def test_records_come_back(tmp_path, compressor):
    path = str(tmp_path / "data")
    with RecordWriter(path, compressor, chunk_bytes_max=6000) as writer:
        for record in RECORDS * 3:
            writer.write(record)
    file = RecordFile(path)
    assert len(file) == 15 and len(file.chunks) > 1 and file.tail is None
    assert [record for _, record in file.read()] == RECORDS * 3
    assert list(file.read(4, 3)) == [(4, RECORDS[4]), (5, RECORDS[0]), (6, RECORDS[1])]


def test_file_as_published(tmp_path):
    payload = struct.pack("<I", 3) + b"abc" + struct.pack("<I", 0)
    stored = gzip.compress(payload)
    header = struct.pack("<5I", 0x01020304, zlib.crc32(stored), 2, len(stored), 2)
    path = tmp_path / "data"
    path.write_bytes(header + stored)
    assert [record for _, record in RecordFile(str(path)).read()] == [b"abc", b""]


def test_truncated_file_names_each_record(tmp_path):
    path = tmp_path / "data"
    with RecordWriter(str(path), "none", chunk_bytes_max=40) as writer:
        for n in range(6):
            writer.write(b"%016d" % n)
    path.write_bytes(path.read_bytes()[:-5])
    bad = []
    file = RecordFile(str(path))
    good = [place for place, _ in file.read(on_bad=bad.append)]
    assert len(file) == 6 and good == [0, 1, 2, 3]
    assert [one.record for one in bad] == [4, 5]
    assert "cut short" in bad[0].reason and str(path) in str(bad[0])
    with pytest.raises(BadRecordError, match="record 4 of"):
        list(file.read())


def test_header_cut_short_is_said(tmp_path):
    path = tmp_path / "data"
    write_records(str(path), RECORDS)
    path.write_bytes(path.read_bytes() + b"\x04\x03\x02")
    file = RecordFile(str(path))
    assert len(file) == 5 and "3 bytes of a header" in file.tail
    assert readers.open_reader(str(path)).warnings() == [f"{path} is {file.tail}"]


@pytest.mark.parametrize("at", [20, 60])
def test_flipped_bit_is_found(tmp_path, at):
    path = tmp_path / "data"
    write_records(str(path), RECORDS)
    damaged = bytearray(path.read_bytes())
    damaged[at] ^= 1
    path.write_bytes(bytes(damaged))
    bad = []
    assert list(RecordFile(str(path)).read(on_bad=bad.append)) == []
    assert len(bad) == 5 and "checksum" in bad[0].reason


def test_record_longer_than_its_chunk(tmp_path):
    payload = struct.pack("<I", 2) + b"ok" + struct.pack("<I", 99) + b"short"
    path = tmp_path / "data"
    path.write_bytes(
        struct.pack("<5I", 0x01020304, zlib.crc32(payload), 0, len(payload), 3) + payload
    )
    bad = []
    assert list(RecordFile(str(path)).read(on_bad=bad.append)) == [(0, b"ok")]
    assert [one.record for one in bad] == [1, 2] and "99 bytes, of which 5" in bad[0].reason


def test_other_files_are_refused_by_name(tmp_path):
    path = tmp_path / "image.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"\x00" * 100)
    with pytest.raises(NotRecordIOError, match="image.png is not RecordIO"):
        RecordFile(str(path))
    with pytest.raises(readers.DataError, match="end in .csv"):
        readers.open_reader(str(tmp_path)).create_shards()


def test_snappy_refuses_damage():
    stream = snappy.compress(b"abcabcabcabc" * 100)
    assert snappy.decompress(stream) == b"abcabcabcabc" * 100
    for end in range(1, len(stream)):
        try:
            assert snappy.decompress(stream[:end]) == b""
        except snappy.SnappyError:
            pass
    with pytest.raises(snappy.SnappyError, match="before its block"):
        snappy.decompress_block(b"\x04\x0d\x09")
    # CRC-32C of "123456789" is 0xe3069283; masked as in the framing format.
    crc = 0xE3069283
    assert (
        snappy.masked_crc32c(b"123456789")
        == (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
    )


def test_directory_of_both_kinds(tmp_path):
    write_records(str(tmp_path / "a"), [b"r0", b"r1", b"r2"])
    (tmp_path / "b.csv").write_bytes(b"x,y\n1,2\r\n\n3,4")
    (tmp_path / ".hidden").write_bytes(b"junk")
    reader = readers.open_reader(str(tmp_path))
    assert [(one.start, one.count) for one in reader.create_shards()] == [(0, 3), (0, 4)]
    csv = str(tmp_path / "b.csv")
    bad = []
    assert [line for _, line in reader.read(csv, range(4), bad.append)] == [b"x,y", b"1,2", b"3,4"]
    assert [(one.record, one.reason) for one in bad] == [(2, "the line is empty")]
    shuffled = list(reader.read(str(tmp_path / "a"), [2, 0, 1]))
    assert shuffled == [(2, b"r2"), (0, b"r0"), (1, b"r1")]
    with pytest.raises(readers.DataError, match="is not of the data"):
        list(reader.read("/etc/passwd", [0]))


@pytest.mark.parametrize("name", ["a", "a.csv"])
def test_file_that_has_become_shorter(tmp_path, name):
    path = tmp_path / name
    with RecordWriter(str(path), "none", chunk_bytes_max=12) as writer:
        for n in range(6):
            writer.write(b"%08d" % n)
    if name.endswith(".csv"):
        path.write_bytes(b"".join(b"%08d\n" % n for n in range(6)))
    size = path.stat().st_size // 6
    assert readers.open_reader(str(tmp_path)).create_shards() == [readers.Shard(str(path), 0, 6)]
    path.write_bytes(path.read_bytes()[: 4 * size])
    # Another worker, which gets a task of the records that were there.
    bad = []
    read = list(readers.open_reader(str(tmp_path)).read(str(path), range(2, 6), bad.append))
    assert [place for place, _ in read] == [2, 3]
    assert [(one.record, one.reason) for one in bad] == [
        (place, "the file is cut short: it has 4 records") for place in (4, 5)
    ]
    path.write_bytes(b"")
    bad.clear()
    assert list(readers.open_reader(str(tmp_path)).read(str(path), [5, 0], bad.append)) == []
    assert [one.record for one in bad] == [5, 0]


def test_data_that_is_not_there(tmp_path):
    with pytest.raises(readers.DataError, match="does not exist"):
        readers.open_reader(str(tmp_path / "nothing"))
    with pytest.raises(readers.DataError, match="has no files"):
        readers.open_reader(str(tmp_path))
    write_records(str(tmp_path / "a"), [b"r"])
    with pytest.raises(readers.DataError, match="ODPS.*custom_data_reader"):
        readers.open_reader(str(tmp_path), "reader_type=ODPS")
    with pytest.raises(readers.DataError, match="no parameter 'columns'"):
        readers.open_reader(str(tmp_path), "columns=['a']")


def test_parameters_are_never_evaluated():
    parsed = readers.parse_params(
        "n=3; names=['a', 'b']; text=plain; code=__import__('os').getpid()"
    )
    assert parsed == {
        "n": 3,
        "names": ["a", "b"],
        "text": "plain",
        "code": "__import__('os').getpid()",
    }
    with pytest.raises(readers.DataError, match="NAME=VALUE"):
        readers.parse_params("nonsense")


def test_custom_reader(tmp_path):
    class Squares:
        records_output_types = None
        metadata = readers.Metadata(["square"])

        def create_shards(self):
            return [("squares", 0, 5)]

        def read_records(self, task):
            for n in range(task.shard.start, min(task.shard.end, 4)):
                yield n * n

    reader = readers.open_reader(
        "numbers", "scale=2", lambda data_origin, records_per_task, scale: Squares(), 10
    )
    assert reader.create_shards() == [readers.Shard("squares", 0, 5)]
    assert reader.metadata.column_names == ["square"]
    bad = []
    assert list(reader.read("squares", range(1, 5), bad.append)) == [(1, 1), (2, 4), (3, 9)]
    assert [one.record for one in bad] == [4]


def test_examples():
    features = {
        "image": np.linspace(-1, 1, 7, dtype=np.float32),
        "label": np.array([-3, 0, 2**40], dtype=np.int64),
        "name": [b"a", b""],
    }
    decoded = example.decode(example.encode(features))
    assert np.array_equal(decoded["image"], features["image"])
    assert decoded["label"].tolist() == [-3, 0, 2**40]
    assert decoded["name"] == [b"a", b""]
    # {"x": int64 [5]} as TensorFlow writes it.
    written = bytes.fromhex("0a0c0a0a0a017812051a030a0105")
    assert example.decode(written)["x"].tolist() == [5]
    assert example.encode({"x": np.array([5])}) != b""
    for end in range(1, len(written)):
        with pytest.raises(example.ExampleError):
            example.decode(written[:end])
    with pytest.raises(example.ExampleError, match="'label': 1 numbers"):
        example.floats(decoded, "label", 1)


def test_codec_of_columns():
    columns = (
        codec.Column("image", np.dtype("float32"), (2, 2)),
        codec.Column("label", np.dtype("int64"), (1,)),
    )
    record = codec.encode(columns, {"image": np.eye(2), "label": np.array([7])})
    assert len(record) == 4 * 4 + 8
    decoded = codec.decode(columns, record)
    assert decoded["image"].tolist() == [[1, 0], [0, 1]] and decoded["label"].tolist() == [7]
    with pytest.raises(codec.CodecError, match="take 24 bytes; it has 23"):
        codec.decode(columns, record[:-1])
    record = example.encode({"image": np.eye(2, dtype=np.float32), "label": np.array([7])})
    (decoded,) = codec.batch(columns, [record], "tf_example")
    assert np.array_equal(decoded["image"], np.eye(2)) and decoded["label"] == [7]
    record = example.encode({"image": np.zeros(3, np.float32), "label": np.array([7])})
    with pytest.raises(codec.CodecError, match="'image' has 4 numbers; the record has 3 of it"):
        codec.batch(columns, [record], "tf_example")


def test_digits_in_both_encodings(digits):
    from elastane.digits import COLUMNS, encode, load

    images, labels = load()
    assert images.shape == (1797, 28, 28) and 0 <= images.min() and images.max() == 255
    decoded = codec.decode(COLUMNS, encode(images[3], int(labels[3]), "bytes"))
    assert np.array_equal(decoded["image"], images[3]) and decoded["label"][0] == labels[3]
    reader = readers.open_reader(str(digits / "train"))
    assert sum(one.count for one in reader.create_shards()) == 1500
