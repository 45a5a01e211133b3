"""Running a desk: a web server on this machine, without logs of what is asked."""

from __future__ import annotations

import asyncio
import signal
import socket

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from congenial.desk.access import ENTER, DeskSettings
from congenial.desk.desk_app import build
from congenial.errors import PlanError

IDLE = 20  # seconds a connection may stay silent after an answer
SLOWEST_HEAD = 5.0  # seconds for the head of a request to arrive
MOST_AT_ONCE = 100  # connections
MOST_WAITING = 50  # connections on which no request has come yet


class PromptHeads(H11Protocol):
    """HTTP in which a connection is ended that never sends a whole head.

    uvicorn waits for ever for a head, also where single bytes trickle in, and after an answer for
    the rest of a body that nobody reads; a hundred such connections would keep everybody out. Where
    many wait, the one that has waited longest makes room.
    """

    _deadline: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> bool:
        """Whether it is open, and no request is being answered."""
        busy = self.cycle is not None and not self.cycle.response_complete
        return not busy and not self.transport.is_closing()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock, and make room."""
        super().connection_made(transport)
        self._watch()
        others = [
            connection
            for connection in self.connections
            if isinstance(connection, PromptHeads) and connection.waiting
        ]
        if len(others) > MOST_WAITING:
            min(others, key=lambda one: one.since).transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take what came; a whole head stops the clock, anything less does not."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if not self.waiting:
            self._stop()
        elif self._deadline is None:
            self.since = self.loop.time()
            self._deadline = self.loop.call_later(SLOWEST_HEAD, self.transport.abort)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def listen(settings: DeskSettings) -> socket.socket:
    """The socket of a desk; port 0 takes one that is free."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family)
    except OSError as reason:
        raise PlanError(
            f"the desk cannot listen on {settings.host}, port {settings.port}: {reason.strerror}.",
            remedy="Choose another with --port.",
        ) from None


def link(settings: DeskSettings, port: int) -> str:
    """What a person opens in the browser."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{port}{ENTER}?token={settings.token}"


def server_of(settings: DeskSettings) -> uvicorn.Server:
    """The server; it writes no line about requests, and names neither itself nor the time."""
    config = uvicorn.Config(
        build(settings),
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=IDLE,
        limit_concurrency=MOST_AT_ONCE,
        h11_max_incomplete_event_size=16_384,
        http=PromptHeads,
    )
    return uvicorn.Server(config)


def serve(settings: DeskSettings, open_socket: socket.socket) -> None:
    """Run until interrupted, by Ctrl-C, SIGTERM or SIGHUP; jobs that run are finished before the
    process ends, since what they have drawn is paid for.
    """
    server = server_of(settings)

    def close(*_: object) -> None:
        server.should_exit = True

    for signal_number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(signal_number) is signal.SIG_DFL:
            signal.signal(signal_number, close)
    server.run(sockets=[open_socket])
