"""nonnegative = "two-stage": least squares in real numbers, then rounding; from a plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from congenial.errors import CongenialError
from congenial.mechanisms.projection.projection import follows_from_draw, nearest_counts
from congenial.papers.partially_private_data.two_stage import two_stage
from congenial.publication import bundle, workflow
from congenial.publication.check_document import examine
from congenial.publication.plan import Plan
from congenial.publication.verification import verify
from congenial.sampling.randomness import SeededRandomness

pytestmark = pytest.mark.usefixtures("without_pictures")

PLAN = """
[data]
source = "people.csv"
[schema]
county = { levels = ["a", "b", "c", "d"] }
died = { levels = ["no", "yes"] }
[publish]
FIGURES
[[release]]
name = "t"
table = ["county", "died"]
epsilon = 0.5
nonnegative = "two-stage"
[budget]
epsilon = 1
"""
TOTAL = '"All" = { total = true }'
MARGINS = '"Counties" = { margin = ["county"] }\n"Deaths" = { margin = ["died"] }'
COUNTS = {("a", "no"): 9, ("a", "yes"): 1, ("b", "no"): 4, ("c", "no"): 2, ("d", "yes"): 1}


def made(folder, figures: str = TOTAL) -> Plan:
    rows = [f"{county},{died}\n" for (county, died), n in COUNTS.items() for _ in range(n)]
    (folder / "people.csv").write_text("county,died\n" + "".join(rows), encoding="utf-8")
    (folder / "plan.toml").write_text(PLAN.replace("FIGURES", figures), encoding="utf-8")
    return Plan.load(folder / "plan.toml")


@pytest.mark.parametrize("figures", [TOTAL, MARGINS], ids=["total", "margins"])
def test_from_a_plan_to_a_verified_bundle(tmp_path, figures):
    plan = made(tmp_path, figures)
    workflow.publish(plan)
    (told,) = examine(plan)["releases"]
    assert told["printed_counts"]["fit"] == "two stages"
    folder = workflow.release(plan, "t", randomness=SeededRandomness(3)).folder
    assert all(check.holds for check in verify(folder) if "random" not in check.what)
    release = bundle.read(folder)
    assert release.drawn.min() < 0 <= release.values.min()
    assert release.values.sum() == 17
    if figures == MARGINS:
        assert release.margin("county").tolist() == [10, 4, 2, 1]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "then rounded to whole counts" in page


def test_other_counts_than_those_of_the_two_stages_are_noticed(tmp_path):
    plan = made(tmp_path)
    workflow.publish(plan)
    folder = workflow.release(plan, "t", randomness=SeededRandomness(3)).folder
    release = bundle.read(folder)
    assert follows_from_draw(release)
    moved = release.values.copy()
    most = np.unravel_index(np.argmax(moved), moved.shape)
    least = np.unravel_index(np.argmin(moved), moved.shape)
    moved[most] -= 2
    moved[least] += 2
    assert not follows_from_draw(replace(release, values=moved))


def test_with_a_total_alone_it_is_the_papers_post_processing(tmp_path):
    """Cells of one county with and without deaths are the parts; without deaths in sight both
    stages are those of the study of Pennsylvania, and both are within one of the nearest table.
    """
    plan = made(tmp_path)
    workflow.publish(plan)
    folder = workflow.release(plan, "t", randomness=SeededRandomness(3)).folder
    release = bundle.read(folder)
    cells = release.drawn.reshape(-1)
    wholes, _ = two_stage(cells, np.zeros_like(cells), 17)
    assert np.abs(np.asarray(wholes) - release.values.reshape(-1)).max() <= 1
    nearest = nearest_counts(release, SeededRandomness(4))
    assert np.abs(nearest - release.values).max() <= 1


def test_groups_drawn_apart_are_refused(tmp_path):
    text = PLAN.replace("FIGURES", TOTAL).replace("two-stage", 'two-stage"\nby = ["county')
    (tmp_path / "plan.toml").write_text(text.replace('county"\n[', 'county"]\n['), encoding="utf-8")
    with pytest.raises(CongenialError, match="fits the whole table"):
        Plan.load(tmp_path / "plan.toml")
