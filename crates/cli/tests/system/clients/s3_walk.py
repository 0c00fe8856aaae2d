"""Copies of buckets, judged by others: moto keeps the objects, and botocore works out what each signature
has to be.

Usage: s3_walk.py URL TOKEN_FILE

`elastane` and `runai` are on the PATH and know the server. What is wrong ends the program and is told.
"""

import json
import subprocess
import sys
import threading
import time
import urllib.request
from urllib.parse import parse_qsl, quote

from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from moto.s3.models import s3_backends
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

URL, TOKEN = sys.argv[1], open(sys.argv[2]).read().strip()
KEY_ID, SECRET = "AKIAEXAMPLE", "hush/93d7+x"
OBJECTS = 1234


class Judge:
    """Lets requests pass whose signature is the one that botocore makes of them."""

    def __init__(self, app):
        self.app = app

    def __call__(self, environ, start):
        code = self.fault(environ)
        if code is None:
            return self.app(environ, start)
        start("403 Forbidden", [("Content-Type", "application/xml")])
        return [f"<Error><Code>{code}</Code><Message>told by the judge</Message></Error>".encode()]

    def fault(self, environ):
        path, _, query = environ["REQUEST_URI"].partition("?")
        query = dict(parse_qsl(query, keep_blank_values=True))
        if "X-Amz-Signature" not in query:
            return "AccessDenied"
        key_id, _, region, *_ = query["X-Amz-Credential"].split("/")
        if key_id != KEY_ID:
            return "InvalidAccessKeyId"
        plain = "&".join(
            f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}"
            for name, value in query.items()
            if not name.startswith("X-Amz-")
        )
        request = AWSRequest("GET", f"http://{environ['HTTP_HOST']}{path}?{plain}")
        request.context["timestamp"] = query["X-Amz-Date"]
        auth = S3SigV4QueryAuth(
            Credentials(KEY_ID, SECRET), "s3", region, int(query["X-Amz-Expires"])
        )
        auth._modify_request_before_signing(request)
        text = auth.string_to_sign(request, auth.canonical_request(request))
        right = auth.signature(text, request) == query["X-Amz-Signature"]
        return None if right else "SignatureDoesNotMatch"


def fail(what):
    raise SystemExit(what)


def shell(line):
    done = subprocess.run(line, shell=True, capture_output=True, text=True)
    if done.returncode:
        fail(f"{line}: {done.stdout}{done.stderr}")
    return done.stdout


def ask(path, body=None):
    request = urllib.request.Request(
        URL + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
    )
    return json.load(urllib.request.urlopen(request))


def ended(name):
    for _ in range(2400):
        rows = ask(f"/api/v1/workloads?filterBy=name=={name}")["workloads"]
        if rows and rows[0]["phase"] in ("Completed", "Failed"):
            return rows[0]["phase"]
        time.sleep(0.1)
    fail(f"{name} does not end: {rows}")


def serve():
    app = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, Judge(app), threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    store = s3_backends["123456789012"]["aws"]
    store.create_bucket("data", "us-east-1")
    for number in range(OBJECTS):
        store.put_object("data", f"dir/{number}", f"object {number}\n".encode())
    store.put_object("data", "a b+ä%20&=c", b"odd\n")
    return f"http://127.0.0.1:{server.port}"


def credential(name, secret):
    meta = {"name": name, "scope": "tenant"}
    spec = {"accessKeyId": KEY_ID, "secretAccessKey": secret}
    ask("/api/v1/asset/credentials/access-key", {"meta": meta, "spec": spec})


def submit(name, what, script):
    shell(
        f"runai submit {name} -p team-a -i ubuntu --backoff-limit 0 --s3 {what},target=/data"
        f" --command -- sh -c '{script}'"
    )


address = serve()
shell("elastane project create team-a --gpu-quota 2")
credential("store", SECRET)
credential("wrong", SECRET + "x")

submit(
    "good",
    f"bucket=data,url={address},accesskey=store",
    'cd "$ELASTANE_MOUNTS_DIR/data"; find . -type f | wc -l; cat dir/1233 "a b+ä%20&=c"; env',
)
if ended("good") != "Completed":
    fail(shell("runai describe job good -p team-a"))
said = shell("runai logs good -p team-a")
if not said.startswith(f"{OBJECTS + 1}\nobject 1233\nodd\n") or SECRET in said:
    fail(f"the copy is another: {said}")

for name, what, why in [
    ("wrong", f"bucket=data,url={address},accesskey=wrong", "check id and secret"),
    ("open", f"bucket=data,url={address}", "it wants a login"),
    ("none", f"bucket=none,url={address},accesskey=store", "check the name of the bucket"),
]:
    submit(name, what, "true")
    phase, told = ended(name), shell(f"runai describe job {name} -p team-a")
    if phase != "Failed" or why not in told or SECRET in told:
        fail(f"{name} {phase}: {told}")
