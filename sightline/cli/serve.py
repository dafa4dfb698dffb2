"""`sightline serve`: the page and the API, on this machine unless told otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sightline.models.box import BOX_MODEL


def serve(
    model: Annotated[
        list[str],
        typer.Option("-m", "--model", help="A folder, a name on the hub, or en-es; may be given several times."),
    ] = [BOX_MODEL],  # noqa: B006
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port to listen at; 0 takes any that is free.")
    ] = 8400,
    host: Annotated[
        str, typer.Option(help="The address to listen at; others than this machine's own need a token.")
    ] = ("127.0.0.1"),
    allow_host: Annotated[
        list[str], typer.Option("--allow-host", help="A further host name that the page may be opened under.")
    ] = [],  # noqa: B006
    token: Annotated[
        str | None, typer.Option(envvar="SIGHTLINE_TOKEN", help="Secret that clients of other machines must send.")
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    folder: Annotated[Path | None, typer.Option("--runs", help="A folder of runs and studies to show.")] = None,
    seconds: Annotated[float, typer.Option(min=1, help="How long one request may take.")] = 60.0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Serve a page to translate, explain, align and compare on, and its JSON API.

    Example: sightline serve --open
    """
    from sightline.serve.running import run_server

    run_server(
        model,
        host=host,
        port=port,
        hosts=allow_host,
        token=token,
        open_page=open_page,
        folder=folder,
        seconds=seconds,
        quiet=quiet,
    )
