"""Work on several threads after a fork: refused, since the threads stay in the parent and the child would wait forever.

Torch hangs in a forked process whose parent computed on several threads, and numba ends it without a word.
"""

from __future__ import annotations

import os

from sightline.errors import InputError

_begun = False
_left_behind = False


def begin_threads(what: str) -> None:
    """Note that work on several threads begins; refuse it in a process that was forked after such work."""
    global _begun
    if _left_behind:
        raise InputError(
            f"{what} cannot be used in a forked process after its parent computed: start processes with "
            'multiprocessing.get_context("spawn"), and load or train it in each.'
        )
    _begun = True


def _note_fork() -> None:
    global _left_behind
    _left_behind = _left_behind or _begun


os.register_at_fork(after_in_child=_note_fork)
