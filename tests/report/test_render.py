"""Templates: everything is escaped, nothing is silently empty, pages are compared to the letter."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from jinja2 import UndefinedError

from congenial.data.schema import Schema
from congenial.kinds.given_public_document import MOST_CELLS, Earlier, GivenPublicReport
from congenial.report.page import FIRST_ROWS, LARGEST_TABLE, PageColumn, folded_table, table
from congenial.report.render import basis_of, differences, page_from, stated

HOSTILE = "<script>alert('1')</script>\"& {{ 7 * 7 }}"
SVG = "data:image/svg+xml;base64,PHN2Zy8+"
TEMPLATE = """{% extends "page.html" %}{% set title = name %}
{% block body %}
<section id="a">
<p title="{{ name }}">{{ name }}</p>
<img alt="x" src="{{ address }}">
</section>
<section id="b">
{{ parts.table(numbers) -}}
</section>
{% endblock %}"""
NUMBERS = table([PageColumn("who"), PageColumn("n", number=True)], [[HOSTILE, 1840], ["b", 0.5]])


def page(**changes: object) -> str:
    shown = {"name": HOSTILE, "address": SVG, "numbers": NUMBERS} | changes
    return page_from(TEMPLATE, **shown)


def test_text_is_text_wherever_it_stands() -> None:
    assert "<script" not in page()
    assert page().count("alert(&#39;1&#39;)") == 4  # title, attribute, paragraph, cell
    assert "{{ 7 * 7 }}" in page()
    assert '<td class="number">1,840</td>' in page()


def test_a_name_that_is_not_given_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="address"):
        page_from(TEMPLATE, name="x", numbers=NUMBERS)


def test_a_page_without_a_title_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="title"):
        page_from(TEMPLATE.replace("{% set title = name %}", ""), name="x", address="", numbers=())


@pytest.mark.parametrize("basis", [{"words": HOSTILE, "counts": [1, 2]}, [], 7, "é\n"])
def test_what_a_page_rests_on_reads_back(basis: object) -> None:
    assert basis_of(page(basis=basis)) == basis
    assert "<script" not in page(basis=basis)


def test_most_pages_rest_on_their_bundle_alone() -> None:
    assert basis_of(page()) is None
    assert basis_of(page(name='<meta name="congenial-basis" content="7">')) is None


def test_differences_are_told_by_section() -> None:
    assert differences(page(), page()) == []
    assert differences(page(address="https://example.org"), page()) == ["a"]
    other = table(NUMBERS.columns, [["b", 1]])
    assert differences(page(numbers=other), page()) == ["b"]
    assert differences(page() + " ", page()) == ["what surrounds the sections"]
    more = page().replace("</body>", '<section id="c"></section></body>')
    assert differences(more, page()) == ["c"]
    assert differences(page(), more) == ["c"]


def test_a_picture_is_compared_as_words_are() -> None:
    other = page(address="data:image/svg+xml;base64,QUJD")
    assert differences(other, page()) == ["a"]
    assert differences(page(), page(address="")) == ["a"]


def test_a_section_twice_is_a_difference() -> None:
    section = page()[page().index('<section id="a">') : page().index('<section id="b">')]
    assert differences(page().replace(section, section * 2), page()) != []


def test_a_promise_is_stated_as_pages_state_it() -> None:
    assert stated(HOSTILE).strip().startswith("<blockquote>&lt;script&gt;")


@pytest.mark.parametrize("many", [1, FIRST_ROWS + 2, FIRST_ROWS + 3, LARGEST_TABLE + 1])
def test_long_tables_fold_and_refer_to_their_file(many: int) -> None:
    rows = [[f"row {i}"] for i in range(many)]
    text = page(numbers=folded_table([PageColumn("x")], rows, many, "file.csv"))
    folds = many > FIRST_ROWS + 2
    assert ("<details>" in text) == folds
    assert text.count("<td>") == (FIRST_ROWS + min(many, LARGEST_TABLE) if folds else many)
    assert ("rows are in file.csv" in text) == (many > LARGEST_TABLE)


def test_rows_have_a_value_for_each_column() -> None:
    with pytest.raises(ValueError, match="zip"):
        table([PageColumn("a"), PageColumn("b")], [["only one"]])


def test_too_many_counts_have_no_picture() -> None:
    for many in (1, 2, MOST_CELLS, MOST_CELLS + 1):
        schema = Schema.from_dict({"x": {"levels": [str(i) for i in range(many)]}})
        release = SimpleNamespace(schema=schema, table=("x",), values=range(many))
        picture = GivenPublicReport(None)._picture(release)
        assert (picture is not None) == (1 < many <= MOST_CELLS)


def test_earlier_counts_read_back() -> None:
    earlier = Earlier("july.csv", (12, 26, 0), 1, 2)
    assert Earlier.from_dict(earlier.to_dict()) == earlier
