"""What every test shares: no network, one thread a worker (or SIGHTLINE_TEST_THREADS), seeds."""

import os
from collections.abc import Iterator

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import pytest
import torch
from browser import needs_browser, start_browser
from hypothesis import HealthCheck, settings

THREADS = int(os.environ.get("SIGHTLINE_TEST_THREADS", "1"))
torch.set_num_threads(THREADS)
settings.register_profile("offline", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("offline")


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    torch.manual_seed(0)
    yield
    torch.set_num_threads(THREADS)  # numba's loops, run by themselves, change it for torch too


@pytest.fixture(scope="module")
def browser():
    """Start the system's browser, where it has one."""
    needs_browser()
    with start_browser() as started:
        yield started
