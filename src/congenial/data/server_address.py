"""Which servers get a password: those that the person at this machine named, not any of a plan.

libpq sends PGPASSWORD to whatever host an address names, and so it does with the password of a
service and with lines of ~/.pgpass for every host. A plan may come from somebody else.
"""

from __future__ import annotations

import os
from pathlib import Path

from congenial.errors import PlanError

LOCAL = ("localhost", "127.0.0.1", "::1")
# An address beside the host's own, and files of passwords and hosts.
NOT_IN_A_PLAN = ("hostaddr", "passfile", "servicefile")


def refuse_unconfirmed(address: str) -> None:
    """PlanError before a password of this machine goes to a PostgreSQL server that only a plan
    names.

    Its owner's servers are those on this machine, of PGHOST, and of their own service file. A line
    of ~/.pgpass that names the host is a password for it. Addresses that cannot be read are left to
    whoever opens them.
    """
    settings = _settings(address)
    for key in NOT_IN_A_PLAN:
        if key in settings:
            raise PlanError(
                f"a plan must not name {key}: it would decide where passwords are sent.",
                remedy="Leave it out of the address, and set it where you work (PGHOSTADDR, "
                "PGPASSFILE, PGSERVICEFILE).",
            )
    foreign = [host for host in _listed(settings.get("host", "")) if not _own(host)]
    password = _password(settings) if foreign else ""
    if password:
        raise PlanError(
            f"{password} would be sent to '{foreign[0]}', a server that only the plan names.",
            remedy=f"If it is the right one, set PGHOST={foreign[0]}; or unset PGPASSWORD and "
            f"PGSERVICE, and put the password into ~/.pgpass, in a line that starts with "
            f"'{foreign[0]}:'.",
        )


def _settings(address: str) -> dict[str, str]:
    """What the driver would be given; nothing where the address cannot be read."""
    try:
        import sqlalchemy as sa

        engine = sa.create_engine(sa.make_url(address).set(drivername="postgresql+psycopg"))
        given = engine.dialect.create_connect_args(engine.url)[1]
    except Exception:  # noqa: BLE001 - whoever opens it says what is wrong, without quoting it
        return {}
    return {key: str(value) for key, value in given.items()}


def _listed(hosts: str) -> list[str]:
    return [one for one in hosts.split(",") if one]


def _own(host: str) -> bool:
    named = [one.lower() for one in _listed(os.environ.get("PGHOST", ""))]
    return host.startswith(("/", "@")) or host.lower() in (*LOCAL, *named)


def _password(settings: dict[str, str]) -> str:
    """A password that would go to any host, in words; nothing where there is none."""
    if os.environ.get("PGPASSWORD"):
        return "PGPASSWORD"
    if "service" in settings or os.environ.get("PGSERVICE"):
        return "the password of a service (PGSERVICE)"
    try:
        path = Path(os.environ.get("PGPASSFILE") or Path.home() / ".pgpass")
        lines = path.read_bytes().splitlines()
    except (OSError, RuntimeError):
        return ""
    any_host = any(line.startswith(b"*:") for line in lines)
    return "a password of ~/.pgpass for every host (*)" if any_host else ""
