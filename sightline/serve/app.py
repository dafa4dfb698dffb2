"""The application: the API behind its guard, the page, and a graceful start and stop."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

import sightline
from sightline.errors import SightlineError, unknown_name
from sightline.serve.api import build_api
from sightline.serve.guard import LOOPBACK, Guard
from sightline.serve.limits import Limits, Refused
from sightline.serve.work import Workers

log = logging.getLogger("sightline.serve")
MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# The page is made of these files, and no other is served.
PAGE = "sightline.serve"
FILES = {
    "/": ("sightline.serve", "page/index.html"),
    "/static/figure.js": ("sightline.view", "figure.js"),
    "/static/figure.css": ("sightline.view", "figure.css"),
}


def create_app(
    models: Mapping[str, Any],
    limits: Limits | None = None,
    *,
    hosts: Iterable[str] = LOOPBACK,
    token: str | None = None,
    folder: Path | None = None,
) -> FastAPI:
    """Make the application for some models, by name: a folder, a name on the hub, or a loaded model.

    `hosts` are the names that it answers to; with a `token` only those who know it are answered.
    `folder` holds runs and studies to show.
    """
    limits = limits or Limits()
    workers = Workers(dict(models), limits)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        workers.start()
        yield
        workers.stop()

    app = FastAPI(
        title="Sightline",
        version=sightline.__version__,
        description="Which inputs a neural text model used for each output.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # the usual pages load their scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.workers = workers
    app.include_router(build_api(workers, limits, folder))
    for path, (package, name) in static_files().items():
        app.add_api_route(path, _file_route(package, name), methods=["GET"], include_in_schema=False)
    app.add_exception_handler(SightlineError, _refuse)
    app.add_exception_handler(RequestValidationError, _refuse_body)
    app.add_exception_handler(HTTPException, _refuse_plainly)
    app.add_exception_handler(Exception, _fail)
    app.add_middleware(
        Guard, hosts=hosts, token=token, body_bytes=limits.body_bytes, longer={"/api/page": limits.picture_bytes}
    )
    return app


def static_files() -> dict[str, tuple[str, str]]:
    """List the files of the page by the path they are served at."""
    own = sorted(one.name for one in files(PAGE).joinpath("page").iterdir())
    return FILES | {f"/static/{name}": (PAGE, f"page/{name}") for name in own if name != "index.html"}


def _file_route(package: str, name: str) -> Any:
    async def send_file() -> Response:
        content = files(package).joinpath(name).read_bytes()
        return Response(content, media_type=MEDIA_TYPES[Path(name).suffix], headers={"cache-control": "no-cache"})

    return send_file


async def _refuse(_request: Request, error: Exception) -> Response:
    status = error.status if isinstance(error, Refused) else 422
    headers = {"retry-after": "1"} if status in (429, 503) else {}
    return JSONResponse({"error": str(error)}, status, headers)


async def _refuse_body(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:])
    if first["type"] == "json_invalid":
        return JSONResponse({"error": "The body is not valid JSON."}, 400)
    if first["type"] == "extra_forbidden" and len(first["loc"]) == 2:
        return JSONResponse({"error": str(unknown_name("key", place, _keys(_request)))}, 422)
    return JSONResponse({"error": f"{place or 'The body'}: {first['msg']}."}, 422)


def _keys(request: Request) -> list[str]:
    """List the keys that the route's body may have."""
    field = getattr(request.scope.get("route"), "body_field", None)
    model = getattr(getattr(field, "field_info", None), "annotation", None)
    return list(getattr(model, "model_fields", {}))


async def _refuse_plainly(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentences = {404: "There is nothing at this address.", 405: "This address does not take that method."}
    return JSONResponse(
        {"error": sentences.get(error.status_code, str(error.detail))}, error.status_code, error.headers
    )


async def _fail(_request: Request, error: Exception) -> Response:
    log.error("A request failed", exc_info=error)
    return JSONResponse({"error": "Something went wrong here: see the server's log."}, 500)
