"""What matters for a bug report: versions, the machine, and which parts of Sightline are there. `sightline doctor`."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, requires
from typing import Any

import torch
from packaging.requirements import Requirement

from sightline.data.corpora import data_folder
from sightline.errors import DISTRIBUTION, InputError
from sightline.models.box import BOX_MODEL, box_folder, has_box_model
from sightline.provenance import commit, find_version, versions

FOR_DEVELOPERS = ("test", "dev", "bench")
VARIABLES = ("SIGHTLINE_BOX", "SIGHTLINE_DATA", "OMP_NUM_THREADS", "OMP_WAIT_POLICY", "CUDA_VISIBLE_DEVICES", "HF_HOME")


def diagnose() -> dict[str, Any]:
    """Examine this installation; the result is ready for JSON."""
    return {
        "versions": versions(),
        "commit": commit(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "devices": _devices(),
        "extras": _extras(),
        "model in the box": _box_model(),
        "folder of corpora": _data_folder(),
        "environment": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def _devices() -> list[str]:
    if torch.cuda.is_available():
        return [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    return [torch.accelerator.current_accelerator().type] if torch.accelerator.is_available() else ["cpu"]  # type: ignore[union-attr]


def _extras() -> dict[str, dict[str, str | None]]:
    """List the packages of each optional part, with their versions; None where one is missing."""
    extras: dict[str, dict[str, str | None]] = {}
    for requirement in map(Requirement, _requirements()):
        marker = str(requirement.marker or "")
        extra = marker.partition('extra == "')[2].rstrip('"')
        if extra and extra not in FOR_DEVELOPERS and requirement.name != DISTRIBUTION:
            extras.setdefault(extra, {})[requirement.name] = find_version(requirement.name)
    return extras


def _requirements() -> list[str]:
    try:
        return requires(DISTRIBUTION) or []
    except PackageNotFoundError:  # run from its source without being installed
        return []


def _box_model() -> str | None:
    if not has_box_model():
        return None
    size = sum(file.stat().st_size for file in box_folder().rglob("*") if file.is_file())
    return f"{BOX_MODEL}, {size / 1e6:.1f} MB, in {box_folder()}"


def _data_folder() -> str | None:
    try:
        return str(data_folder())
    except InputError:
        return None
