"""Roles: who may read a ledger, review plans, release, publish exact figures, or manage it.

    none       nothing
    reader     read
    reviewer   read, and approve or refuse plans of others; nothing else
    releaser   read, propose plans, reserve, draw, commit and abandon releases
    publisher  also publish exact figures, which nothing protects
    owner      also review, set the budget, change the unit, require approval, grant roles
               and void events that cannot be read

On PostgreSQL a person is a database user, and the database enforces this. In a SQLite file it is
the operating system's user as the program sees it: a guard against accidents, not an access
control, since whoever can write the file can do anything to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from congenial.errors import LedgerError

Role = Literal["none", "reader", "reviewer", "releaser", "publisher", "owner"]
ROLES: tuple[Role, ...] = get_args(Role)

_INCLUDED: dict[Role, tuple[Role, ...]] = {
    "none": (),
    "reader": ("reader",),
    "reviewer": ("reader", "reviewer"),
    "releaser": ("reader", "releaser"),
    "publisher": ("reader", "releaser", "publisher"),
    "owner": ("reader", "reviewer", "releaser", "publisher", "owner"),
}

_NEEDS: dict[str, tuple[Role, str]] = {
    "propose": ("releaser", "propose a plan"),
    "approve": ("reviewer", "approve a plan"),
    "refuse": ("reviewer", "refuse a plan"),
    "withdraw": ("reviewer", "withdraw an approval"),
    "reserve": ("releaser", "reserve a release"),
    "draw": ("releaser", "draw a release"),
    "commit": ("releaser", "commit a release"),
    "abandon": ("releaser", "abandon a release"),
    "mandates": ("publisher", "publish exact figures"),
    "budget": ("owner", "set the budget"),
    "unit": ("owner", "change whose content is protected"),
    "grant": ("owner", "grant roles"),
    "require": ("owner", "require approval"),
    "repair": ("owner", "void an event that cannot be read"),
}


def role_of(roles: Mapping[str, Role], who: str) -> Role:
    """The role of `who`; everybody is an owner until the first role is granted."""
    return roles.get(who, "none") if roles else "owner"


def allowed(roles: Mapping[str, Role], who: str, kind: str) -> bool:
    """Whether `who` may add an event of this kind; kinds not listed are the owner's.

    >>> allowed({"ann": "owner", "bob": "releaser"}, "bob", "reserve")
    True
    >>> allowed({"ann": "owner", "bob": "releaser"}, "bob", "mandates")
    False
    """
    needed = _NEEDS[kind][0] if kind in _NEEDS else "owner"
    return needed in _INCLUDED[role_of(roles, who)]


def check_role(roles: Mapping[str, Role], who: str, kind: str) -> None:
    """LedgerError when `who` may not add an event of this kind."""
    if allowed(roles, who, kind):
        return
    needed, deed = _NEEDS[kind]
    role = role_of(roles, who)
    has = "has no role in this ledger" if role == "none" else f"is a {role} of this ledger"
    owners = ", ".join(f"'{name}'" for name, each_role in roles.items() if each_role == "owner")
    raise LedgerError(
        f"'{who}' {has}, but whoever wants to {deed} needs the role {needed}.",
        remedy=f"Ask an owner ({owners}) for it: `congenial ledger grant LEDGER WHO {needed}`.",
    )


def check_grant(roles: Mapping[str, Role], who: str, role: str) -> Role:
    """The role, if it is one and granting it leaves the ledger with an owner."""
    granted = next((known_role for known_role in ROLES if known_role == role), None)
    if granted is None:
        raise LedgerError(f"'{role}' is not a role.", remedy=f"Use one of {', '.join(ROLES)}.")
    if not who.strip() or not who.isprintable():
        raise LedgerError("a role is granted to a named user.", remedy="Name one.")
    if "owner" not in {**roles, who: granted}.values():
        raise LedgerError(
            f"'{who}' is the only owner: nobody could manage the ledger any more.",
            remedy="Make somebody else an owner first.",
        )
    return granted
