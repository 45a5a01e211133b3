"""The door of the desk: who comes in, and what no answer may leave without.

Every request passes here before any page: the address it was sent to, its size and the time it
takes to arrive, the cookie of its session, and for anything but reading that it comes from a page
of this desk. What goes wrong is answered in a few words and never logged: a traceback may quote a
record.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from congenial.errors import PlanError

LARGEST_REQUEST = 2 * 2**20  # bytes
SLOWEST_REQUEST = 15.0  # seconds for a request to arrive
SLOWEST_ANSWER = 90.0  # seconds for an answer to a form
SLOWEST_WORK = 900.0  # seconds for the work behind a page
PATIENCE = 2.0  # seconds after which a page shows how far its work is
AT_ONCE = 4  # pages that are worked out at the same time


@dataclass(frozen=True)
class DeskSettings:
    """One desk, of the person who started it: a link with a token that works once opens it."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 0
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            raise PlanError(f"there is no folder '{self.folder}'.", remedy="Give one with plans.")
        if self.host not in ("127.0.0.1", "::1"):
            raise PlanError(
                f"a desk listens on this machine only, not on '{self.host}'.",
                remedy="Use 127.0.0.1 or ::1. Colleagues run a desk of their own.",
            )

    def origins(self, port: int) -> tuple[str, ...]:
        """The addresses that a browser may have it under."""
        return (f"http://127.0.0.1:{port}", f"http://localhost:{port}", f"http://[::1]:{port}")


COOKIE = "congenial_desk"
ENTER = "/enter"
STATIC = "/static/"

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-store",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
_READING = ("GET", "HEAD")


@dataclass(frozen=True)
class Session:
    """One browser that came in by the link, and the secret of its forms."""

    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)


class Refused(Exception):
    """A request that is not let in: the status and a few words."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


class Door:
    """ASGI middleware around the pages of a desk."""

    def __init__(self, app: ASGIApp, settings: DeskSettings) -> None:
        self.app = app
        self.settings = settings
        self._token = settings.token
        self._sessions: dict[str, Session] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no web sockets here
        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                _add_headers(message)
            await send(message)

        try:
            answer = await self._admit(scope, receive)
        except Refused as no:
            answer = PlainTextResponse(f"{no.words}\n", no.status)
        except Exception:  # noqa: BLE001 - of the door itself; its text stays out
            answer = PlainTextResponse("The request cannot be read.\n", 400)
        if isinstance(answer, Response):
            await answer(scope, receive, guarded)
            return
        try:
            await self.app(scope, answer, guarded)
        except Exception as error:  # noqa: BLE001 - its text may quote a record
            if not started:
                words = f"Unexpected error: {type(error).__name__}. Nothing more is said here.\n"
                await PlainTextResponse(words, 500)(scope, receive, guarded)

    async def _admit(self, scope: Scope, receive: Receive) -> Response | Receive:
        """The request's body for the pages, or the answer right away."""
        headers = Headers(scope=scope)
        self._check_address(scope, headers)
        if scope["path"] == ENTER:
            return self._enter(scope, headers)
        if scope["path"].startswith(STATIC) and scope["method"] in _READING:
            return receive
        session = self._session(headers)
        if session is None:
            raise Refused(401, "Open the desk by the link that `congenial desk` printed.")
        scope.setdefault("state", {})["session"] = session
        if scope["method"] in _READING:
            return receive
        if scope["method"] != "POST":
            raise Refused(405, "This is not done here.")
        self._check_origin(scope, headers)
        body = await _body(headers, receive)
        _check_form(session, headers, body)
        return _again(body, receive)

    def _origins(self, scope: Scope) -> tuple[str, ...]:
        return self.settings.origins((scope.get("server") or ("", self.settings.port))[1])

    def _check_address(self, scope: Scope, headers: Headers) -> None:
        """A name that leads here by a trick of name servers is not one of ours."""
        hosts = [urlsplit(origin).netloc for origin in self._origins(scope)]
        if headers.get("host", "").lower() not in hosts:
            raise Refused(421, "The desk is not at this address.")

    def _enter(self, scope: Scope, headers: Headers) -> Response:
        """Exchange the one-time token for a session; whoever has one goes on with it."""
        if scope["method"] == "GET" and self._session(headers) is not None:
            return RedirectResponse("/", 303)
        query = parse_qs(scope["query_string"].decode("latin-1"))
        token = query.get("token", [""])[0]
        if scope["method"] != "GET" or not self._token or not _same(token, self._token):
            raise Refused(
                401,
                "This link was used before, or is not right. "
                "End the desk and start it again: it prints a new link.",
            )
        self._token = ""
        key = secrets.token_urlsafe(32)
        self._sessions[key] = Session()
        answer = RedirectResponse("/", 303)
        answer.set_cookie(COOKIE, key, httponly=True, samesite="strict", path="/")
        return answer

    def _session(self, headers: Headers) -> Session | None:
        return self._sessions.get(cookie_parser(headers.get("cookie", "")).get(COOKIE, ""))

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        """A form of another site is not ours, whatever it holds."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and origin not in self._origins(scope):
            raise Refused(403, "The form came from another site.")
        if site is not None and site != "same-origin":
            raise Refused(403, "The form came from another site.")


def _check_form(session: Session, headers: Headers, body: bytes) -> None:
    """The secret of this session, in a header or as the form's first field."""
    token = headers.get("x-csrf-token", "")
    kind = headers.get("content-type", "").partition(";")[0].strip()
    if not token and kind == "application/x-www-form-urlencoded":
        token = parse_qs(body.decode("latin-1")).get("csrf", [""])[0]
    elif kind not in ("application/x-www-form-urlencoded", "application/json"):
        raise Refused(415, "The desk takes forms and JSON.")
    if not _same(token, session.csrf):
        raise Refused(403, "The form is not from a page of this desk. Open the page again.")


async def _body(headers: Headers, receive: Receive) -> bytes:
    """The whole body, if it is not too large and does not take too long."""
    too_large = Refused(413, "The request is too large.")
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > LARGEST_REQUEST:
        raise too_large
    parts = bytearray()
    try:
        async with asyncio.timeout(SLOWEST_REQUEST):
            while True:
                message = await receive()
                parts += message.get("body", b"")
                if len(parts) > LARGEST_REQUEST:
                    raise too_large
                if not message.get("more_body") or message["type"] == "http.disconnect":
                    return bytes(parts)
    except TimeoutError:
        raise Refused(408, "The request took too long to arrive.") from None


def _again(body: bytes, receive: Receive) -> Receive:
    """Hand out a body that was read already."""
    read_before = False

    async def read() -> Message:
        nonlocal read_before
        if read_before:
            return await receive()
        read_before = True
        return {"type": "http.request", "body": body, "more_body": False}

    return read


def _add_headers(message: Message) -> None:
    headers = MutableHeaders(scope=message)
    for name, value in HEADERS.items():
        if name not in headers:
            headers[name] = value


def _same(given: str, expected: str) -> bool:
    return bool(expected) and hmac.compare_digest(given.encode(), expected.encode())
