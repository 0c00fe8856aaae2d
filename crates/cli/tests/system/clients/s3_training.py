"""Jobs of elasticdl whose checkpoints are in a bucket of moto: trained, and measured from there.

Usage: s3_training.py EXAMPLES PYTHON, with `elasticdl` on the PATH; the workers run that Python, which
has the package. What is wrong ends the program.
"""

import os
import re
import subprocess
import sys
import threading

import boto3
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

EXAMPLES, PYTHON = sys.argv[1:]
server = make_server(
    "127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True
)
threading.Thread(target=server.serve_forever, daemon=True).start()
ADDRESS = f"http://127.0.0.1:{server.port}"
LOGIN = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"}
store = boto3.client(
    "s3",
    endpoint_url=ADDRESS,
    region_name="us-east-1",
    aws_access_key_id=LOGIN["AWS_ACCESS_KEY_ID"],
    aws_secret_access_key=LOGIN["AWS_SECRET_ACCESS_KEY"],
)
store.create_bucket(Bucket="models")
subprocess.run([PYTHON, "-m", "elastane.digits", "digits"], check=True)


def run(*words, login=True):
    environ = {**os.environ, "AWS_ENDPOINT_URL": ADDRESS, **(LOGIN if login else {})}
    line = ["elasticdl", "local", *words, "--job_name=b", f"--model_zoo={EXAMPLES}",
            f"--image_name={PYTHON}", "--model_def=digits_numpy.custom_model"]
    done = subprocess.run(line, env=environ, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def versions(folder):
    listed = store.list_objects_v2(Bucket="models", Prefix=f"{folder}/version-")
    keys = [one["Key"] for one in listed.get("Contents", [])]
    return sorted({int(key.split("version-")[1].split("/")[0]) for key in keys})


for strategy in ("ParameterServerStrategy", "AllreduceStrategy"):
    code, said = run(
        "train", "--training_data=digits/train", "--num_epochs=2", "--num_workers=1",
        f"--distribution_strategy={strategy}", "--checkpoint_steps=20", "--keep_checkpoint_max=2",
        f"--checkpoint_dir=s3://models/{strategy}",
    )
    assert code == 0, said
    kept = versions(strategy)
    assert len(kept) == 2, (kept, said)
    code, said = run(
        "evaluate", "--validation_data=digits/test",
        f"--checkpoint_dir_for_init=s3://models/{strategy}",
    )
    measured = re.search(r"Evaluation: 297 records: accuracy (0\.\d+)", said)
    # A model that was not trained has about 0.1.
    assert code == 0 and measured and float(measured[1]) > 0.7, said

train = ["train", "--training_data=digits/train", "--checkpoint_dir=s3://models/x"]
code, said = run(*train, login=False)
assert code == 1 and "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set" in said, said
code, said = run(*train, "--checkpoint_credential=mine")
assert code == 2 and "leave --checkpoint_credential out" in said, said
