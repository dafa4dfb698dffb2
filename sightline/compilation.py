"""Compiling with numba, also where compiled functions cannot be kept on the disk.

numba keeps them next to the package or in the user's cache folder (`NUMBA_CACHE_DIR` names another). Where none of them
can be written, it would refuse to compile at all; here, functions are then compiled anew in each process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba

from sightline.forking import begin_threads


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function as `numba.njit` does, with `cache` only where there is a place for it."""

    def compile_function(function: Callable[..., Any]) -> Any:
        if not cache:
            return numba.njit(**options)(function)
        try:
            compiled = numba.njit(cache=True, **options)(function)
        except RuntimeError:  # "no locator available": neither the package nor the home can be written
            return numba.njit(**options)(function)
        keep = compiled._cache.save_overload

        def keep_if_possible(*arguments: Any) -> None:
            with suppress(OSError):  # a full disk is no reason not to run what is compiled
                keep(*arguments)

        compiled._cache.save_overload = keep_if_possible
        return compiled

    return compile_function


def begin_parallel_loops(what: str) -> None:
    """Start numba's threads for `what`, which is refused in a process that was forked after such work.

    Torch and numba share OpenMP, in which a thread that starts numba's threads is set to one for each core, whatever
    `torch.set_num_threads` or OMP_NUM_THREADS said: torch would then add up in another order there, and give slightly
    different numbers. So a thread that ends at once starts them.
    """
    begin_threads(what)
    starter = threading.Thread(target=numba.get_num_threads)
    starter.start()
    starter.join()
