"""The published layers that prepare features, with Keras 3 and with legacy Keras."""

import os
import subprocess
import sys

import pytest
from conftest import needs

HERE = os.path.dirname(os.path.abspath(__file__))


@pytest.mark.parametrize("legacy", [False, True], ids=["keras-3", "legacy"])
def test_layers_compute_what_is_published_and_are_part_of_a_model(tmp_path, legacy):
    needs("tensorflow", *(["tf_keras"] if legacy else []))
    environment = dict(
        os.environ, TF_USE_LEGACY_KERAS=str(int(legacy)), PYTHONPATH=os.pathsep.join(sys.path)
    )
    command = [sys.executable, os.path.join(HERE, "preprocess.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stderr
    assert (tmp_path / "model" / "saved_model.pb").exists()
