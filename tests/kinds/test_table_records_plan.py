"""Records from tables: a plan with exact figures, from check to verified records."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import congenial
from congenial import Invariants, Schema, SemiAdjacent, Table, margin, structural_zeros, total
from congenial.errors import CongenialError, GuaranteeError, PlanError, StructureError
from congenial.publication import verification, workflow
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import open_ledger
from congenial.sampling.randomness import SeededRandomness
from congenial.synthesis.from_tables.records_release import TableRecordsRelease
from congenial.synthesis.from_tables.table_choice import choose
from congenial.synthesis.from_tables.table_records import TableRecords
from tests.commands import run

ALPHA = 1e-6
SEED = 20261117
PLAN = """
[data]
source = "people.csv"
unit = "id"

[schema]
sex = { levels = ["f", "m"] }
region = { levels = ["n", "s", "w"] }
income = { edges = [0, 1, 20000, 60000, 200000] }
job = { levels = ["a", "b", "c", "d"] }

[publish]
"By sex and region" = { total = true, by = ["sex", "region"] }
"Without income" = { count = "income < 1", by = ["region"] }

[[release]]
name = "people"
synthesise = ["sex", "region", "income", "job"]
rho = 2
rounds = 3

[budget]
rho = 2
"""

pytestmark = pytest.mark.usefixtures("without_pictures")


def written(folder: Path, text: str = PLAN) -> Plan:
    rng = np.random.default_rng(SEED)
    lines = ["id,sex,region,income,job"]
    for i in range(900):
        sex, region = rng.choice(["f", "m"]), rng.choice(["n", "s", "w"])
        income = 0 if rng.random() < 0.1 else int(rng.integers(1, 150_000))
        job = "abcd"[min(3, income // 40_000)]
        lines.append(f"{i},{sex},{region},{income},{job}")
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    (folder / "plan.toml").write_text(text.replace('by = "region"', 'by = ["region"]'))
    return Plan.load(folder / "plan.toml")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records")
    plan = written(folder)
    workflow.publish(plan)
    workflow.release(plan, "people")
    return folder / "bundles" / "people"


def test_from_a_plan_to_records_that_keep_every_figure(bundle: Path) -> None:
    assert [one.what for one in verification.verify(bundle) if not one.holds] == []
    release = congenial.read(bundle)
    assert isinstance(release, TableRecordsRelease)
    frame = release.to_pandas()
    assert len(frame) == 900
    published = json.loads((bundle.parents[1] / "published" / "published.json").read_text())
    assert published
    ledger = open_ledger(Plan.load(bundle.parents[1] / "plan.toml"), create=False)
    assert ledger is not None
    assert float(ledger.spent().rho) <= 2
    assert float(ledger.spent().rho) == pytest.approx(2, rel=1e-4)
    assert len(release.measured) <= 4 + 3
    assert release.known("sex", "region") in ("measured", "implied by the fit")


def test_changed_records_and_measurements_are_noticed(bundle: Path) -> None:
    release = congenial.read(bundle)
    held = release.checks()
    assert all(held.values())
    from dataclasses import replace

    fewer = replace(release, records=release.records.slice(1))
    assert not all(fewer.checks().values())
    twice = replace(release, measured=(*release.measured, release.measured[0]))
    assert not all(twice.checks().values())
    assert not all(replace(release, measured=()).checks().values())
    assert not all(replace(release, moved=-7).checks().values())
    kept = release._mechanism().kept
    truth = np.array([one.sum() for one in np.split(kept.values[0].reshape(2, 3), 3, axis=1)])
    assert kept.agrees_with(("region",), truth)
    assert not kept.agrees_with(("region",), truth + 1)
    finer = replace(release.measured[0], variance=release.measured[0].variance / 2)
    assert not all(replace(release, measured=(finer, *release.measured[1:])).checks().values())


SCHEMA = Schema.from_dict({"x": {"levels": ["p", "q"]}, "y": {"integers": [1, 3]}})


def test_the_promise_counts_look_alikes() -> None:
    """Planted: sensitivity 2 in place of 2 a* would leave the noise as without figures."""
    free = TableRecords.calibrate(SemiAdjacent(Invariants(SCHEMA)), ("x", "y"), Fraction(1))
    figures = Invariants(
        SCHEMA, (margin("x"), margin("y")), (np.array([9, 8]), np.array([5, 7, 5]))
    )
    tied = TableRecords.calibrate(SemiAdjacent(figures), ("x", "y"), Fraction(1))
    a = tied.adjacency.records
    assert a == 3
    assert float(tied.variance) == pytest.approx(a**2 * float(free.variance), rel=1e-6)
    for made in (free, tied):
        assert float(made.guarantee.tradeoff.rho) <= 1
        assert float(made.guarantee.tradeoff.rho) == pytest.approx(1, rel=1e-5)


def test_losses_of_everything_that_is_measured_stay_below_the_promise() -> None:
    """Whole databases of five people: squared distances of all tables, and scores of choices."""
    made = TableRecords.calibrate(SemiAdjacent(Invariants(SCHEMA)), ("x", "y"), Fraction(1))
    rng = np.random.default_rng(SEED)
    worst = 0.0
    for _ in range(300):
        one = rng.integers(0, 6, 5)
        other = one.copy()
        other[0] = rng.integers(0, 6)
        tables = [np.bincount(people, minlength=6).reshape(2, 3) for people in (one, other)]
        loss = 0.0
        for axes, away in ((("x",), 1), (("y",), 0), (("x", "y"), ())):
            u = tables[0].sum(axis=away) - tables[1].sum(axis=away)
            loss += float((u**2).sum()) / (2 * float(made.variance_of(axes)))
        worst = max(worst, loss)
    assert worst <= float(made.rho)
    assert worst == pytest.approx(float(made.rho), rel=1e-5)  # attained where both cells move


def test_choices_follow_their_law() -> None:
    """Draws against exp(epsilon q / (2 moves)); half of epsilon must be rejected."""
    scores, draws = [0, 3, -2, 5], 4_000
    source = SeededRandomness(SEED)
    counts = np.bincount(
        [choose(scores, Fraction(1), 2, source) for _ in range(draws)], minlength=4
    )

    def p_value(epsilon: float) -> float:
        from scipy.stats import chisquare

        weights = np.exp(epsilon * np.array(scores) / 4)
        return float(chisquare(counts, draws * weights / weights.sum()).pvalue)

    assert p_value(1.0) > ALPHA
    assert p_value(0.5) < ALPHA


def test_one_column_and_no_rounds() -> None:
    table = Table(SCHEMA, ["x", "y"], [[5, 0, 2], [1, 3, 9]])
    made = TableRecords.calibrate(SemiAdjacent(Invariants(SCHEMA)), ("y",), Fraction(1))
    release = made.release(table, SeededRandomness(SEED))
    assert release.names == ("y",)
    assert made.rounds == 0
    assert release.records.num_rows == 20


def test_a_table_that_a_figure_settles_is_not_measured() -> None:
    table = Table(SCHEMA, ["x", "y"], [[5, 0, 2], [1, 3, 9]])
    figures = congenial.publish(table, total(by="x"))
    made = TableRecords.calibrate(SemiAdjacent(figures), ("x", "y"), Fraction(1))
    release = made.release(table, SeededRandomness(SEED))
    assert ("x",) not in [one.axes for one in release.measured]
    assert release.to_pandas()["x"].value_counts().to_dict() == {"q": 13, "p": 7}


@pytest.mark.parametrize(
    ("old", "new", "error", "says"),
    [
        ("rho = 2\nrounds", "epsilon = 1\nrounds", PlanError, "needs delta"),
        ('"sex", "region", "income"', '"sex", "income"', StructureError, "region"),
        ('"job"]', '"job", "job"]', PlanError, "twice"),
        ('unit = "id"', 'unit = "id"\nmax_rows = 2', GuaranteeError, "one row"),
        ('"job"]', '"jobs"]', CongenialError, "jobs"),
    ],
)
def test_what_cannot_be_is_refused_before_any_data(
    tmp_path: Path, old: str, new: str, error: type[CongenialError], says: str
) -> None:
    with pytest.raises(error, match=says):
        workflow.check(written(tmp_path, PLAN.replace(old, new)))


def test_rules_that_tie_records_to_other_columns_are_refused() -> None:
    """Figures on a column that the records lack would bind them unseen."""
    schema = Schema.from_dict(
        {"region": {"levels": ["A", "B"]}, "sex": {"levels": ["f", "m", "x"]}}
    )
    rule = structural_zeros("region = 'A' and sex = 'm'")
    figures = Invariants(schema, (total(by="region"), rule), (np.array([3, 7]), None))
    with pytest.raises(StructureError, match="Synthesise region too"):
        TableRecords.calibrate(SemiAdjacent(figures), ("sex",), Fraction(1))


def test_figures_of_other_columns_stay_in_the_description() -> None:
    """Noise was drawn given them, so a price without them would be wrong."""
    figures = Invariants(SCHEMA, (total(by="x"),), (np.array([4, 5]),))
    made = TableRecords.calibrate(SemiAdjacent(figures), ("y",), Fraction(1))
    assert made.description.given == figures


def test_check_says_what_would_be_drawn(tmp_path: Path) -> None:
    """For people, and the same as a document."""
    written(tmp_path)
    told, shown = (
        run("check", tmp_path / "plan.toml", "--json"),
        run("check", tmp_path / "plan.toml"),
    )
    assert told["releases"][0]["name"] == "people"
    assert "900" not in shown  # nothing of the data
    assert "Release 'people': records from tables" in shown
