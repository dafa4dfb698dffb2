"""A forked process says what to do; it neither hangs nor dies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ALIGNER = """
from sightline.alignment.bitext import build_bitext
from sightline.alignment.statistical import train_aligner

def work():
    return train_aligner(build_bitext([(["a", "b"], ["x", "y"])]), "ibm1")
"""
MODEL = """
import torch
import zoo
import sightline

torch.set_num_threads(2)
model = zoo.model("marian")
torch.randn(1000, 1000).softmax(-1)  # large enough for several threads

def work():
    return sightline.explain(model, "The cat", "El gato")
"""
FORK = """
import multiprocessing
from sightline.errors import InputError

def in_child(told):
    try:
        work()
        told.put("worked")
    except InputError as error:
        told.put(str(error))

def forked():
    context = multiprocessing.get_context("fork")
    told = context.Queue()
    child = context.Process(target=in_child, args=(told,), daemon=True)
    child.start()
    said = told.get(timeout=60)
    child.join(60)
    return said, child.exitcode

{before}
print(*forked())
"""


def run(code: str, before: str) -> str:
    script = "import sys; sys.path.insert(0, sys.argv[1])" + code + FORK.format(before=before)
    command = [sys.executable, "-c", script, str(Path(__file__).parent)]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=True).stdout.strip()


@pytest.mark.parametrize(("code", "what"), [(ALIGNER, "A statistical aligner"), (MODEL, "A model")])
def test_after_a_fork_it_is_said_what_to_do(code: str, what: str) -> None:
    said = run(code, "work()")
    assert said.startswith(f"{what} cannot be used in a forked process")
    assert 'get_context("spawn")' in said
    assert said.endswith(" 0")


def test_a_parent_that_did_not_compute_may_fork() -> None:
    assert run(ALIGNER, "") == "worked 0"


def test_one_thread_may_be_forked() -> None:
    assert run(MODEL.replace("set_num_threads(2)", "set_num_threads(1)"), "work()") == "worked 0"
