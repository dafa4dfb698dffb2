"""Compiled functions work where they cannot be kept (read-only places, a full disk), and torch keeps its threads."""

import os
import subprocess
import sys

import pytest

RUN = """
import numpy as np
import sightline.alignment.statistical
from sightline.measures.correlation import kendall_tau
print(kendall_tau(np.array([[1.0, 2, 3]]), np.array([[3.0, 2, 1]])))
"""
NO_PLACE = "import numba.core.caching as c; c.CacheImpl._locator_classes = []"
FULL_DISK = """
import errno, numba.core.caching as c
def fail(self, *arguments):
    raise OSError(errno.ENOSPC, "No space left on device")
c.IndexDataCacheFile.save = fail
c.IndexDataCacheFile.load = lambda self, key: None
"""


@pytest.mark.parametrize("fault", [NO_PLACE, FULL_DISK])
def test_without_a_place_for_compiled_functions(fault):
    run = subprocess.run([sys.executable, "-c", fault + RUN], capture_output=True, text=True, timeout=250)
    assert run.stderr == ""
    assert run.stdout == "[-1.]\n"


AFTER_LOOPS = """
import torch
torch.set_num_threads(1)
torch.get_num_threads()  # from the first time on, torch goes by what OpenMP says in this thread
import numba
from sightline.alignment.bitext import build_bitext
from sightline.alignment.statistical import train_aligner
train_aligner(build_bitext([(["a", "b"], ["x", "y"])]), "ibm1")
print(torch.get_num_threads(), numba.get_num_threads())
"""


def test_torch_keeps_its_number_of_threads():
    environment = os.environ | {"NUMBA_NUM_THREADS": "2"}
    run = subprocess.run(
        [sys.executable, "-c", AFTER_LOOPS], env=environment, capture_output=True, text=True, timeout=250, check=True
    )
    assert run.stdout == "1 2\n"
