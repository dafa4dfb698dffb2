"""What stands before every answer: who may ask, from which page, how much, and the headers that protect the page.

Only the server's own page may use it from a browser. A page of another site is refused by its `Origin`, a name that
was rebound to this machine's address by the `Host`. Beyond this machine a token is needed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from http.cookies import SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
COOKIE = "sightline-token"
OPEN_PATHS = ("/health", "/ready")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Guard:
    """Middleware that refuses what it should not answer, and adds headers to what it does."""

    def __init__(
        self,
        app: ASGIApp,
        hosts: Iterable[str],
        token: str | None,
        body_bytes: int,
        longer: Mapping[str, int],
    ) -> None:
        self.app = app
        self.hosts = frozenset(host.lower() for host in hosts)
        self.token = token
        self.body_bytes = body_bytes
        self.longer = longer  # by path, where a body may be longer than elsewhere

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self._refusal(scope, headers)
        if refusal is None and self.token is not None and (given := _token_in_query(scope)) is not None:
            await self._exchange(scope, given, send_guarded)
        elif refusal is not None:
            await _answer(send_guarded, *refusal)
        else:
            await self.app(scope, receive, send_guarded)

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if _host_name(host) not in self.hosts:
            return (
                421,
                "This server does not answer to that host name: use the address that it printed when it started.",
            )
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return 403, "Only this server's own page may use it from a browser."
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return 403, "Only this server's own page may use it from a browser."
        if scope["method"] in ("POST", "PUT", "PATCH"):
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                return 415, "The body should be JSON, with the header Content-Type: application/json."
            length = headers.get("content-length", "")
            if not length.isdecimal():
                return 411, "The body should have a known length: send the header Content-Length."
            most = self.longer.get(scope["path"], self.body_bytes)
            if int(length) > most:
                return 413, f"The body is longer than the {most:,} bytes that this server takes."
        if scope["path"] not in OPEN_PATHS and not self._is_known(scope, headers):
            return 401, "This server asks for its token: open the address with ?token=, or send Authorization: Bearer."
        return None

    def _is_known(self, scope: Scope, headers: Headers) -> bool:
        if self.token is None:
            return True
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(bearer.encode(), self.token.encode()):
            return True
        cookies = SimpleCookie()
        cookies.load(headers.get("cookie", ""))
        if COOKIE in cookies and hmac.compare_digest(cookies[COOKIE].value.encode(), _digest(self.token).encode()):
            return True
        return _token_in_query(scope) is not None and self._is_right(_token_in_query(scope))

    def _is_right(self, given: str | None) -> bool:
        return self.token is not None and hmac.compare_digest((given or "").encode(), self.token.encode())

    async def _exchange(self, scope: Scope, given: str, send: Send) -> None:
        """Turn the token of an address into a cookie, so that it stays neither in the address nor in logs."""
        if not self._is_right(given):
            await _answer(send, 401, "That is not this server's token.")
            return
        assert self.token is not None
        cookie = f"{COOKIE}={_digest(self.token)}; Path=/; HttpOnly; SameSite=Strict"
        headers = [(b"location", scope["path"].encode() or b"/"), (b"set-cookie", cookie.encode())]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def _host_name(host: str) -> str:
    """Return the name in a Host header, without its port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _token_in_query(scope: Scope) -> str | None:
    values = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token")
    return values[0] if values and scope["method"] == "GET" else None


def _digest(token: str) -> str:
    return hashlib.sha256(b"sightline cookie " + token.encode()).hexdigest()


async def _answer(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"error": sentence}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
