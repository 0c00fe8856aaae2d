"""Checkpoints in a bucket, judged by others: moto keeps the objects, and botocore works out what each
signature has to be.

Usage: s3_checkpoints.py FOLDER, with the package on the PYTHONPATH. What is wrong ends the program.
"""

import io
import os
import sys
import threading
import time
import warnings
from unittest import mock

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from moto.s3.models import s3_backends
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

import elastane
from elastane import channel, files, s3

KEY_ID, SECRET = "AKIAEXAMPLE", "hush/93d7+x"
asked, faults = [], []


class Judge:
    """Lets requests pass whose signature is the one that botocore makes of them."""

    def __init__(self, app):
        self.app = app

    def __call__(self, environ, start):
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        asked.append((environ["REQUEST_METHOD"], environ["REQUEST_URI"].partition("?")[2]))
        if faults and (answer := faults.pop(0)(environ)) is not None:
            start(answer, [])
            return [b""]
        if self.is_right(environ, body):
            return self.app(environ, start)
        start("403 Forbidden", [("Content-Type", "application/xml")])
        return [b"<Error><Code>SignatureDoesNotMatch</Code><Message>by the judge</Message></Error>"]

    def is_right(self, environ, body):
        given = environ.get("HTTP_AUTHORIZATION", "")
        parts = dict(part.split("=", 1) for part in given.partition(" ")[2].split(", "))
        scope = parts["Credential"].split("/")
        request = AWSRequest(
            environ["REQUEST_METHOD"], f"http://{environ['HTTP_HOST']}{environ['REQUEST_URI']}", data=body
        )
        for name in parts["SignedHeaders"].split(";"):
            request.headers[name] = environ[f"HTTP_{name.upper().replace('-', '_')}"]
        request.context["timestamp"] = environ["HTTP_X_AMZ_DATE"]
        auth = S3SigV4Auth(Credentials(KEY_ID, SECRET), "s3", scope[2])
        # What is signed here says which body it is of.
        digest = auth.payload(request)
        text = auth.string_to_sign(request, auth.canonical_request(request))
        return (
            scope[0] == KEY_ID
            and digest == environ["HTTP_X_AMZ_CONTENT_SHA256"]
            and auth.signature(text, request) == parts["Signature"]
        )


def content(address):
    with elastane.load(address) as file:
        return file.read()


def stored(address):
    with s3.Object(address).open() as file:
        return file.read()


def fails(call, part):
    try:
        call()
    except OSError as error:
        assert part in str(error), error
        return
    raise SystemExit(f"it did not fail with {part!r}")


server = make_server(
    "127.0.0.1", 0, Judge(DomainDispatcherApplication(create_backend_app)), threaded=True
)
threading.Thread(target=server.serve_forever, daemon=True).start()
store = s3_backends["123456789012"]["aws"]
store.create_bucket("models", "us-east-1")
os.environ.update(
    AWS_ACCESS_KEY_ID=KEY_ID,
    AWS_SECRET_ACCESS_KEY=SECRET,
    AWS_ENDPOINT_URL=f"http://127.0.0.1:{server.port}",
    ELASTANE_CHECKPOINT_DIR=sys.argv[1],
)
reports = []
channel.checkpoint = lambda *report: reports.append(report)
s3.time.sleep = lambda seconds: None

# Without a workload it is there when the function returns.
ODD = "s3://models/run 1/ä+%20&=c.pt"
assert elastane.load(ODD) is None
elastane.save(ODD, b"first", step=1)
assert content(ODD) == b"first" == content("s3://models/run 1/") == content("s3://models/run 1")
now = time.time_ns()
with mock.patch.object(time, "time_ns", lambda: now - 10**13):
    elastane.save(ODD, b"second", step=2)
assert content(ODD) == b"second" and reports == [], "also where a clock was set back"

# Of two within one second.
for step, saved_ns in ((10, 1), (9, 1), (8, 2)):
    s3.Object(f"s3://models/second/model-{step}").put(io.BytesIO(b""), 0, saved_ns)
    for key in store.buckets["models"].keys.values():
        key.last_modified = key.last_modified.replace(microsecond=0, second=0)
    found = s3.Object("s3://models/second/").newest()
    assert found.key == f"second/model-{8 if step == 8 else 10}", found.key

# With memory of a workload it is written behind and reported.
pod = os.path.join(sys.argv[1], "memory")
os.mkdir(pod)
os.environ.update(ELASTANE_MEMORY_DIR=pod, ELASTANE_CHANNEL="/somewhere/socket")
elastane.save("s3://models/run/model", lambda file: file.write(b"third"), step=3, next_in=60)
assert elastane.saved()
note = os.path.join(sys.argv[1], "saved-in-bucket.json")
assert reports == [(note, 3, 60)] and "s3://models/run/model" in open(note).read()
assert content("s3://models/run/") == b"third", "from memory"
assert stored("s3://models/run/model") == b"third"

# Large ones have parts, and appear when all of them are there.
s3._PART_BYTES = 5 << 20
large = os.urandom(12 << 20)
asked.clear()
elastane.save("s3://models/run/large", large)
assert elastane.saved() and sum("partNumber" in query for _, query in asked) == 3
assert stored("s3://models/run/large") == large


def no_last_part(environ):
    return "400 Bad Request" if "partNumber=3" in environ["REQUEST_URI"] else None


faults[:] = [no_last_part] * 20
direct = s3.Object("s3://models/run/large")
fails(lambda: direct.put(io.BytesIO(bytes(12 << 20)), 12 << 20, 2**63), "400")
faults.clear()
assert stored("s3://models/run/large") == large, "the one before stays"
assert not store.list_multipart_uploads("models"), "nothing is left of it"

# A server that is away for a moment is asked again; of one that stays away there is an error.
faults[:] = [lambda environ: "503 Slow Down"] * 2
s3.Object("s3://models/run/again").put(io.BytesIO(b"again"), 5, 1)
assert stored("s3://models/run/again") == b"again"
faults[:] = [lambda environ: "503 Slow Down"] * 4
fails(lambda: s3.Object("s3://models/run/again").saved_ns(), "503")
faults[:] = [lambda environ: "503 Slow Down"] * 2
assert stored("s3://models/run/again") == b"again"
faults.clear()

# An older one does not take the place of a younger one.
assert not s3.Object("s3://models/run/again").put(io.BytesIO(b"older"), 5, 0)
assert stored("s3://models/run/again") == b"again"
s3.Object("s3://models/run/again").delete()
assert elastane.load("s3://models/run/again") is None

# What is wrong is said.
os.environ["AWS_SECRET_ACCESS_KEY"] = "other"
fails(lambda: s3.Object("s3://models/run/").newest(), "SignatureDoesNotMatch by the judge")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    elastane.save("s3://models/run/lost", b"lost")
    fails(elastane.saved, "403")
os.environ["AWS_SECRET_ACCESS_KEY"] = SECRET
fails(lambda: content("s3://none/x"), "NoSuchBucket")
fails(lambda: s3.Object("s3:///x"), "names no bucket")
fails(lambda: s3.Object("s3://b/x", {}), "credential of the kind access-key")
for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
    for wrong in ("127.0.0.1", "http://[::1"):
        fails(
            lambda: s3.Object("s3://b/x", {**os.environ, name: wrong}),
            f"{name} is {wrong}; it is https://HOST or http://HOST:PORT",
        )
fails(lambda: s3._parsed(b"<html><p>"), "no XML")

# A login with a line break at its end is right, one with a line break in it is not, and in no error.
for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
    right = {**os.environ, name: f"{os.environ[name]}\n"}
    assert s3.Object("s3://models/run/model", right).saved_ns()
for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
    try:
        s3.Object("s3://models/x", {**os.environ, name: "hidden\nvalue"})
    except s3.BucketError as error:
        assert name in str(error) and "hidden" not in str(error)
    else:
        raise SystemExit(f"{name} is not looked at")

# Files of checkpoints of jobs.
ROOT = "s3://models/job"
files.probe(ROOT)
assert files.names(ROOT) == []
for version in range(30):
    path = f"{ROOT}/version-{version}/variables-0-of-1.ckpt"
    files.write(path, f"{path}.partial", [b"first ", b"half"])
assert sorted(files.names(ROOT)) == sorted(f"version-{version}" for version in range(30))
assert files.names(f"{ROOT}/version-7") == ["variables-0-of-1.ckpt"]
assert files.read(path) == b"first half" and files.read(path, 5) == b"first"
files.remove(f"{ROOT}/version-29")
assert len(files.names(ROOT)) == 29
fails(lambda: files.read(path), "it is not there")
