"""The black-box attack on the tables of a plan, or on the law that a bundle states, as plain data.

Reads no data and spends nothing. Results are files beside a plan, where whoever reviews it finds
them; each says which plan it was of.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from congenial.audit.black_box import black_box
from congenial.data.advance import Advance
from congenial.data.durable_files import write_whole
from congenial.errors import BundleError, CongenialError, PlanError, some_of
from congenial.kinds.kind import Document, Tell
from congenial.mechanisms.tables_release import TablesRelease
from congenial.publication import bundle
from congenial.publication.workflow import check
from congenial.report import pictures
from congenial.report.pictures import BLUE, INK, altair, chart_of, styled
from congenial.sampling.randomness import SeededRandomness, SystemRandomness

if TYPE_CHECKING:
    from congenial.mechanisms.mechanism import Mechanism
    from congenial.privacy.tradeoff import Tradeoff
    from congenial.publication.plan import Plan

AUDITS = "audits"  # the folder beside a plan
NO_ATTACK = (
    "the automatic attack test does not cover this kind of release; the guarantee is a theorem"
)
Target = tuple[str, "Mechanism", "Tradeoff"]  # name, what draws, what is promised


@dataclass(frozen=True)
class AuditEffort:
    """How hard to try."""

    draws: int
    pairs: int = 6
    delta: float | None = None
    seed: int | None = None


def attack_plan(
    plan: Plan, effort: AuditEffort, names: Sequence[str] = (), progress: Tell = lambda _: None
) -> list[Document]:
    """Attack the tables of a plan, drawn already or not, under the figures as published."""
    about = {
        "plan_digest": plan.digest,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    results = _attack(_of_plan(plan), effort, names, progress)
    return [result | about for result in results]


def attack_bundle(
    folder: Path, effort: AuditEffort, names: Sequence[str] = (), progress: Tell = lambda _: None
) -> list[Document]:
    """Attack the law a bundle states, against the promise it states; its values are not used."""
    return _attack(_of_bundle(folder), effort, names, progress)


def _attack(
    targets: list[Target], effort: AuditEffort, names: Sequence[str], progress: Tell
) -> list[Document]:
    audits: list[Document] = []
    for name, mechanism, promised in _named(targets, names):
        seed = effort.seed

        def tell(part: float, step: str = f"attacking '{name}'") -> None:
            progress(Advance(step, part))

        tell(0.0)
        result = black_box(
            mechanism,
            promised,
            pairs=effort.pairs,
            draws=effort.draws,
            delta=effort.delta,
            randomness=SystemRandomness() if seed is None else SeededRandomness(seed),
            progress=tell,
        )
        audits.append({"name": name, "seed": seed, **result.to_dict()})
    return audits


def _named(targets: list[Target], names: Sequence[str]) -> list[Target]:
    listed = [name for name, _, _ in targets]
    for name in names:
        if name not in listed:
            raise PlanError(
                f"no release of one table is called '{name}'.", remedy=f"Known: {some_of(listed)}."
            )
    return [target for target in targets if not names or target[0] in names]


def attacked(plan: Plan) -> list[str]:
    """Names of the plan's releases that an attack is known for: those of one table."""
    return [section.name for section in plan.of("tables") if section.one_table is not None]


def _of_plan(plan: Plan) -> list[Target]:
    tables = attacked(plan)
    if not tables:
        raise CongenialError(
            "the plan releases no single table, and the automatic attack test covers only single "
            "tables.",
            remedy="For statistics that hide a property, use --property.",
        )
    checked = [
        release for release in check(plan, again=True).releases if release.section.name in tables
    ]
    return [
        (each_check.section.name, each_check.mechanism.only, each_check.guarantee.tradeoff)
        for each_check in checked
    ]


def _of_bundle(folder: Path) -> list[Target]:
    release = bundle.read(folder)
    if not isinstance(release, TablesRelease) or len(release.drawn) > 1:
        raise CongenialError(
            f"'{folder}' contains {release.kind}; the attack test needs a release of one table.",
            remedy="Audit a bundle that holds a single table.",
        )
    return [(release.name, release.only.mechanism, release.guarantee.tradeoff)]


# ---- files -----------------------------------------------------------------------------------


def write_audit(one: Document, folder: Path) -> Path:
    """One result as JSON."""
    path = folder / f"audit-{one['name']}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, f"{json.dumps(one, indent=1)}\n".encode())
    except OSError as reason:
        raise BundleError(
            f"cannot write to '{folder}': {reason.strerror}.",
            remedy="Choose a folder you can write to with --out.",
        ) from None
    return path


def write_with_picture(one: Document, folder: Path) -> list[Path]:
    """The result as JSON, and the trade-off curve as pictures where these can be drawn."""
    written = [write_audit(one, folder)]
    if pictures.available() and one["curve"]["rows"]:
        drawn = _trade_off_chart(one)
        for ending in ("svg", "png"):
            written.append(written[0].with_suffix(f".{ending}"))
            options = {"scale_factor": 2} if ending == "png" else {}
            drawn.save(str(written[-1]), format=ending, **options)
    return written


def _trade_off_chart(one: Document) -> Any:
    """The measured trade-off function with its band, over the promised one."""
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


@dataclass(frozen=True)
class AuditResult:
    """What the last attack on one release of a plan found, for its reviewer."""

    name: str
    words: str
    violated: bool = False
    stale: bool = False  # of the plan as it was before
    at: str = ""

    @property
    def told(self) -> str:
        """All of it in one line."""
        when = f" ({self.at[:16].replace('T', ' ')} UTC)" if self.at else ""
        before = " The plan has changed since then." if self.stale else ""
        return f"{'Do not release. ' if self.violated else ''}{self.words}{when}{before}"


def audit_results(plan: Plan) -> list[AuditResult]:
    """For each release the result that lies beside the plan, or why there is none."""
    attackable = attacked(plan)
    return [
        _result(plan, release.name)
        if release.name in attackable
        else AuditResult(release.name, NO_ATTACK)
        for release in plan.release
    ]


def _result(plan: Plan, name: str) -> AuditResult:
    path = plan.folder / AUDITS / f"audit-{name}.json"
    try:
        result: Any = json.loads(path.read_text(encoding="utf-8"))
        stale = result["plan_digest"] != plan.digest
        words, at = str(result["words"]), str(result["at"])
        return AuditResult(name, words, result["violated"] is not False, stale, at)
    except (OSError, ValueError, KeyError, TypeError):
        return AuditResult(name, "not attacked yet")
