"""A publication of several releases as a site: a first page with a finder over all their tables,
and the bundles as they are. Static: it needs no server and opens from a disk.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from congenial.data.advance import Tell, quiet
from congenial.data.durable_files import rename_synced
from congenial.errors import BundleError
from congenial.publication.bundle import DIGEST, read, read_index, read_text
from congenial.publication.verification import verify
from congenial.report.page_data import packed, rows_of, within_room
from congenial.report.release_page import cite, in_short
from congenial.report.render import page

REPORT = "report.html"
INDEX = "index.html"
SCRIPTS = ("charts.js", "rows.js", "site.js")
COLUMNS = ("base", "low", "high", "from")  # of a table, in the finder

Document = dict[str, Any]


def write_site(
    bundles: Sequence[Path], out: Path, title: str = "", progress: Tell = quiet
) -> Document:
    """Copy bundles into a folder and write its first page; what was written, as plain data.

    bundles: folders; each is verified first, and its name must be its own. out: a folder that does
    not exist yet. title: the heading; by default what the bundles agree to be about.

    The rows of the tables stand in the page, of the smallest tables first, up to
    `page_data.MOST_ROWS`; larger tables are named. Nothing is spent, and no bundle is changed.
    """
    if out.exists():
        raise BundleError(f"'{out}' already exists.", remedy="Choose another --out.")
    folders = {folder.resolve().name: folder for folder in bundles}
    if len(folders) < len(bundles):
        raise BundleError("two bundles have the same folder name.", remedy="Rename one of them.")
    releases = [_release(folder, name, progress) for name, folder in folders.items()]
    releases.sort(key=lambda release: not release["quoted"])
    progress("writing the site")
    written = _page(releases, title)
    partial = out.with_name(f".{out.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        for name, folder in folders.items():
            shutil.copytree(folder, partial / name)
        (partial / INDEX).write_text(written, encoding="utf-8")
        rename_synced(partial, out)
    except OSError as reason:
        shutil.rmtree(partial, ignore_errors=True)
        raise BundleError(
            f"cannot write to '{out}': {reason.strerror}.", remedy="Choose another --out."
        ) from None
    return {"site": str(out / INDEX), "releases": [release["folder"] for release in releases]}


def _release(folder: Path, name: str, progress: Tell) -> Document:
    """What the first page says of a release, and the rows that the page of its report carries."""
    progress(f"checking {name}")
    failed = [check.what for check in verify(folder) if not check.holds]
    if failed:
        raise BundleError(
            f"the bundle '{folder}' does not verify: {failed[0]}.",
            remedy=f"See `congenial verify {folder}`. A site shows only bundles that verify.",
        )
    release = read(folder)
    about = release.schema.about
    rows = rows_of((folder / REPORT).read_text(encoding="utf-8"))
    return {
        "folder": name,
        "report": f"{name}/{REPORT}",
        "title": f"{about.title} ({release.name})" if about.title else release.name,
        "heading": about.title,
        "about": about.told,
        "quoted": about.quote == release.name,
        "in_short": in_short(release.guarantee, read_index(folder)["promise"]),
        "cite": cite(release),
        "digest": read_text(folder / DIGEST).strip(),
        "tables": [] if rows is None else [table["words"] for table in rows["tables"]],
        "rows": rows,
    }


def _page(releases: Sequence[Document], title: str) -> str:
    headings = {release["heading"] for release in releases}
    agreed = headings.pop() if len(headings) == 1 else ""
    with_rows = [release for release in releases if release["rows"]]
    tables = [(release, table) for release in with_rows for table in release["rows"]["tables"]]
    within = within_room([len(table["columns"]["base"]) for _, table in tables])
    chosen = [id(tables[at][1]) for at in within]
    searched = [_searched(release, chosen) for release in with_rows]
    return page(
        "site.html",
        title=title or agreed or "Published tables",
        releases=releases,
        named=[
            f"{table['words']} ({release['title']})"
            for at, (release, table) in enumerate(tables)
            if at not in within
        ],
        example=_example(searched),
        data_block=packed({"releases": searched}) if within else None,
        scripts=SCRIPTS,
    )


def _searched(release: Document, chosen: Sequence[int]) -> Document:
    """Rows of a release as its report has them, without the columns for analysts."""
    rows = release["rows"]
    tables = [
        table
        | {"columns": {key: value for key, value in table["columns"].items() if key in COLUMNS}}
        for table in rows["tables"]
        if id(table) in chosen
    ]
    columns_searched = {key: rows[key] for key in ("release", "level", "axes")}
    return (
        columns_searched
        | {key: release[key] for key in ("title", "report", "quoted")}
        | {"tables": tables}
    )


def _example(searched: Sequence[Document]) -> str:
    """Two labels of the first table with an axis, as an example of what to search for."""
    for release in searched:
        for table in sorted(release["tables"], key=lambda table: -len(table["axes"])):
            levels = [release["axes"][name]["levels"][0] for name in table["axes"][:2]]
            return " ".join(levels)
    return ""
