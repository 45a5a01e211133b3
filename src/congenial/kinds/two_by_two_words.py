"""What `congenial check` says about a test of an odds ratio."""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.kinds.kind import Document, Screen

if TYPE_CHECKING:
    from congenial.kinds.two_by_two_offer import OddsRatioCheck

LATER = "known once the margins are published: run `congenial publish`, then check again"


def examine(one: OddsRatioCheck) -> Document:
    """The check of one section as plain data; from public parameters alone."""
    from congenial.inference.odds_ratio_release import compared

    made, asked = one.mechanism, one.mechanism.question
    power = None
    if one.power is not None:
        power = [{"odds_ratio": at, "power": p} for at, p in one.power.items()]
    return {
        "name": one.section.name,
        "kind": "odds ratio test",
        "table": list(made.description.table),
        "compares": compared(made.description.support.schema, made.description.table),
        "hypothesis": asked.hypothesis,
        "alternative": asked.alternative,
        "alpha": float(asked.alpha),
        "level": float(asked.level),
        "power": power,
        "noise": float(4 * made.description.scale),
        "per_person": one.guarantee.tradeoff.words,
        "guarantee": one.guarantee.to_dict(),
        "promise": one.guarantee.explain(),
        "errors": [],
        "wanted": None,
    }


def show(one: Document, screen: Screen) -> None:
    """The check of one section for people."""
    screen.heading(f"Release '{one['name']}': test of the odds ratio, {' x '.join(one['table'])}")
    screen.facts(
        {
            "Compares": one["compares"],
            "Hypothesis": f"{one['hypothesis']}; rejected where p <= {one['alpha']:g}",
            "Noise in the count": f"double geometric, p(u) ~ exp(-{one['noise']:g} |u|)",
            "Per person": one["per_person"],
            **({"Power": LATER} if one["power"] is None else {}),
        }
    )
    if one["power"] is not None:
        screen.table(
            ["odds ratio", "power"],
            [[f"{row['odds_ratio']:g}", f"{row['power']:.3f}"] for row in one["power"]],
            numbers=("odds ratio", "power"),
        )
    screen.paragraph("")
    screen.paragraph(one["promise"])
