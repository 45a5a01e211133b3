"""Running a desk: a web server on this machine, without logs of what is asked."""

from __future__ import annotations

import signal
import socket

import uvicorn

from congenial.desk.access import ENTER
from congenial.desk.desk_app import build
from congenial.desk.desk_settings import DeskSettings
from congenial.errors import PlanError

IDLE = 20  # seconds a connection may stay silent


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
    if settings.for_a_team:
        return settings.public_origin
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
        limit_concurrency=100,
        h11_max_incomplete_event_size=16_384,
        http="h11",
    )
    return uvicorn.Server(config)


def serve(settings: DeskSettings, open_socket: socket.socket) -> None:
    """Run until interrupted, by Ctrl-C, SIGTERM or SIGHUP; jobs that run are finished before the
    process ends, since what they have drawn is paid for.
    """
    server = server_of(settings)

    def close(*_: object) -> None:
        server.should_exit = True

    for one in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(one) is signal.SIG_DFL:
            signal.signal(one, close)
    server.run(sockets=[open_socket])
