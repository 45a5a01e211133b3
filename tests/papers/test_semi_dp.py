"""Every item of semi-dp runs; its numbers are the paper's, or the corrected ones."""

from __future__ import annotations

import json

import pytest
from scipy import stats

from congenial.papers import catalogue
from congenial.papers.item import Study
from congenial.papers.semi_dp import ITEMS, semi_figures
from congenial.papers.semi_dp.census import ALLOCATION
from congenial.papers.semi_dp.examples import literal, robust

QUICK = Study(quick=True, seed=7)


@pytest.fixture(scope="module")
def results():
    without_data = [name for name, item in ITEMS.items() if not item.files]
    return {name: catalogue.run("semi-dp", name, QUICK) for name in without_data}


def column(result, name):
    return [row[result["columns"].index(name)] for row in result["rows"]]


def test_every_item_is_plain_data(results):
    for name, result in results.items():
        assert result["rows"], name
        json.dumps(result, allow_nan=False)


def test_section_6(results):
    rows = {row[0]: row for row in results["section-6"]["rows"]}
    advertised, robust_row = (
        rows["persons, advertised"],
        rows["persons given state totals, robust (A_2)"],
    )
    assert round(advertised[3], 5) == 17.91528
    assert round(robust_row[3], 5) == 40.95057
    assert robust_row[2] == 10.24
    assert advertised[5] == pytest.approx(16.4793878497238, abs=1e-9)
    assert rows["in all, advertised"][4] == pytest.approx(17.4305844873451, abs=1e-9)
    assert rows["persons given state totals, existential"][2] == 2.56


def test_the_allocation_given_the_mandates(shared):
    told = catalogue.run("semi-dp", "census-allocation", Study(data=shared / "data"))
    rows = {row[0]: row for row in told["rows"]}
    assert rows["persons: all"][2] == pytest.approx(2.55623, abs=1e-5)
    totals, everything = rows["State: total"], rows["persons: all"]
    assert totals[2] == pytest.approx(0.82700, abs=1e-5)
    assert totals[3:5] == [0, 0]  # the figure itself: nobody's loss
    assert totals[6:] == [0, 0]
    assert everything[3] == pytest.approx(4 * (everything[2] - totals[2]))
    assert everything[3] == pytest.approx(6.917, abs=5e-4)
    assert everything[4] == pytest.approx(everything[2] - totals[2])
    assert everything[7] == pytest.approx(32.16, abs=5e-3)  # Lemma 40
    assert rows["County: total"][3] == pytest.approx(4 * rows["County: total"][2])
    assert rows["State: all"][3] == pytest.approx(4 * (rows["State: all"][2] - totals[2]))
    assert rows["State: all"][2] == pytest.approx(0.898015, abs=1e-6)
    assert rows["housing units: all"][2:5] == pytest.approx([0.07, 0.28, 0.07])
    assert all(row[2] > 0 for row in told["rows"])


def test_a_query_of_the_figure_itself_loses_nothing(tmp_path):
    """A made-up allocation: 1 on state totals, 1/2 on county totals, 1/4 on answers by state."""
    file = tmp_path / ALLOCATION
    file.parent.mkdir()
    file.write_text("geolevel,query,rho\nState,total,1\nCounty,total,0.5\nState,cenrace,0.25\n")
    told = catalogue.run("semi-dp", "census-allocation", Study(data=tmp_path))
    rows = {row[0]: row[2:5] for row in told["rows"]}
    assert rows["State: total"] == [1, 0, 0]
    assert rows["County: total"] == [0.5, 2, 0.5]
    assert rows["State: all"] == [1.25, 1, 0.25]
    assert rows["persons: all"] == [1.75, 3, 0.75]


def test_figure_2_expectations():
    """The closed forms against 17-digit oracles at mu = 1."""
    known = {
        2: (7.9760423290748221, 1.5957691216057307, 1.5957691216057307),
        4: (16.707627730337396, 5.8359556447295295, 7.1475567455512857),
        10: (42.32047508926148, 17.94453149684206, 21.977472920282148),
    }
    for k, values in known.items():
        lines = semi_figures.gaussian_lines(k, 1.0)
        assert [line.expected for line in lines] == pytest.approx(values, rel=1e-10)
        printed = lines[1].promise
        assert printed == pytest.approx(1.0 if k == 2 else 1.224744871391589)


def test_figure_2_measures_what_it_expects(results):
    found = results["figure-2"]
    columns = [column(found, name) for name in ("k", "average l2", "expected l2")]
    for k, measured, expected in zip(*columns, strict=True):
        length = stats.chi((k - 1) ** 2)  # of noise in the least number of dimensions
        error = length.std() / length.mean() / 30**0.5  # 30 replicates
        assert measured == pytest.approx(expected, rel=4 * error)


def test_figure_3(results):
    found = results["figure-3"]
    by_name = {}
    for row in found["rows"]:
        if row[1] == 3:
            by_name.setdefault(row[3], []).append(row)
    true, printed = by_name["K-norm, true S"][0], by_name[semi_figures.PRINTED][0]
    assert (true[6], printed[6]) == (1.0, 2.0)  # what each really promises
    assert true[5] == pytest.approx((452 / 7) ** 0.5)
    assert printed[5] == pytest.approx((516 / 11) ** 0.5)
    half = by_name["K-norm, printed S at epsilon / 2"][0]
    assert half[6] == 1.0
    assert half[5] > true[5]  # the true hull is the better one at the same promise
    assert by_name["l1, group privacy"][0][5] > 3 * true[5]


def test_examples(results):
    assert results["example-3"]["rows"] == [[0, 1, 0, 0], [1, 3, 2, 2], [2, 3, 2, 2], [3, 1, 0, 0]]
    assert column(results["example-2"], "records apart") == [2, 2, 2]
    assert [3, 2, 3, 4] in results["example-5"]["rows"]  # n = 3: four margins with 2 and 3
    assert column(results["example-6"], "pairs in IND(D_t, A_a)") == [0, 6, 6]
    sizes = {(row[0], row[1]): row[2:] for row in results["example-7"]["rows"]}
    assert sizes["3 x 3", "A_2"] == [19, 4, 4, 1, 4]
    assert sizes["3 x 3", "A_3"] == [31, 6, 6, 1, 4]
    assert sizes["2 x 4", "A_2"] == sizes["2 x 4", "A_3"]
    assert results["example-8"]["rows"][0] == [0.25, -0.25, -0.25, 0.25]


def test_two_readings():
    left = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 1)]  # Remark 14's counterexample
    assert literal(left) == 1
    assert robust(left) == 2


def test_odds_ratio(results):
    for row in results["odds-ratio"]["rows"]:
        words, w, power, best, printed = row
        if best is not None:
            assert power == pytest.approx(best, abs=1e-9)
        if w > 1:
            assert printed < 0.05 < power, words


def test_norm_balls(results):
    squares = {(row[0], row[1]): row[4] for row in results["norm-balls"]["rows"]}
    assert squares["3 x 3", "A_2"] == "516/11"
    assert squares["3 x 3", "A_3"] == "452/7"


@pytest.mark.audit
def test_full_runs():
    for name in [name for name, item in ITEMS.items() if not item.files]:
        result = catalogue.run("semi-dp", name, Study(seed=1))
        json.dumps(result, allow_nan=False)


def test_the_swap_of_figure_1_is_the_one_printed(results):
    """Rows 2 and 5, columns 2 and 6 of a 6 x 7 table; by its caption it would be another one."""
    changed = {(row, column): v for row, column, v in results["figure-1"]["rows"] if v}
    assert changed == {(2, 2): 1, (5, 6): 1, (2, 6): -1, (5, 2): -1}
    assert max(row[:2] for row in results["figure-1"]["rows"]) == [6, 7]
    assert changed != {(2, 2): 1, (5, 5): 1, (2, 5): -1, (5, 2): -1}
