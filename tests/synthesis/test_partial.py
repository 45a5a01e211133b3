"""Partial synthesis and figures about columns that are not in the files: prices by enumeration."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from congenial import CongenialError, Schema, SeededRandomness, SemiAdjacent
from congenial.errors import FigureError, GuaranteeError, StructureError
from congenial.figures import Figures, at_most, count, margin, publish, structural_zeros, total
from congenial.kinds.records_from_models import KIND
from congenial.pairs.sensitive_values import SensitiveValues
from congenial.privacy import joint_loss, read_description
from congenial.synthesis import Column, Grid, MultinomialColumn, PoissonColumn, Synthesizer
from congenial.synthesis.columns import shown
from tests.synthesis.test_certificate import GIVEN, TWO, M, apart, joint_losses, tables_of

THREE = Schema.from_dict(
    {"g": {"levels": ["a", "b"]}, "s": {"levels": ["f", "m"]}, "k": {"integers": [0, 2]}}
)
KIDS = Column("k", PoissonColumn(Grid(0.3, 4, 5, "log")), given=("g",))


def test_the_value_costs_one_replacement_and_the_record_a_star():
    """2 M where one person's value differs. The ledger, whose other releases protect the whole
    record, counts 2 M a*: some pairs of its own lose more than 2 M, and none more than that.
    """
    every = tables_of(TWO, 3)
    truth = next(t for t in every if t.marginal(["g"]).counts.tolist() == [2, 1, 0])
    published = publish(truth, margin("g"))
    made = Synthesizer(SensitiveValues(published, ("g",)), (GIVEN["by context"],), M, public=("g",))
    conforming = [t for t in every if published.holds_for(t)]
    values, records = apart(conforming, 1), apart(conforming, 2)
    assert len(records) > len(values) > 0
    assert made.epsilon == 2 * M
    assert max(joint_losses(made, conforming, values)) <= float(2 * M)
    whole = SemiAdjacent(published)
    assert joint_loss([made.description], whole).epsilon == 2 * M * whole.records == 4 * M
    assert float(2 * M) < max(joint_losses(made, conforming, records)) <= float(4 * M)


def test_what_a_file_shows_is_priced_only_where_it_is_published():
    """Its loss over databases that differ in a copied column is infinite, not 2 M."""
    published = publish(tables_of(TWO, 2)[5], margin("g"))
    made = Synthesizer(SensitiveValues(published, ("g",)), (GIVEN["by context"],), M, public=("g",))
    first = Synthesizer(SemiAdjacent(published), (Column("g"),), M)
    for one in (made, first):
        told = one.description
        assert told.support == published
        assert read_description(TWO, told.to_dict()) == told
        with pytest.raises(GuaranteeError, match="Publish that figure first"):
            joint_loss([told], SemiAdjacent(Figures(TWO)))
    hidden = Synthesizer(SemiAdjacent(published), (Column("k"),), M)
    assert hidden.description.given is None
    rule = Figures(TWO, (structural_zeros("k = 3"),))  # no file has a 3, whatever its size
    ruled = Synthesizer(SemiAdjacent(rule), (Column("k"),), M, records=9).description
    assert ruled.given == rule
    with pytest.raises(GuaranteeError, match="Publish that figure first"):
        joint_loss([ruled], SemiAdjacent(Figures(TWO)))


def test_figures_about_other_columns_are_priced_and_not_kept():
    """Files without s need not agree with figures about s; a* records differ all the same."""
    every = tables_of(THREE, 2)
    for mandate in (total(by="s"), count("s = 'f' and k >= 1"), at_most(count("s = 'f'"), 9)):
        adjacency = SemiAdjacent(publish(every[20], mandate))
        columns = (Column("g", MultinomialColumn(floor=0.2, steps=1)), KIDS)
        made = Synthesizer(adjacency, columns, M)
        assert made.totals is None
        assert made.epsilon == 2 * M * adjacency.records
        conforming = [t for t in every if adjacency.figures.holds_for(t)]
        losses = joint_losses(made, conforming, apart(conforming, adjacency.records))
        assert 0 < max(losses) <= float(made.epsilon)
        found = made.release(every[20], SeededRandomness(3))
        assert found.to_arrow().column_names == ["g", "k"]
        assert all(KIND.checks(found).values())
    few = Synthesizer(SemiAdjacent(publish(every[20], total(by="s"))), (Column("g"),), M, records=9)
    assert few.release(every[20], SeededRandomness(3)).to_arrow().num_rows == 9


def test_the_margin_of_a_wider_table_is_kept():
    """People by g and s are published, a file has g alone: its totals follow, and are kept."""
    rng = np.random.default_rng(4)
    table = tables_of(THREE, 1)[0]
    counts = rng.integers(0, 6, size=table.counts.shape)
    truth = type(table)(THREE, THREE.names, counts)
    published = publish(truth, margin("g", "s"))
    seen = shown(published, {"g", "k"})
    assert seen.statements[0].by == ("g",)
    assert seen.values[0].tolist() == counts.sum(axis=(1, 2)).tolist()
    made = Synthesizer(SemiAdjacent(published), (Column("g"), KIDS), M)
    found = made.release(truth, SeededRandomness(2))
    assert KIND.checks(found)[
        "the records agree with every exact figure and rule about their columns"
    ]
    assert found.to_pandas()["g"].value_counts().to_dict() == dict(
        zip("ab", counts.sum(axis=(1, 2)).tolist(), strict=True)
    )
    with pytest.raises(StructureError, match="leave them out of the files"):
        Synthesizer(SemiAdjacent(published), (Column("k"), Column("g")), M)
    with pytest.raises(GuaranteeError, match="cannot agree"):
        Synthesizer(SemiAdjacent(published), (Column("g"),), M, records=5)


def test_rules_hold_for_the_values_too():
    rule = structural_zeros("g = 'a' and k = 2")
    counts = np.zeros((2, 2, 3), dtype=np.int64)
    counts[0, 0, 0] = counts[1, 1, 2] = counts[0, 1, 1] = 5
    truth = type(tables_of(THREE, 1)[0])(THREE, THREE.names, counts)
    published = publish(truth, margin("g"), rule)
    pairs = SensitiveValues(published, ("g",))
    assert "impossible by definition" in pairs.words
    found = Synthesizer(pairs, (KIDS,), M, public=("g",)).release(truth, SeededRandomness(2))
    frame = found.to_pandas()
    assert not ((frame["g"] == "a") & (frame["k"] == 2)).any()
    words = found.guarantee.explain()
    assert "per person, for s, k" in words
    assert "anybody's g, taken as known" in words
    assert "the exact figures themselves" in words


@pytest.mark.parametrize(
    ("figures", "public", "error"),
    [
        ((margin("g"),), ("g", "s", "k"), FigureError),
        ((margin("g"),), (), FigureError),
        ((margin("g"), at_most(total(by="k"), 5)), ("g",), FigureError),
        ((margin("g"),), ("gg",), CongenialError),
    ],
)
def test_pairs_that_say_nothing_are_refused(figures, public, error):
    with pytest.raises(error):
        SensitiveValues(Figures(THREE, figures), public)


def test_copied_columns_must_be_published():
    pairs = SensitiveValues(Figures(THREE, (margin("g"),)), ("g", "s"))
    assert Synthesizer(pairs, (KIDS,), Fraction(1), public=("g",)).names == ("g", "k")
    with pytest.raises(FigureError, match="table is not published"):
        Synthesizer(pairs, (KIDS,), Fraction(1), public=("g", "s"))
