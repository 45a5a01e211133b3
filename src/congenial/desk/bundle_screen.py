"""A published bundle: what it promises, whether it verifies, its report and its files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from starlette.responses import FileResponse, Response

from congenial.desk.visit import NotHereError, Visit
from congenial.errors import CongenialError
from congenial.ledger.budget import in_words
from congenial.publication.bundle import DIGEST, INDEX, read, read_index
from congenial.publication.verification import verification_document
from congenial.report.words import blocks

# A report is ours, yet bundles travel: it runs nothing, and reaches nothing of the desk.
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def _folder(visit: Visit) -> Path:
    """The folder of a release of the plan that has a bundle."""
    name = str(visit.route["release"])
    if not _NAME.fullmatch(name) or name not in {one.name for one in visit.plan.release}:
        raise NotHereError("the plan has no such release.", remedy="Start at the plan.")
    folder = visit.path.parent / "bundles" / name
    inside = folder.resolve().is_relative_to(visit.desk.workspace.folder.resolve())
    if not inside or not (folder / INDEX).is_file():
        raise NotHereError(f"'{name}' has no bundle yet.", remedy="Release it first.")
    return folder


def _files(folder: Path) -> list[str]:
    """The files that the bundle lists, and its index."""
    listed = read_index(folder).get("files", {})
    names = [one for one in listed if isinstance(one, str)] + [INDEX, DIGEST]
    return [one for one in names if (folder / one).is_file() and not (folder / one).is_symlink()]


def show_bundle(visit: Visit) -> Response:
    """The bundle of one release."""
    folder = _folder(visit)
    verified: dict[str, Any] = {"holds": False, "checks": []}
    in_short, problem = {}, ""
    try:
        verified = verification_document(folder, progress=visit.tell)
        in_short = read(folder).guarantee.in_short
    except CongenialError as error:
        problem = str(error)
    index = read_index(folder)
    return visit.page(
        "bundle.html",
        name=folder.name,
        in_short=in_short,
        promise=str(index.get("promise", "")),
        now=_now(visit, folder.name),
        publishable=index.get("publishable") is True,
        digest=(folder / DIGEST).read_text(encoding="utf-8").strip(),
        verified=verified,
        written=blocks("verify.txt", verification=verified) if verified["checks"] else [],
        problem=problem,
        files=[{"name": one, "size": (folder / one).stat().st_size} for one in _files(folder)],
    )


def _now(visit: Visit, name: str) -> str:
    """What the release costs now that more may have been published."""
    if visit.ledger is None:
        return ""
    budget = visit.ledger.budget
    say = in_words if budget is None else budget.say
    for one in visit.ledger.prices().releases:
        if one.entry.name == name:
            then, now = say(one.then), say(one.now)
            if then == now:
                return f"This release alone still promises {now}."
            return f"This release alone promised {then}; with what was published since: {now}."
    return ""


def send_file(visit: Visit) -> Response:
    """One file of a bundle; the report to read, the others to keep."""
    folder = _folder(visit)
    name = str(visit.route["file"])
    if name not in _files(folder):
        raise NotHereError("the bundle has no such file.", remedy="Start at the bundle.")
    if name == "report.html" and visit.query.get("keep") != "yes":
        headers = {"content-security-policy": REPORT_POLICY}
        return FileResponse(folder / name, media_type="text/html", headers=headers)
    return FileResponse(
        folder / name, media_type="application/octet-stream", filename=f"{folder.name}-{name}"
    )
