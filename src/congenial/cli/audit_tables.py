"""`congenial audit` for tables: the black-box attack on a plan's releases, or on a bundle's law."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from congenial.cli.output import Document, console, heading, line, paragraph, table
from congenial.errors import BundleError, CongenialError, PlanError

if TYPE_CHECKING:
    from congenial.mechanisms.mechanism import Mechanism
    from congenial.privacy.tradeoff import Tradeoff

Target = tuple[str, "Mechanism", "Tradeoff"]  # name, what draws, what is promised


@dataclass(frozen=True)
class Settings:
    """How hard to try."""

    draws: int
    pairs: int
    delta: float | None
    seed: int | None


def attack(source: Path, names: tuple[str, ...], settings: Settings, out: Path | None) -> Document:
    """The attack on every table, as plain data."""
    from congenial.audit.black_box import black_box
    from congenial.sampling.randomness import SeededRandomness, SystemRandomness

    found = _of_bundle(source) if source.is_dir() else _of_plan(source)
    if names:
        known = [name for name, _, _ in found]
        for name in names:
            if name not in known:
                raise PlanError(
                    f"no table release is called '{name}'.", remedy=f"Known: {', '.join(known)}."
                )
        found = [one for one in found if one[0] in names]
    audits: list[Document] = []
    for name, mechanism, promised in found:
        seed = settings.seed
        randomness = SystemRandomness() if seed is None else SeededRandomness(seed)
        with _bar(name) as progress:
            result = black_box(
                mechanism,
                promised,
                pairs=settings.pairs,
                draws=settings.draws,
                delta=settings.delta,
                randomness=randomness,
                progress=progress,
            )
        audits.append({"name": name, "seed": seed, **result.to_dict()})
    document: Document = {"audits": audits}
    if out is not None:
        document["files"] = [str(path) for one in audits for path in write(one, out)]
    return document


def _of_plan(path: Path) -> list[Target]:
    """The tables of a plan, drawn already or not, with the figures as published where they are."""
    from congenial.kinds.single_table import SINGLE_TABLE
    from congenial.publication.plan import Plan
    from congenial.publication.workflow import check

    plan = Plan.load(path)
    if not plan.of(SINGLE_TABLE):
        raise CongenialError(
            "the plan releases no table, and no attack is named for what it releases.",
            remedy="For statistics that hide a property use --property.",
        )
    tables = {section.name for section in plan.of(SINGLE_TABLE)}
    checked = [one for one in check(plan, again=True).releases if one.section.name in tables]
    return [(one.section.name, one.mechanism, one.guarantee.tradeoff) for one in checked]


def _of_bundle(folder: Path) -> list[Target]:
    """The law a bundle states, against the promise it states; its values are not used."""
    from congenial.mechanisms.calibrate import rebuild
    from congenial.mechanisms.single_table_release import Release
    from congenial.pairs.adjacency import Adjacency
    from congenial.publication import bundle

    release = bundle.read(folder)
    if not isinstance(release, Release) or not isinstance(release.guarantee.adjacency, Adjacency):
        raise CongenialError(
            f"'{folder}' holds {release.kind}, and no attack is named for them.",
            remedy="Audit a bundle that holds a table.",
        )
    mechanism = rebuild(release.description, release.guarantee.adjacency)
    return [(release.name, mechanism, release.guarantee.tradeoff)]


@contextmanager
def _bar(name: str) -> Iterator[Callable[[float], Any]]:
    """A progress bar on standard error, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import Progress

    with Progress(console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=1.0)
        yield lambda part: bar.update(task, completed=part)


# ---- files -----------------------------------------------------------------------------------


def write(one: Document, folder: Path) -> list[Path]:
    """AUDIT.json, and the trade-off curve as pictures where these can be drawn."""
    from congenial.report import pictures

    try:
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"audit-{one['name']}"
        written = [folder / f"{stem}.json"]
        written[0].write_text(json.dumps(one, indent=1) + "\n", encoding="utf-8")
        if pictures.available() and one["curve"]["rows"]:
            drawn = chart(one)
            for ending in ("svg", "png"):
                written.append(folder / f"{stem}.{ending}")
                options = {"scale_factor": 2} if ending == "png" else {}
                drawn.save(str(written[-1]), format=ending, **options)
    except OSError as reason:
        raise BundleError(
            f"cannot write to '{folder}': {reason.strerror}.",
            remedy="Choose a folder you can write to with --out.",
        ) from None
    return written


def chart(one: Document) -> Any:
    """The measured trade-off function with its band, over the promised one."""
    from congenial.report.pictures import BLUE, INK, altair, styled

    alt = altair()
    keys = ("alpha", "promised", "measured", "low", "high")
    rows = [dict(zip(keys, row, strict=True)) for row in one["curve"]["rows"]]
    promise = "the promise: no test is below this line"
    attacked = "the attack: an estimate; a breach only if the whole 95 % band is below"
    lines = [
        {"alpha": row["alpha"], "f": row[key], "which": which}
        for row in rows
        for key, which in (("promised", promise), ("measured", attacked))
    ]
    scale = alt.Scale(domain=[0, 1])
    x = alt.X("alpha:Q", title=one["curve"]["columns"][0], scale=scale, axis=alt.Axis(tickCount=5))
    y = alt.Y("f:Q", title="type II error", scale=scale, axis=alt.Axis(tickCount=5))
    colour = alt.Color(
        "which:N",
        scale=alt.Scale(domain=[promise, attacked], range=[INK, BLUE]),
        legend=alt.Legend(title=None, orient="bottom", columns=1, labelLimit=480),
    )
    band = (
        alt.Chart(alt.Data(values=rows))
        .mark_area(opacity=0.25, color=BLUE)
        .encode(x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q")
    )
    curves = alt.Chart(alt.Data(values=lines)).mark_line(strokeWidth=1.6)
    drawn = alt.layer(band, curves.encode(x=x, y=y, color=colour))
    title = alt.Title(
        f"{one['name']}: telling two neighbours apart",
        subtitle=[
            f"{one['mechanism']}, {one['promised']}; {one['draws']:,} draws of each pair.",
            "Type I error: one neighbour is taken for the other; type II error: the reverse.",
        ],
        anchor="start",
        offset=12,
    )
    return styled(drawn.properties(width=360, height=360, title=title))


# ---- words -----------------------------------------------------------------------------------


def show(document: Document) -> None:
    """The attack for people."""
    for one in document["audits"]:
        heading(f"Telling neighbours apart by '{one['name']}' ({one['mechanism']})")
        rows = []
        for pair in one["pairs"]:
            values = {f["aim"]: f["value"] for f in pair["findings"]}
            score = next((f["score"] for f in pair["findings"]), "")
            found = [f"{values[aim]:.3f}" if aim in values else "" for aim in one["proved"]]
            rows.append((pair["pair"], score, *found))
        rows.append(("promised", "", *(_number(one["allowed"].get(a)) for a in one["proved"])))
        table(("pair", "told apart by", *(f"{aim} >=" for aim in one["proved"])), rows)
        paragraph(one["words"], style="red" if one["violated"] else "")
        if one["violated"]:
            paragraph("Do not release, and tell the makers of this software.", style="red")
    for path in document.get("files", ()):
        line("Wrote", path)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
