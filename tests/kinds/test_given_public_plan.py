"""A table given what is public already, from a plan to a posterior, and what is refused."""

from __future__ import annotations

import csv
import html
from dataclasses import replace
from fractions import Fraction as F
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from congenial import Ledger, Plan, SeededRandomness, infer, read
from congenial.inference import InferenceError, Poisson
from congenial.kinds.given_public import KIND
from congenial.mechanisms.wasserstein.table_law import TableLaw
from congenial.publication import workflow
from tests.commands import refused, run, write_plan

SEED = 11
COUNTIES = ("Adams", "Berks", "Clinton")
CASES = (9, 30, 2)
PRIOR = 'base_measure = { prior = "july.csv", alpha = 0.1, kappa = 0.5 }'
BELIEF = 'scenarios = { believe = "independent records" }'
PLAN = f"""
[data]
source = "cases.csv"
unit = "case"
[schema]
county = {{ levels = ["Adams", "Berks", "Clinton"] }}
died = {{ levels = ["no", "yes"] }}
[publish]
"Cases" = {{ total = true, because = "bulletin" }}
[[release]]
name = "august"
table = ["county"]
{BELIEF}
given = ["July's cases"]
{PRIOR}
epsilon = 1
[budget]
epsilon = 3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_cases(tmp_path)
    return tmp_path


def write_cases(folder: Path) -> None:
    with (folder / "cases.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["case", "county", "died"])
        rows = [county for county, many in zip(COUNTIES, CASES, strict=True) for _ in range(many)]
        out.writerows([i, county, "yes" if i % 9 == 0 else "no"] for i, county in enumerate(rows))
    earlier(folder, dict(zip(COUNTIES, (12, 26, 0), strict=True)))


def earlier(folder: Path, counts: dict[str, object], name: str = "july.csv") -> None:
    lines = "".join(f"{county},{count}\n" for county, count in counts.items())
    (folder / name).write_text("county,count\n" + lines)


def plan(folder: Path, *changes: tuple[str, str]) -> Path:
    return write_plan(folder, PLAN, *changes)


def test_from_check_to_a_posterior(folder: Path) -> None:
    path = plan(folder)
    told = run("check", path, "--json")["releases"][0]
    assert told["delta_z"] == {"value": 1.0, "measure": "records", "assumed": False}
    assert (told["factor"], F(told["rate"]), F(told["per_record"])) == (2, F(1, 4), 1)
    assert "what the public figures reveal by themselves" in told["promise"]
    assert "below the ordinary sensitivity" not in told["promise"]
    assert "0.463" in told["belief"]
    shown = " ".join(run("check", path, "--full").split())

    run("publish", path)
    made = run("release", path, "--json")["releases"][0]
    assert made["promise"].startswith(told["promise"])
    bundle = folder / "bundles" / "august"
    checks = run("verify", bundle, "--digest", made["digest"], "--json")["checks"]
    assert any(one["what"] == "the counts agree with every public figure" for one in checks)
    assert "secret pairs)" in " ".join(run("explain", bundle).split())
    assert "independent" in run("explain", path)

    release = read(bundle)
    assert release.table == ("county",)
    assert release.counts.sum() == sum(CASES)
    assert release.publishable
    assert release.base.kind == "prior-congenial"
    assert release.persons.tradeoff.eps == 1
    assert all(
        text in release.explain() for text in ("Given what is public", "Without any assumption")
    )
    report = html.unescape((bundle / "report.html").read_text())
    for words in (
        "Dirichlet-multinomial",
        "alpha = 0.1, kappa = 0.5, earlier counts from july.csv",
        f'<td class="number">{sum(CASES)}</td>',  # the published total
        "in july.csv",
        told["persons"],  # with what it assumes
        "Taken as known",
        "congenial infer",
    ):
        assert words in report
    assert told["earlier"]["counts"] == [12, 26, 0]
    assert "Assumed: each person is one row (checked in 'case')" in told["persons"]
    assert "alpha = 0.1, kappa = 0.5" in shown
    spent = Ledger.open(folder / "ledger.sqlite")
    assert spent.spent().epsilon == 1
    assert "beside" not in spent.spent_words()

    found = run(
        "infer", bundle, "--model", "multinomial", "--set", "draws=400", "--naive",
        "--simulations", 1, "--json",
    )  # fmt: skip
    assert len(found["summary"]) == len(found["naive"]) == len(COUNTIES)
    assert found["coverage"]["intervals"] == len(COUNTIES)
    assert "ignore the noise" in found["coverage"]["words"]


def test_an_assumed_distance_is_printed_and_stands_alone(folder: Path) -> None:
    path = plan(folder, (BELIEF, 'scenarios = { distance = 1, because = "a study" }'))
    told = run("check", path, "--json")["releases"][0]
    assert told["delta_z"]["assumed"]
    assert told["guarantee"]["basis"] == "estimate"
    assert "Delta_z = 1 in l1 is assumed, not derived from scenarios" in told["promise"]
    assert "below the ordinary sensitivity 2" in told["promise"]  # Lemma 12
    assert F(told["per_record"]) == 2  # one record moves the table by twice that
    assert "ASSUMED" in run("check", path, "--full")
    run("publish", path)
    workflow.release(Plan.load(path), "august", randomness=SeededRandomness(SEED))
    assert Ledger.open(folder / "ledger.sqlite").spent().epsilon == 2
    assert "does not add up" in refused(path, "release", code=4, extra=("--out", folder / "b"))
    start, end = PLAN.index("[[release]]"), PLAN.index("[budget]")
    table = '[[release]]\nname = "t"\ntable = ["died"]\nepsilon = 0.1\n'
    other = folder / "other.toml"
    other.write_text(PLAN[:start] + table + PLAN[end:])
    assert "'august' from the same data" in refused(other, "release", code=4)


def test_promises_in_records_add_up(folder: Path) -> None:
    second = PLAN[PLAN.index("[[release]]") : PLAN.index("[budget]")].replace("august", "again")
    table = '[[release]]\nname = "t"\ntable = ["died"]\nepsilon = 0.5\n[budget]'
    path = plan(folder, ("[budget]", second + table))
    run("publish", path)
    run("release", path, "--seed", SEED)
    assert Ledger.open(folder / "ledger.sqlite").spent().epsilon == F(5, 2)
    more = ("--name", "august", "--out", folder / "b")
    assert "the total would be" in refused(path, "release", 5, more)


def test_a_figure_published_later_makes_the_promise_void(folder: Path) -> None:
    path = plan(folder)
    run("publish", path)
    workflow.release(Plan.load(path), "august", randomness=SeededRandomness(SEED))
    run("publish", path)  # the same figures again change nothing
    more = '"Deaths" = { count = "died = \'yes\'" }\n[[release]]'
    later = folder / "later.toml"
    later.write_text(
        PLAN.replace("[[release]]", more, 1).replace(BELIEF, "scenarios = { distance = 4 }")
    )
    assert "that promise is void" in refused(later, "publish", code=4)
    run("publish", later, "--accept-weaker")


@pytest.mark.parametrize("base", ['base_measure = "naive"', 'base_measure = "congenial"', PRIOR])
def test_what_one_record_costs_by_enumeration(folder: Path, base: str) -> None:
    """Every two tables one record apart: the loss is at most what the ledger counts."""
    loaded = Plan.load(plan(folder, (PRIOR, base)))
    figures = loaded.figures.evaluate(_table(loaded, (2, 1, 1)))
    made = KIND.build(loaded, loaded.release[0], figures)
    assert made.description.persons
    every = [x for x in product(range(5), repeat=3) if sum(x) == 4]
    points = every if made.base.totals else list(product(range(-12, 17), repeat=3))
    logs = {x: np.asarray(made.law(x).log_density(points)) for x in every}
    apart = [(x, z) for x, z in product(every, repeat=2) if np.abs(np.subtract(x, z)).sum() == 2]
    worst = max(float(np.abs(logs[x] - logs[z]).max()) for x, z in apart)
    assert 0.4 < worst <= float(made.description.epsilon) + 1e-9
    if made.factor == 2:  # planted: the factor for the normaliser left out
        rate = 2 * made.rate
        logs = {x: np.asarray(TableLaw(made.base, x, rate).log_density(points)) for x in every}
        assert max(float(np.abs(logs[x] - logs[z]).max()) for x, z in apart) > 1.05


def _table(loaded: Plan, counts: tuple[int, ...]) -> Any:
    from congenial import Table

    return Table(loaded.schema, ("county",), np.array(counts))


def test_verify_notices_a_smaller_noise(folder: Path) -> None:
    """Negative control."""
    path = plan(folder)
    run("publish", path)
    drawn = workflow.release(Plan.load(path), "august", randomness=SeededRandomness(SEED)).release
    assert all(KIND.checks(drawn).values())
    sharper = replace(drawn.description, law=drawn.description.law | {"rate": "1/2"})
    assert not all(KIND.checks(replace(drawn, description=sharper)).values())
    off = (drawn.values[0] + 1, *drawn.values[1:])
    assert not KIND.checks(replace(drawn, values=off))["the counts agree with every public figure"]


def test_the_last_bundle_is_the_next_prior(folder: Path) -> None:
    path = plan(folder, (PRIOR, 'base_measure = "naive"'))
    run("publish", path)
    workflow.release(Plan.load(path), "august", randomness=SeededRandomness(SEED))
    values = (folder / "bundles" / "august" / "values.csv").read_text()
    (folder / "july.csv").write_text(values)
    counts = [int(line.split(",")[1]) for line in values.splitlines()[1:]]
    made = KIND.build(*_loaded(plan(folder)))
    assert made.base.shapes == tuple(F(1, 10) * (max(c, 0) + F(1, 2)) for c in counts)


def _loaded(path: Path) -> tuple[Any, Any, Any]:
    loaded = Plan.load(path)
    return loaded, loaded.release[0], loaded.figures


def test_an_l2_release_says_that_it_is_a_chain(folder: Path) -> None:
    path = plan(folder, ("epsilon = 1\n", 'epsilon = 1\nloss = "l2"\n'), (PRIOR, ""))
    told = run("check", path, "--json")["releases"][0]
    assert told["guarantee"]["basis"] == "uncertified chain"
    assert F(told["per_record"]) == 1
    assert "is not worked out" in told["inference"]["why"]
    run("publish", path)
    drawn = workflow.release(Plan.load(path), "august", randomness=SeededRandomness(SEED))
    made = drawn.release
    assert made.persons.basis == "uncertified chain"
    assert sum(made.values) == sum(CASES)
    for page in ("report.html", "README.txt"):  # nobody is sent to what is refused
        assert "infer" not in (drawn.folder / page).read_text()
    with pytest.raises(InferenceError, match="is not worked out"):
        infer(made, Poisson())


@pytest.mark.parametrize(
    ("old", "new", "says", "code"),
    [
        (BELIEF, "scenarios = { distance = 0 }", "must be positive", 2),
        (BELIEF, 'scenarios = { believe = "anything" }', "dependent answers", 2),
        (BELIEF, "scenarios = { distance = 2, believe = 'x' }", "must be { believe", 2),
        (PRIOR, 'base_measure = "flat"', "must be 'naive', 'congenial'", 2),
        (PRIOR, 'base_measure = { prior = "july.csv", alpha = 1 }', "kappa = 0.5", 2),
        (PRIOR, PRIOR.replace("0.5", "0"), "must be positive", 2),
        (PRIOR, PRIOR.replace("july", "june"), "cannot be read", 3),
        ("epsilon = 1\n", 'epsilon = 1\nloss = "l3"\n', "loss", 2),
        ("epsilon = 1\n", "epsilon = 1\ndelta = 0.1\n", "without delta", 2),
        ("epsilon = 1\n", 'epsilon = 1\nmechanism = "congenial"\n', "cannot use scenarios", 2),
        ("epsilon = 1\n", "epsilon = 1\nloose = 1\n", "Did you mean 'loss'?", 2),
        (BELIEF, 'scenarios = { distance = 2 }\nbasis = "theorem"', "asks for basis", 2),
        ("[publish]\n", '[publish]\n"D" = { count = "died = \'yes\'" }\n', "not independent", 2),
        ('unit = "case"', 'unit = "case"\nmax_rows = 2', "max_rows", 2),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(folder: Path, old: str, new: str, says: str, code: int) -> None:
    assert says in refused(plan(folder, (old, new)), code=code)


def test_several_rows_per_person_are_refused_for_that_reason(folder: Path) -> None:
    """Without exact figures too, which have a refusal of their own."""
    figures = '[publish]\n"Cases" = { total = true, because = "bulletin" }\n'
    several = ('unit = "case"', 'unit = "case"\nmax_rows = 2')
    path = plan(folder, (figures, ""), several, (PRIOR, 'base_measure = "naive"'))
    assert "scenarios need one record per person" in refused(path).replace("\n", " ")


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ({"Adams": 1, "Berks": 2}, "no row for 1 cells"),
        ({"Adams": 1, "Berks": "2.5", "Clinton": 0}, "row 3"),
        ({"Adams": 1, "Berks": 2, "Dauphin": 0}, "row 4"),
    ],
)
def test_a_prior_that_does_not_fit_is_refused(
    folder: Path, counts: dict[str, object], says: str
) -> None:
    earlier(folder, counts)
    assert says in refused(plan(folder), code=3)


def test_nothing_is_drawn_from_other_data(folder: Path) -> None:
    bare = plan(folder, (PRIOR, ""), ('"Cases" = { total = true, because = "bulletin" }', ""))
    assert "in no published sum" in refused(bare)
    path = plan(folder)
    assert "not published yet" in refused(path, "release")
    run("publish", path)
    with (folder / "cases.csv").open("a", newline="") as file:
        file.write("900,Adams,no\r\n")
    assert "do not agree with the published figures" in refused(path, "release")
    assert Ledger.open(folder / "ledger.sqlite").spent().epsilon == 0
