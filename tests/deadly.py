"""A job for the tests, in a module that is quick to import: one of its rows ends the process."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sightline.corpus.jobs import Job
from sightline.corpus.shards import Row

DEADLY = ("die",)


@dataclass(frozen=True, kw_only=True)
class DeadlyJob(Job):
    """Work that ends its process without a word on one row, as the system does when memory runs out."""

    def open(self) -> DeadlyWork:
        return DeadlyWork()


class DeadlyWork:
    models = ()
    blank = "\n"

    def settle(self, rows: Sequence[Row]) -> dict[str, Any]:
        return {}

    def run(self, settled: Mapping[str, Any], numbers: Sequence[int], rows: Sequence[Row]) -> list[str]:
        if DEADLY in rows:
            os.kill(os.getpid(), signal.SIGKILL)
        return [row[0].upper() + "\n" for row in rows]
