"""Compiling with numba, also where compiled functions cannot be kept on the disk.

numba keeps them next to the package or in the user's cache folder (`NUMBA_CACHE_DIR` names another). Where none of them
can be written, it would refuse to compile at all; here, functions are then compiled anew in each process.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba


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
