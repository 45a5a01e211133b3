"""`congenial audit` for tables: the black-box attack for people, its files and its picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from congenial.cli.output import Document, say, working

if TYPE_CHECKING:
    from congenial.publication.table_audit import AuditEffort


def attack(source: Path, names: tuple[str, ...], effort: AuditEffort, out: Path | None) -> Document:
    """The attack on every table, as plain data."""
    with working("choosing pairs of datasets to attack") as progress:
        from congenial.publication.plan import Plan
        from congenial.publication.table_audit import attack_bundle, attack_plan

        if source.is_dir():
            audits = attack_bundle(source, effort, names, progress)
        else:
            audits = attack_plan(Plan.load(source), effort, names, progress)
    document: Document = {"audits": audits}
    if out is not None:
        document["files"] = [str(path) for one in audits for path in write(one, out)]
    return document


# ---- files -----------------------------------------------------------------------------------


def write(one: Document, folder: Path) -> list[Path]:
    """The result as JSON, and the trade-off curve as pictures where these can be drawn."""
    from congenial.publication.table_audit import write_audit
    from congenial.report import pictures

    written = [write_audit(one, folder)]
    if pictures.available() and one["curve"]["rows"]:
        drawn = chart(one)
        for ending in ("svg", "png"):
            written.append(written[0].with_suffix(f".{ending}"))
            options = {"scale_factor": 2} if ending == "png" else {}
            drawn.save(str(written[-1]), format=ending, **options)
    return written


def chart(one: Document) -> Any:
    """The measured trade-off function with its band, over the promised one."""
    from congenial.report.pictures import BLUE, INK, altair, chart_of, styled

    alt = altair()
    keys = ("alpha", "promised", "measured", "low", "high")
    rows = [dict(zip(keys, row, strict=True)) for row in one["curve"]["rows"]]
    promise = "the promise: no test can be below this line"
    attacked = "the attack, estimated: the promise is broken only if the whole 95 % band is below"
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
        chart_of(rows)
        .mark_area(opacity=0.25, color=BLUE)
        .encode(x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q")
    )
    curves = chart_of(lines).mark_line(strokeWidth=1.6)
    drawn = alt.layer(band, curves.encode(x=x, y=y, color=colour))
    title = alt.Title(
        f"{one['name']}: distinguishing two datasets",
        subtitle=[
            f"{one['mechanism']}, {one['promised']}; {one['draws']:,} draws of each pair.",
            "Type I error: the first dataset is taken for the second; type II error: the reverse.",
        ],
        anchor="start",
        offset=12,
    )
    return styled(drawn.properties(width=360, height=360, title=title))


# ---- words -----------------------------------------------------------------------------------


def show(document: Document) -> None:
    """The attack for people."""
    audits = [one | _findings(one) for one in document["audits"]]
    say("audit.txt", audits=audits, files=document.get("files", ()))


def _findings(one: Document) -> Document:
    """A row for each pair, with what the attack found, and one with what is promised."""
    rows = []
    for pair in one["pairs"]:
        values = {f["aim"]: f["value"] for f in pair["findings"]}
        score = next((f["score"] for f in pair["findings"]), "")
        found = [f"{values[aim]:.3f}" if aim in values else "" for aim in one["proved"]]
        rows.append((pair["pair"], score, *found))
    rows.append(("promised", "", *(_number(one["allowed"].get(aim)) for aim in one["proved"])))
    columns = ("pair", "distinguished by", *(f"{aim} at least" for aim in one["proved"]))
    return {"columns": columns, "rows": rows}


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
