"""Studies: one paper a folder. What it claims, how it is measured, the paper's own figures beside ours.

To add a study, write a folder whose `study.py` has a `STUDY` (`sightline.studies.study` says what that is), and a line
here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from sightline.errors import unknown_name

if TYPE_CHECKING:
    from sightline.studies.study import Study

STUDIES = {
    "calibration": "sightline.studies.calibration.study",
    "learning": "sightline.studies.learning.study",
    "norms": "sightline.studies.norms.study",
    "saliency": "sightline.studies.saliency.study",
    "sparsity": "sightline.studies.sparsity.study",
}
"""The module of each study, which is loaded when it is asked for."""


def find_study(name: str) -> Study:
    """Find a study by its name."""
    if name not in STUDIES:
        raise unknown_name("study", name, STUDIES)
    return import_module(STUDIES[name]).STUDY
