"""Starting the server, and what has to be right before it starts."""

from __future__ import annotations

import ipaddress
import logging
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sightline.errors import InputError, missing_package
from sightline.models.names import check_model_name

TOKEN_LENGTH = 16


def run_server(
    models: Sequence[str],
    *,
    host: str = "127.0.0.1",
    port: int = 8400,
    hosts: Sequence[str] = (),
    token: str | None = None,
    open_page: bool = False,
    folder: Path | None = None,
    seconds: float = 60.0,
    quiet: bool = False,
) -> None:
    """Serve some models until the process is told to stop; what runs then is finished or stopped first."""
    _check_address(host, token)
    for name in models:
        check_model_name(name)
    try:
        import uvicorn

        from sightline.serve.app import create_app
        from sightline.serve.guard import LOOPBACK
        from sightline.serve.limits import Limits
        from sightline.serve.runs import find_runs
    except ImportError as error:
        raise missing_package("The server", error) from None
    _check_address(host, token)
    if folder is not None:
        find_runs(folder)
    names = list(dict.fromkeys(models))
    app = create_app(
        {_short_name(name): name for name in names},
        Limits(seconds=seconds),
        hosts=(*LOOPBACK, host, *hosts),
        token=token,
        folder=folder,
    )
    listening = _listen(host, port)
    address = f"http://{_in_address(host)}:{listening.getsockname()[1]}/"
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="sightline: %(message)s")
    if not quiet:
        print(f"Sightline is at {address}{'?token=...' if token else ''} (Ctrl-C stops it)", flush=True)
    if open_page:
        threading.Thread(target=_open, args=(app.state.workers, address, token), daemon=True).start()
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=10, lifespan="on"
    )
    uvicorn.Server(config).run(sockets=[listening])


def _short_name(name: str) -> str:
    """Return what clients call a model: the last part of a folder, never its path."""
    return Path(name).name if Path(name).exists() else name


def _check_address(host: str, token: str | None) -> None:
    if token is not None and len(token) < TOKEN_LENGTH:
        raise InputError(f"The token has {len(token)} characters: give at least {TOKEN_LENGTH}, chosen at random.")
    if token is None and not _is_loopback(host):
        raise InputError(
            f"At {host} others can reach this server: give --token with at least {TOKEN_LENGTH} characters, "
            "or leave --host out."
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except OSError as error:
        raise InputError(
            f"The server cannot listen at {host}, port {port}: {error.strerror}. Try another --port."
        ) from None
    return listening


def _open(workers: Any, address: str, token: str | None) -> None:
    while not workers.are_ready:
        time.sleep(0.1)
    webbrowser.open(address + (f"?token={token}" if token else ""))
