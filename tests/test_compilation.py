"""Compiled functions work where they cannot be kept: on a read-only installation without a home, on a full disk."""

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
