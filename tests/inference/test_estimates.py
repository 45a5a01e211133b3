"""Estimates: right numbers by named methods, and words for what cannot be asked."""

from __future__ import annotations

from typing import get_args, get_type_hints

import numpy as np
import pytest

import congenial as cg
from congenial.errors import CongenialError, InferenceError, PredicateError
from congenial.inference import CellEstimates, cell_estimates, estimate
from congenial.inference.estimates.expression_language import IndexOf, parse_question
from congenial.inference.estimates.indices import INDICES, dissimilarity, entropy, gini
from congenial.mechanisms import calibrate_tables

SEED = 20260403
SCHEMA = cg.Schema.from_dict(
    {
        "county": {"levels": ["A", "B", "C"], "within": {"state": ["X", "X", "Y"]}},
        "sex": {"levels": ["f", "m"]},
        "age": {"edges": [0, 18, 40, 65], "top": "65+"},
        "rooms": {"integers": [1, 3]},
    }
)
AXES = ["county", "sex", "age"]
COUNTS = np.random.default_rng(SEED).poisson(300, (3, 2, 4))
FIGURES = (cg.total(by="county"), cg.count("sex = 'f'", by="county"))


def drawn(counts=COUNTS, axes=AXES, figures=FIGURES, seed=1, eps=1, schema=SCHEMA):
    table = cg.Table(schema, axes, counts)
    under = cg.ReplaceOne(schema)
    if figures:
        under = cg.SemiAdjacent(cg.publish(table, *figures))
    mechanism = cg.calibrate("auto", cg.Guarantee.pure(eps, under=under), axes)
    return cg.release_table(mechanism, table, cg.SeededRandomness(SEED + seed), name=f"draw-{seed}")


RELEASE = drawn()


def one(what, release=RELEASE, **options):
    found = estimate(release, what, **options)
    assert len(found) == 1
    return found[0]


# ---- values and methods --------------------------------------------------------------------------


def test_a_count_is_the_release_s_own_interval():
    for condition in ("age >= 65 and county = 'A'", "sex = 'f'", "age < 18"):
        theirs = RELEASE.interval(condition, 0.9)
        mine = one(f"count({condition})", level=0.9)
        assert (mine.value, mine.low, mine.high) == (theirs.estimate, theirs.low, theirs.high)
    assert one("count(sex = 'f')").method == "published exactly"
    assert one("count(age < 18)").method == "exact law of the noise"


def test_the_release_answers_itself():
    assert RELEASE.estimate("count(age < 18) by county", 0.9).to_dicts() == (
        estimate(RELEASE, "count(age < 18) by county", 0.9).to_dicts()
    )


def test_a_difference_between_independent_parts_has_the_law_of_their_sum():
    apart = one("count(age < 18 and county = 'A') - count(age < 18 and county = 'B')")
    together = one("count(age < 18 and county in ('A', 'B'))")
    assert apart.method == "exact law of the noise"
    assert apart.high - apart.value == together.high - together.value
    free = one("count(age < 18) - count(age >= 65)", drawn(figures=()))
    assert free.method == "exact law of the noise"
    tied = one("count(sex = 'f' and age < 18 and county = 'A') - count(age >= 65 and county = 'A')")
    assert tied.method == "joint simulation from the public law of the noise"


def test_a_simulated_half_width_agrees_with_the_exact_law():
    """Twice a sum is a sum of weights 2: its law is known, and simulation must come close."""
    source = cell_estimates(RELEASE)
    assert isinstance(source, CellEstimates)
    weights = np.zeros((1, 24))
    weights[0, [0, 1, 8, 9, 17]] = 1
    import scipy.sparse as sp

    rows = sp.csr_array(weights)
    law = source.laws(rows)[0]
    errors = source.errors(rows)[:, 0]
    assert abs(errors.std() / law.deviation - 1) < 0.05
    assert np.mean(np.abs(errors) <= law.reach(0.9)) >= 0.88


def test_arithmetic_reduces_to_sums_and_ratios():
    both = one("count(age < 18) / 2 + 3 * count(age >= 65) - 10")
    value = np.sum(RELEASE.drawn[0][:, :, 0]) / 2 + 3 * np.sum(RELEASE.drawn[0][:, :, 3]) - 10
    assert both.value == pytest.approx(value)
    shares = one("share(sex = 'f' | age < 18) + share(sex = 'm' | age < 18)")
    assert (shares.value, shares.low, shares.high) == (1, 1, 1)
    odds = one("share(sex = 'f' | age < 18) / share(sex = 'm' | age < 18)")
    assert odds.value == one("count(sex='f' and age<18) / count(sex='m' and age<18)").value
    assert odds.method == "inversion of jointly simulated errors"
    assert one("-(2 + count()) * .5").value == pytest.approx(-(2 + COUNTS.sum()) / 2)


def test_a_share_of_a_published_total_has_an_exact_law():
    found = one("share(age >= 65 | county = 'A')")
    count = one("count(age >= 65 and county = 'A')")
    total = COUNTS[0].sum()
    assert found.method == "exact law of the noise"
    assert found.low == pytest.approx(count.low / total)
    assert found.high == pytest.approx(count.high / total)


def test_groups_have_labels_in_schema_order():
    found = estimate(RELEASE, "share(age >= 65) by state, sex")
    assert [dict(one.group) for one in found] == [
        {"state": s, "sex": x} for s in ("X", "Y") for x in ("f", "m")
    ]
    assert found.to_arrow().column_names[:3] == ["of", "state", "sex"]
    assert "share(age" in found._repr_html_()


def test_quantiles_are_interpolated_inside_bins():
    median = one("median(age | county = 'A')")
    counts = RELEASE.drawn[0][0].sum(axis=0)
    below = np.cumsum(counts)
    place = np.interp(below[-1] / 2, [0, *below], [0, 18, 40, 65, np.nan])
    assert median.value == pytest.approx(place)
    assert median.low < median.value < median.high
    assert one("quantile(age, .2)").value < one("quantile(age, .4)").value


def test_a_quantile_in_an_open_bin_has_no_number():
    found = one("quantile(age, .95)")
    assert np.isnan(found.value)
    assert (found.low, found.high) == (65, np.inf)
    assert "an open class" in found.note
    assert found.to_dict()["high"] is None


def test_a_quantile_of_whole_numbers_is_one_of_them():
    rooms = drawn(np.array([[600, 30, 20], [100, 900, 40], [10, 20, 800]]), ["county", "rooms"], ())
    found = estimate(rooms, "median(rooms) by county")
    assert [(e.low, e.value, e.high) for e in found] == [(1, 1, 1), (2, 2, 2), (3, 3, 3)]


def test_indices_of_known_tables():
    assert entropy(np.array([[5.0, 5.0], [10.0, 0.0]])).tolist() == [pytest.approx(np.log(2)), 0]
    table = np.array([[[30.0, 10.0], [10.0, 30.0]]])
    assert dissimilarity(table)[0] == pytest.approx(0.5)  # |30/40 - 10/40|
    amounts = np.array([1.0, 2.0, 3.0])
    people = np.repeat(amounts, [5, 3, 2])
    pairs = np.abs(people[:, None] - people).mean() / (2 * people.mean())
    assert gini(np.array([[5.0, 3.0, 2.0]]), amounts)[0] == pytest.approx(pairs)
    assert np.isnan(gini(np.zeros((1, 3)), amounts)[0])


def test_an_index_of_an_even_table_is_corrected_to_nearly_nothing():
    """Noise alone looks like segregation; the estimate does not."""
    even = drawn(np.full((3, 2, 4), 60), figures=())
    found = one("dissimilarity(sex by age)", even)
    seen = dissimilarity(even.drawn[0].sum(axis=0)[None])[0]
    assert found.low < 0.02
    assert found.value < seen


def test_any_function_of_the_table():
    def older_women(table):
        return table[:, 0, 3].sum() / table[:, :, 3].sum()

    found = one(older_women)
    by_name = one("share(sex = 'f' | age >= 65)")
    assert found.of == "older_women"
    assert found.value == pytest.approx(by_name.value, abs=0.002)
    assert 0.9 < (found.high - found.low) / (by_name.high - by_name.low) < 1.5
    each = estimate(RELEASE, lambda table: table.sum(axis=(1, 2)))
    assert [e.value for e in each] == pytest.approx(COUNTS.sum(axis=(1, 2)).tolist())


def test_a_rate_against_an_outside_file(tmp_path):
    file = tmp_path / "population.csv"
    file.write_text("county,sex,people\nA,f,1000\nA,m,1000\nB,f,500\nB,m,500\nC,f,10\nC,m,10\n")
    rates = estimate(RELEASE, "rate(age >= 65, people, 100) by county", outside=file)
    counts = estimate(RELEASE, "count(age >= 65) by county")
    for rate, count, people in zip(rates, counts, (2000, 1000, 20), strict=True):
        assert rate.high == pytest.approx(100 * count.high / people)
        assert rate.method == count.method
    for text, words in (
        ("county,people\nA,5\nB,0\nC,1\n", "its rate cannot be computed"),
        ("county,people\nA,5\nB,6\nZ,1\n", "which is not in the bundle"),
        ("county,people\nA,5\nB,6\nC,many\n", "a number of people is expected"),
        ("county,other\nA,5\nB,6\nC,1\n", "has no column 'people'"),
        ("county,people\n", "has no rows"),
    ):
        file.write_text(text)
        with pytest.raises(CongenialError, match=words):
            estimate(RELEASE, "rate(age >= 65, people) by county", outside=file)
    with pytest.raises(CongenialError, match=r"absent.csv' cannot be opened: No such file"):
        estimate(RELEASE, "rate(age >= 65, people)", outside=tmp_path / "absent.csv")
    with pytest.raises(InferenceError, match="no file is given"):
        estimate(RELEASE, "rate(age >= 65, people) by county")


# ---- two bundles ---------------------------------------------------------------------------------


def test_change_and_growth_between_two_bundles():
    later = drawn(COUNTS + 40, seed=2)
    change = one("change(count(age < 18))", [RELEASE, later])
    parts = one("count(age < 18)"), one("count(age < 18)", later)
    assert change.value == parts[1].value - parts[0].value
    assert change.sd == pytest.approx(np.hypot(parts[0].sd, parts[1].sd), rel=0.05)
    growth = one("growth(count(age < 18))", [RELEASE, later])
    assert growth.value == pytest.approx(parts[1].value / parts[0].value - 1)
    assert growth.low < 40 * 6 / COUNTS[:, :, 0].sum() < growth.high
    assert one("growth(median(age))", [RELEASE, later]).method.startswith("intervals of its two")
    with pytest.raises(InferenceError, match="compare two bundles"):
        estimate(RELEASE, "growth(count())")
    with pytest.raises(InferenceError, match="the same release"):
        estimate([RELEASE, RELEASE], "change(count(age < 18))")


def test_bundles_of_one_population_are_combined():
    states = drawn(COUNTS.reshape(3, 2, 4)[[0, 2]] + COUNTS[[1, 2]] * [[[1]], [[0]]], seed=3,
                   axes=["state", "sex", "age"], figures=())  # fmt: skip
    alone, both = one("count(age < 18)"), one("count(age < 18)", [RELEASE, states],
                                              same_population=True)  # fmt: skip
    assert both.sd < alone.sd
    assert both.low <= COUNTS[:, :, 0].sum() <= both.high
    again = drawn(seed=4, eps=2)
    cells = estimate([RELEASE, again], "count() by county, sex, age")
    apart = [estimate(r, "count() by county, sex, age") for r in (RELEASE, again)]
    for mine, first, second in zip(cells, *apart, strict=True):
        assert min(first.value, second.value) <= mine.value + 1e-9
        assert mine.value <= max(first.value, second.value) + 1e-9
        assert mine.sd <= 1.02 * min(first.sd, second.sd)
    assert one("count(sex = 'f')", [RELEASE, again]).method == "published exactly"


def test_sums_that_figures_tell_are_whole_people():
    """Least squares leave rounding errors; what is published is a whole number."""
    whole = {"A": 656, "B": 77, "C": 4129}
    counts = np.array([[[n // 8 + (at < n % 8) for at in range(8)]] for n in whole.values()])
    counts = counts.reshape(3, 2, 4)
    coarse = drawn(counts.sum(axis=1), ["county", "age"], seed=5, figures=FIGURES[:1])
    both = [drawn(counts, seed=seed, figures=FIGURES[:1]) for seed in (3, 4)] + [coarse]
    found = estimate(both, ["count() by county", "-2 * count() by county", "count() / 4"])
    expected = [*whole.values(), *(-2 * n for n in whole.values()), sum(whole.values()) / 4]
    assert [row.value for row in found] == [row.low for row in found] == expected
    assert [row.high for row in found] == expected
    joint = calibrate_tables(
        cg.Guarantee.zero_concentrated("1/2", under=both[0].guarantee.adjacency),
        [["county", "sex", "age"], ["sex"]],
    ).release(cg.Table(SCHEMA, AXES, counts), cg.SeededRandomness(SEED))
    for county, n in whole.items():
        around = joint.interval(f"county = '{county}'")
        assert (around.estimate, around.low, around.high, around.exact) == (n, n, n, True)
    assert joint.intervals("county", 0.9)["estimate"].to_pylist() == list(whole.values())


def test_a_combined_estimate_is_the_dense_least_squares_solution():
    again = drawn(seed=4, eps=2)
    found = [e.value for e in estimate([RELEASE, again], "count() by county, sex, age")]
    tables = [cell_estimates(r) for r in (RELEASE, again)]
    from congenial.inference.estimates.combined_estimates import _precision

    p = [_precision(t) for t in tables]
    # Both draws have the figures, so the weighted mean has them too and is the solution.
    mean = (p[0] * tables[0].cells + p[1] * tables[1].cells) / sum(p)
    assert found == pytest.approx(mean.tolist())


def test_what_does_not_belong_together_is_refused():
    other = cg.Schema.from_dict({"county": {"levels": ["A", "B", "C"]}})
    stranger = drawn(np.array([1, 2, 3]), ["county"], (), schema=other)
    far = drawn(COUNTS + 900, seed=5, figures=())
    for releases, words in (
        ([RELEASE, RELEASE], "the same release"),
        ([RELEASE, stranger], "different schemas"),
        ([RELEASE, drawn(COUNTS + 1, seed=6)], "published with other values"),
        ([RELEASE, drawn(seed=7, figures=())], "no exact figure shows"),
    ):
        with pytest.raises(CongenialError, match=words):
            estimate(releases, "count()")
    with pytest.raises(InferenceError, match="by far more than their noise"):
        estimate([RELEASE, far], "count()", same_population=True)
    by_age = drawn(COUNTS.sum(axis=(0, 1)), ["age"], (), seed=8)
    by_county = drawn(COUNTS.sum(axis=(1, 2)), ["county"], (), seed=9)
    together = estimate([by_age, by_county], "count()", same_population=True)[0]
    assert together.low <= COUNTS.sum() <= together.high
    with pytest.raises(InferenceError, match=r"shows age, county .*one table: age; county"):
        estimate([by_age, by_county], "count(age < 18) by county", same_population=True)


# ---- what cannot be asked ------------------------------------------------------------------------

NOBODY_IN_A = drawn(COUNTS * np.array([0, 1, 1])[:, None, None], seed=10)
FEW = drawn(np.ones((3, 2, 4), dtype=int), seed=11, figures=())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("count(age >= 20)", "cuts the class"),
        ("count(hair = 'red')", "hair"),
        ("count(rooms = 1)", "does not have"),
        ("median(county)", "text, not numbers.*Ask for age or rooms"),
        ("quantile(age, 1.5)", "not between 0 and 1"),
        ("gini(age)", "has no limit.*gini\\(age, 90\\)"),
        ("gini(age, 10)", "10 stands for people from 65 on.*that they can have"),
        ("median(age | sex = 'f' and sex = 'm')", "nobody is there.*larger group"),
        ("dissimilarity(sex by sex)", "same attribute"),
        ("dissimilarity(sex)", "'by' and the areas"),
        ("share()", "a condition"),
        ("count(age >= 65", "'\\)'"),
        ("mean(age)", "not sums of age"),
        ("average(age)", "one of count, share"),
        ("count() / 0", "divides by 0"),
        ("count() / count(age < 0)", "always divides by 0"),
        ("count() by rooms", "'draw-1' does not show rooms.*is over county, sex, age"),
        ("median(rooms)", "'draw-1' does not show rooms.*a bundle that shows it"),
        ("count() +", "a number"),
        ("count() by", "an axis"),
        ("count() by hair", "hair"),
        ("", "a number"),
        ("count() count()", "an operator"),
        ("count(a = ;)", "cannot be read"),
        ("(" * 60 + "1" + ")" * 60, "nested more than"),
        ("1 + " * 9_000 + "1", "characters"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words(text, words):
    with pytest.raises(CongenialError, match=words):
        estimate(RELEASE, text)


def test_ratios_and_quantiles_of_nothing():
    with pytest.raises(InferenceError, match=r"denominator is too small.*difference instead"):
        one("count(age < 18 and county = 'A') / count(age >= 65 and county = 'A')", FEW)
    with pytest.raises(InferenceError, match="there is no share or ratio"):
        one("share(age < 18 | county = 'A')", NOBODY_IN_A)
    shares = estimate(NOBODY_IN_A, "share(age < 18) by county")
    assert [bool(e.note) for e in shares] == [True, False, False]
    medians = estimate(NOBODY_IN_A, "median(age) by county")
    assert "nobody is there" in medians[0].note
    assert np.isnan([medians[0].value, medians[0].low, medians[0].high]).all()
    assert not medians[1].note


def test_a_share_within_the_noise_covers_everything_and_says_so():
    found = one("share(sex = 'f' | age < 18 and county = 'A')", FEW)
    assert (found.low, found.high) == (0, 1)
    assert found.note.startswith("not determined")
    assert np.isnan(found.value)
    per_cent = one("100 * count(sex = 'f' and county = 'A') / count(county = 'A')", FEW)
    assert (per_cent.low, per_cent.high) == (0, 100)


def test_a_part_of_its_whole_stays_between_0_and_1():
    """Whatever was drawn; 1 - share and per cent are shares, too."""
    for seed in range(20):
        few = drawn(np.ones((3, 2, 4), dtype=int), seed=40 + seed, figures=(), eps=2)
        for text, most in (("count(sex = 'f') / count()", 1), ("100 - 100 * share(age < 18)", 100)):
            for found in estimate(few, f"{text} by county"):
                assert 0 <= found.low <= found.high <= most


def test_an_inverted_ratio_is_fieller_s_set():
    """r is inside where a - r b is within the middle of e_A - r e_B; the same draws."""
    from congenial.inference.estimates.cell_groups import CellGroups
    from congenial.inference.estimates.quantities import IntervalCover, Ratio

    source = cell_estimates(drawn(figures=()))
    groups = CellGroups(source, source, ())
    ratio, cover = (
        Ratio(groups.sums("age < 18"), groups.sums("age >= 65")),
        IntervalCover.of_one(0.9),
    )
    ends = ratio.ends(cover)
    (a,), (b,) = ratio.top.values, ratio.bottom.values
    tail = (len(ratio.truths) - cover.rank) // 2
    for r, inside in ((ends.low[0], True), (ends.high[0], True), (0.999 * ends.low[0], False),
                      (1.001 * ends.high[0], False)):  # fmt: skip
        errors = ratio.top.errors[:, 0] - r * ratio.bottom.errors[:, 0]
        far = a - r * b
        above = np.count_nonzero(errors > far - 1e-9), np.count_nonzero(errors < far + 1e-9)
        assert (min(above) > tail) == inside


def test_an_index_of_nonnegative_amounts_stays_where_it_can_be():
    few = np.where(np.arange(4) == 1, 3, 0) * np.ones((3, 2, 1), dtype=int)
    found = one("gini(age, 80)", drawn(30 * few, eps=10))
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_an_index_of_a_group_smaller_than_the_noise_is_what_the_figures_leave():
    few = np.zeros((3, 2, 4), dtype=int)
    few[0, 0, :2], few[1, 1, 3], few[2] = 1, 1, 300  # two people, one, and many; exact totals
    release = drawn(few, figures=FIGURES[:1])
    entropies = estimate(release, "entropy(age) by county")
    assert [e.high for e in entropies][:2] == pytest.approx([np.log(2), 0])
    assert [e.low for e in entropies][:2] == [0, 0]
    assert entropies[0].note.startswith("not determined: the group is too small")
    assert np.isnan(entropies[0].value)
    assert not entropies[1].note  # one person is of one age: nothing is left to say
    assert entropies[2].low < np.log(4) < entropies[2].high + 1e-9
    assert not entropies[2].note
    assert estimate(release, "gini(age, 80) by county")[0].high == 0.5
    apart = estimate(release, "dissimilarity(sex by age) by county")
    assert (apart[0].low, apart[0].high) == (0, 1)
    assert "nobody" in apart[1].note


def test_a_release_whose_error_depends_on_the_data_is_refused():
    from congenial.mechanisms.congenial import CongenialCounts

    table = cg.Table(SCHEMA, AXES, COUNTS)
    promise = cg.Guarantee.pure(1, under=cg.SemiAdjacent(cg.publish(table, cg.total(by="county"))))
    conditioned = cg.calibrate(CongenialCounts, promise, AXES)
    release = cg.release_table(conditioned, table, cg.SeededRandomness(SEED))
    with pytest.raises(InferenceError, match="congenial infer"):
        estimate(release, "count()")
    with pytest.raises(InferenceError, match="no table with known errors"):
        estimate(object(), "count()")


@pytest.mark.parametrize("level", [0, 1, 1.5, 0.99999, "high"])
def test_levels_that_cannot_be_met(level):
    with pytest.raises(InferenceError):
        estimate(RELEASE, "share(sex = 'f' | age < 18)", level)


def test_parts_of_an_expression_are_read_as_written():
    asked = parse_question("share(sex in ('f', 'm') | not (age < 18)) by county")
    assert asked.expression.part == "sex in ('f', 'm')"
    assert asked.expression.whole == "not (age < 18)"
    quoted = parse_question("count(name = 'a | b, (c')")
    assert quoted.expression.condition == "name = 'a | b, (c'"
    with pytest.raises(PredicateError):
        estimate(RELEASE, "count(sex = 'x' or)")


def test_every_index_of_the_language_has_a_formula() -> None:
    """A word without one would fail only when somebody asks for it."""
    assert set(INDICES) == set(get_args(get_type_hints(IndexOf)["index"]))
