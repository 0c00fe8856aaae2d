"""Trains, measures, predicts with and exports each model of `forms`, in jobs of a running server,
and prints a table with the loss before and after, and the accuracy.

    python3 form_jobs.py [--all] [--framework NAME] [--only PATTERN] [--at-once N]

`elasticdl` is on the PATH and knows the server. The workers run this Python, which has the package,
TensorFlow and PyTorch. Files are written into the working directory, which workers have to be able
to read. What is wrong is printed with the output of its job, and ends the program with 1.

Owns: the lists of forms and arrangements, and what is right. Does not know about: starting a
server, what an export computes (`form_exports`).
"""

import argparse
import concurrent.futures
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from typing import NamedTuple, Tuple

import form_records
import numpy as np
from form_exports import right_of_export

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDS, MEASURED, EPOCHS, MINIBATCH = 480, 120, 20, 20
STUCK_AFTER_S = 600


class Form(NamedTuple):
    """A published way to write a model or a training loop."""

    name: str
    file: str
    """The file, and of a model the symbol, as --model_def names it."""
    records: str = "examples"
    frameworks: Tuple[str, ...] = ("keras-3", "keras-legacy")
    kind: str = "final"
    """`first`: the command line of May 2019; `loop`: a training loop of its own."""
    has_tables: bool = False
    """True if rows of it are on parameter servers."""
    has_classes: bool = True
    """True if the output is a number for each label."""


class Arrangement(NamedTuple):
    """How the processes of a job share the work."""

    name: str
    workers: int
    servers: int
    """0: all-reduce."""
    flags: Tuple[str, ...] = ()
    """Of the training only."""


FORMS = (
    Form("May 2019: columns, `input_fn(records)`; codec bytes", "may_2019", "bytes", kind="first"),
    Form("June 2019: `input_fn(records, decode_fn)`; RecordIO", "june_2019", kind="first"),
    Form("July 2019: object `model`, `dataset_fn`; RecordIO", "july_2019.model"),
    Form("autumn 2019: optimizer of TensorFlow 1; RecordIO", "adam_2019.model"),
    Form("functional, `dataset_fn`; RecordIO", "functional_2020.custom_model"),
    Form("subclass, two outputs; RecordIO", "subclass_2020.CustomModel"),
    Form("functional, one number; RecordIO", "regression_2020.custom_model", has_classes=False),
    Form("Sequential; lines of text", "lines.custom_model", "lines"),
    Form("functional, `custom_data_reader`; CSV", "rows_2020.custom_model", "table"),
    Form("feature columns; RecordIO", "columns.custom_model", frameworks=("keras-legacy",)),
    Form("embedding of ElasticDL; RecordIO", "embedding_2020.custom_model", has_tables=True),
    Form("`elasticdl_preprocessing`; RecordIO", "preprocess_2020.CustomModel"),
    Form("module; RecordIO", "torch_2020.custom_model", frameworks=("torch",)),
    Form("module with an embedding table; RecordIO", "torch_embedding.CustomModel",
         frameworks=("torch",), has_tables=True),
    Form("loop of `elasticai_api`", "loop_torch", frameworks=("torch",), kind="loop"),
    Form("loop of `elasticai_api`", "loop_keras", kind="loop"),
)  # fmt: skip
MEASURES = ("--validation_data={measured}", "--evaluation_steps=100")
ARRANGEMENTS = (
    Arrangement("1 worker, 1 server", 1, 1),
    Arrangement("2 workers, 1 server", 2, 1, ("--grads_to_wait=2",)),
    Arrangement("1 worker, 2 servers", 1, 2, MEASURES),
    Arrangement("2 workers, 2 servers", 2, 2, MEASURES),
    Arrangement("all-reduce, 1 worker", 1, 0),
    Arrangement("all-reduce, 2 workers", 2, 0, MEASURES),
)
# The file, the framework, and the arrangement, where not all are tried.
SOME = (
    ("may_2019", "keras-3", 1),
    ("columns.custom_model", "keras-legacy", 5),
    ("embedding_2020.custom_model", "keras-3", 3),
    ("rows_2020.custom_model", "keras-3", 0),
    ("torch_2020.custom_model", "torch", 2),
    ("loop_torch", "torch", 5),
)
FRAMEWORKS = ("keras-3", "keras-legacy", "torch")
PREDICTS = "--prediction_outputs_processor=shared.PredictionOutputsProcessor"


class Cell(NamedTuple):
    """A form in an arrangement."""

    number: int
    form: Form
    framework: str
    arrangement: Arrangement

    @property
    def is_possible(self):
        servers = self.arrangement.servers
        if self.form.kind == "first":
            return servers == 1
        return servers == 0 if self.form.kind == "loop" else servers > 0 or not self.form.has_tables


class Found(NamedTuple):
    """The results of a cell."""

    before: float
    after: float
    trained_by: int
    """Number of workers that trained."""
    accuracy: float = float("nan")


class Wrong(Exception):
    """What is wrong with a cell, with the output of its job."""


def cells():
    every = []
    for form in FORMS:
        for framework in form.frameworks:
            every += [(form, framework, arrangement) for arrangement in ARRANGEMENTS]
    numbered = (Cell(number, *cell) for number, cell in enumerate(every))
    return [cell for cell in numbered if cell.is_possible]


def some():
    wanted = {(file, framework, ARRANGEMENTS[number]) for file, framework, number in SOME}
    found = [c for c in cells() if (c.form.file, c.framework, c.arrangement) in wanted]
    assert len(found) == len(wanted), "SOME names a cell that is not there"
    return found


def elasticdl(*words):
    done = subprocess.run(
        ["elasticdl", *words], capture_output=True, text=True, timeout=STUCK_AFTER_S, check=False
    )
    return done.returncode, done.stdout + done.stderr


def prepare():
    """The zoo, the records, and a Python for each framework, as images would have it."""
    forms, ignored = os.path.join(HERE, "forms"), shutil.ignore_patterns("__pycache__")
    shutil.copytree(forms, "zoo", ignore=ignored)
    for form in form_records.FORMATS:
        form_records.write(f"train-{form}", form, RECORDS, 7, files=3)
        form_records.write(f"test-{form}", form, MEASURED, 8)
    for name in FRAMEWORKS:
        with open(f"python-{name}", "w", encoding="utf-8") as file:
            legacy = int(name == "keras-legacy")
            file.write(
                f"#!/bin/sh\nexport TF_USE_LEGACY_KERAS={legacy} TF_CPP_MIN_LOG_LEVEL=3\n"
                f"exec {sys.executable} \"$@\"\n"
            )
        os.chmod(file.name, 0o755)
    subprocess.run(["chmod", "-R", "a+rX", "."], check=True)


def data(form, of):
    folder = os.path.abspath(f"{of}-{form.records}")
    return f"{folder}.csv" if form.records in form_records.TEXTS else folder


class Job:
    """A job of a cell that was submitted and has succeeded, with its output."""

    def __init__(self, cell, word, command, *flags):
        self.name = f"forms{os.getpid()}-{cell.number}-{word}"
        code, said = elasticdl(*command, f"--job_name={self.name}", *flags)
        if code != 0:
            raise Wrong(f"{self.name} is not accepted: {said}")
        code, said = elasticdl("wait", self.name)
        self.log = elasticdl("logs", self.name)[1]
        self.workers = self._logs_of_workers()
        self.check(code == 0, f"it does not succeed: {said}")

    def _logs_of_workers(self):
        labels = f"elasticdl_job_name={self.name},elasticdl-replica-type=worker"
        listed = elasticdl("pods", "-l", labels, "--no-headers")[1]
        pods = [line.split()[0] for line in listed.splitlines()]
        return [elasticdl("logs", self.name, "--pod", pod)[1] for pod in pods]

    def check(self, is_right, what):
        """Raises unless it is right."""
        if not is_right:
            logs = ("\n".join(log.splitlines()[-40:]) for log in (self.log, *self.workers))
            raise Wrong("\n--- ".join([f"{self.name}: {what}", *logs]))

    def found(self, pattern):
        """The matches of a pattern in the output of each worker that has any."""
        every = ([found.groupdict() for found in re.finditer(pattern, log)] for log in self.workers)
        return [found for found in every if found]


def final(cell, word, *flags):
    """A command line of the final form."""
    parts = (("worker", 2048), ("ps", 512), ("master", 512))
    requests = [f"--{part}_resource_request=cpu=0.5,memory={size}Mi" for part, size in parts]
    shared = [f"--num_ps_pods={cell.arrangement.servers}"]
    if cell.arrangement.servers == 0:
        shared = ["--distribution_strategy=AllreduceStrategy"]
    python = os.path.abspath(f"python-{cell.framework}")
    shared += [f"--image_name={python}", f"--num_workers={cell.arrangement.workers}"]
    if cell.form.kind == "final":
        shared += [f"--model_zoo={os.path.abspath('zoo')}", f"--model_def={cell.form.file}"]
    return [word, *requests, *shared, f"--minibatch_size={MINIBATCH}", *flags]


def training(cell, folder):
    """The command line of the training."""
    trained, python = data(cell.form, "train"), os.path.abspath(f"python-{cell.framework}")
    if cell.form.kind == "first":
        model, codec = os.path.abspath(f"zoo/{cell.form.file}.py"), cell.form.records
        return [
            *(f"--model_file={model}", f"--train_data_dir={trained}", f"--num_epoch={EPOCHS}"),
            *(f"--minibatch_size={MINIBATCH}", f"--record_per_task={MINIBATCH}"),
            *(f"--num_worker={cell.arrangement.workers}", f"--image_base={python}"),
            f"--grads_to_wait={cell.arrangement.workers}",
            f"--codec_type={'bytes' if codec == 'bytes' else 'tf_example'}",
        ]
    if cell.form.kind == "loop":
        script = os.path.abspath(f"zoo/{cell.form.file}.py")
        command = shlex.join([python, script, trained, str(EPOCHS)])
        return final(cell, "train", f"--job_command={command}", f"--checkpoint_dir={folder}")
    measured = [flag.format(measured=data(cell.form, "test")) for flag in cell.arrangement.flags]
    return final(
        cell,
        "train",
        *(f"--training_data={trained}", f"--num_epochs={EPOCHS}", "--log_loss_steps=1"),
        *(f"--checkpoint_dir={folder}", f"--output={folder}/output", *measured),
    )


def loss_of(job, form):
    """The loss at the first version and over the last ones, and how many workers trained."""
    # A task of the first form is a minibatch.
    by_task = r"version (?P<version>\d+), loss (?P<loss>\S+)\n"
    by_step = r"Loss (?P<loss>\S+) at step \d+, version (?P<version>\d+)\n"
    logs = job.found(by_task if form.kind == "first" else by_step)
    found = sorted((int(one["version"]), float(one["loss"])) for log in logs for one in log)
    job.check(len(found) >= RECORDS * EPOCHS // MINIBATCH, "it has too few lines about the loss")
    first, last = found[0][0], found[-12:]
    before = np.mean([loss for version, loss in found if version == first])
    return Found(float(before), float(np.mean([loss for _, loss in last])), len(logs))


def train(cell, folder):
    """Trains, and checks that each record counts once an epoch."""
    job = Job(cell, "train", training(cell, folder))
    count = RECORDS * EPOCHS
    job.check(
        f"job {job.name} succeeded: {count} records (0 unreadable) in " in job.log
        and "; 0 were handed back, 0 were lost with a worker, 0 failed" in job.log,
        "its closing line",
    )
    if cell.form.kind != "loop":
        said = f"; the model has the gradients of {count} records"
        job.check(said in job.log or cell.arrangement.servers == 0, "the gradients are not those")
    is_measured = cell.form.kind == "final" and MEASURES[0] in cell.arrangement.flags
    evaluated = re.findall(r"^Evaluation: version \d+, (\d+) records: ", job.log, re.M)
    right = set(evaluated) == {str(MEASURED)} if is_measured else not evaluated
    job.check(right, "the evaluations during the training")
    found = loss_of(job, cell.form)
    job.check(found.after < found.before * 0.6, f"the loss does not fall: {found}")
    return found


def use(cell, folder):
    """Measures the trained model, predicts with it and applies its export; returns the accuracy, on
    which the three agree."""
    tested = data(cell.form, "test")
    flags = f"--checkpoint_dir_for_init={folder}"
    job = Job(cell, "evaluate", final(cell, "evaluate", f"--validation_data={tested}", flags))
    line = rf"^Evaluation: .*{MEASURED} records: (?:logits\.)?accuracy (\S+)$"
    found = re.search(line, job.log, re.M)
    job.check(found, "its evaluation")
    accuracy = float(found[1])
    job.check(accuracy > 0.75, f"an accuracy of {accuracy}")
    flags = (f"--prediction_data={tested}", flags, PREDICTS)
    job = Job(cell, "predict", final(cell, "predict", *flags))
    logs = job.found(r"predicted (?P<labels>[-\d ]+)\n")
    predicted = [label for log in logs for one in log for label in one["labels"].split()]
    points, ids, labels = form_records.points(MEASURED, 8)
    job.check(len(predicted) == MEASURED, f"{len(predicted)} predictions")
    if cell.form.has_classes:
        # At least so many of them are wrong as a label is predicted too often.
        counts = np.bincount(np.array(predicted, int), minlength=3) - np.bincount(labels)
        wrong = round((1 - accuracy) * MEASURED)
        job.check(np.maximum(counts, 0).sum() <= wrong, f"the labels {predicted}")
    with EXPORTS:
        exported = right_of_export(os.path.join(folder, "output"), points, ids, labels)
    job.check(abs(exported - accuracy) < 1 / MEASURED, f"the export has {exported}, not {accuracy}")
    return accuracy


# TensorFlow is loaded once, and its models one after the other.
EXPORTS = threading.Lock()


def result(cell):
    """The results of a cell, or what is wrong."""
    folder = os.path.abspath(f"models/{cell.number}")
    os.makedirs(folder)
    os.chmod(folder, 0o777)
    try:
        found = train(cell, folder)
        if cell.form.kind == "final":
            found = found._replace(accuracy=use(cell, folder))
        return found
    except (Wrong, subprocess.TimeoutExpired) as error:
        return error


def table(results):
    """The results of a framework as Markdown: a row for each form."""
    lines = [["form", *(one.name for one in ARRANGEMENTS)], ["---"] * (len(ARRANGEMENTS) + 1)]
    by_place = {(cell.form, cell.arrangement): found for cell, found in results.items()}
    for form in dict.fromkeys(cell.form for cell in results):
        found = (by_place.get((form, arrangement)) for arrangement in ARRANGEMENTS)
        lines.append([form.name, *map(shown, found)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def shown(found):
    """A result in a few characters."""
    if not isinstance(found, Found):
        return "WRONG" if found else "–"
    accuracy = "" if np.isnan(found.accuracy) else f", {100 * found.accuracy:.1f} %"
    return f"{found.before:.2f} → {found.after:.2f}{accuracy}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true", help="all cells of the table")
    parser.add_argument("--framework", choices=FRAMEWORKS, help="the forms of this one only")
    parser.add_argument("--only", default="", help="pattern of the file of a form")
    parser.add_argument("--at-once", type=int, default=2, help="jobs at the same time")
    options = parser.parse_args()
    chosen = cells() if options.all else some()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    named = options.framework
    chosen = [cell for cell in chosen if named in (None, cell.framework)]
    chosen = [cell for cell in chosen if re.search(options.only, cell.form.file)]
    prepare()
    results = {}
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as threads:
        for cell, found in zip(chosen, threads.map(result, chosen)):
            results[cell] = found
            where = f"{cell.form.file} with {cell.framework}, {cell.arrangement.name}"
            print(f"{where}: {found}", flush=True)
    for framework in FRAMEWORKS:
        of_it = {cell: found for cell, found in results.items() if cell.framework == framework}
        if of_it:
            print(f"\n{framework}\n\n{table(of_it)}\n")
    wrong = sum(not isinstance(found, Found) for found in results.values())
    print(f"{len(results)} cells, {wrong} of them wrong")
    return int(wrong > 0 or not results)


if __name__ == "__main__":
    sys.exit(main())
