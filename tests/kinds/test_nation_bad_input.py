"""Tables of a nation by parts: data, areas and figures that do not fit are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from congenial import CongenialError, Ledger, Plan, verify
from congenial.errors import DataError, FigureError, PlanError, SchemaError, StructureError
from congenial.publication import workflow
from tests.commands import refused, run
from tests.kinds.nation_plan import PUBLISH, SECTION, spent, written


def test_data_that_changed_since_the_figures_are_refused_before_anything_is_spent(
    tmp_path: Path,
) -> None:
    plan = Plan.load(written(tmp_path))
    workflow.publish(plan)
    people = (tmp_path / "people.csv").read_text().splitlines()
    (tmp_path / "people.csv").write_text("\n".join(people[:-1]) + "\n")
    with pytest.raises(FigureError, match="do not agree"):
        workflow.release(plan, "nation")
    assert spent(plan) == []


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("99999,b999,f,1", "column 'block' has values"),
        ("99999,b1,f,77", "column 'age' has values"),
        ("99999,,f,1", "column 'block' has missing"),
        ("0,b1,f,1", "more than one row"),
    ],
)
def test_records_without_a_cell_are_refused(tmp_path: Path, row: str, what: str) -> None:
    plan = Plan.load(written(tmp_path, publish=""))
    with (tmp_path / "people.csv").open("a") as file:
        file.write(row + "\n")
    with pytest.raises(DataError, match=what):
        workflow.release(plan, "nation")
    assert spent(plan) == [] if Ledger.exists(plan.ledger) else True


def test_no_people_at_all_are_refused(tmp_path: Path) -> None:
    plan = Plan.load(written(tmp_path, publish=""))
    (tmp_path / "people.csv").write_text("id,block,sex,age\n")
    with pytest.raises(DataError, match="no records"):
        workflow.release(plan, "nation")


@pytest.mark.parametrize(
    ("change", "error", "what"),
    [
        (('parts = "state"', 'parts = "block"'), SchemaError, "finest geography"),
        (('parts = "state"', 'parts = "nowhere"'), SchemaError, "no attribute or coarser name"),
        (('parts = "state"', 'parts = "state"\nkeep = ["county"]'), PlanError, "keep"),
        (('["state", "sex", "age"],', ""), PlanError, "no table and no figure shows"),
        (('["block", "sex", "age"], ', ""), StructureError, "no measured table shows 'block'"),
    ],
)
def test_check_refuses_what_release_would(
    tmp_path: Path, change: tuple[str, str], error: type[CongenialError], what: str
) -> None:
    with pytest.raises(error, match=what):
        workflow.check(Plan.load(written(tmp_path, SECTION.replace(*change))))


CROSSING = """
[publish]
"Population" = { total = true, by = ["block"] }
"Female" = { count = "sex = 'f'", by = ["county"] }
"Youngest" = { count = "age = 0", by = ["county"] }
"Oldest" = { count = "age = 4", by = ["county"] }
"""


def test_check_refuses_figures_that_no_sampler_keeps(tmp_path: Path) -> None:
    """The draw would have found out when the figures were public, and paid for. Double geometric
    noise: Gaussian noise is drawn under these figures.
    """
    pure = SECTION.replace("rho", "epsilon")

    def planned(section: str = pure, publish: str = CROSSING) -> Path:
        path = written(tmp_path, section, publish)
        path.write_text(path.read_text().replace("rho = 1.2", "epsilon = 1.2"))
        return path

    for refusing in (pure, pure.replace('parts = "state"', "")):
        said = refused(planned(refusing))
        assert "the table over block, sex, age cannot be drawn" in said
    by_block = CROSSING.replace('by = ["county"]', 'by = ["block"]')  # the remedy
    run("check", planned(publish=by_block), "--full")
    run("check", written(tmp_path, publish=CROSSING))


def test_check_refuses_a_child_with_two_parents_and_a_figure_across_parts(tmp_path: Path) -> None:
    plan = written(tmp_path)
    areas = (tmp_path / "areas.csv").read_text()
    (tmp_path / "areas.csv").write_text(areas.replace(",s0\n", ",s1\n", 1))
    assert "some county lies in two of 'state'" in refused(plan)
    national = PUBLISH.replace('by = ["block"]', "by = []")
    assert "over several of 'state'" in refused(written(tmp_path, publish=national))


def test_a_skipped_level_is_refused(tmp_path: Path) -> None:
    plan = written(tmp_path)
    lines = (tmp_path / "areas.csv").read_text().splitlines()
    lines[3] = lines[3].split(",")[0] + ",,s0"
    (tmp_path / "areas.csv").write_text("\n".join(lines) + "\n")
    assert "row 4 of 'areas.csv' has no text in column 2" in refused(plan)


@pytest.mark.audit  # a whole release
def test_a_level_that_does_not_exist_repeats_the_name_of_the_area(tmp_path: Path) -> None:
    """The remedy of the page: a block without a county is its own."""
    path = written(tmp_path)
    lines = (tmp_path / "areas.csv").read_text().splitlines()
    block, _, state = lines[3].split(",")
    lines[3] = f"{block},{block},{state}"
    (tmp_path / "areas.csv").write_text("\n".join(lines) + "\n")
    plan = Plan.load(path)
    workflow.publish(plan)
    done = workflow.release(plan, "nation")
    assert all(one.holds for one in verify(done.folder))
    counts = [
        [row["count"] for row in done.release.to_arrow(*names).to_pylist() if block in row.values()]
        for names in (("block", "sex", "age"), ("county", "sex", "age"))
    ]
    assert counts[0] == counts[1]
