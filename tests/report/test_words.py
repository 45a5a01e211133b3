"""Words from templates: one text for a terminal and a page, and values that stay in their place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import pytest

from congenial.cli.output import show
from congenial.report import words
from congenial.report.page import PageTable
from congenial.report.words import Facts, Heading, Paragraph, UnbrokenLine, blocks, sections

TEMPLATES = sorted((Path(words.__file__).parent / "words").glob("*.txt"))
HOSTILE = ["# Heading", "! Warning", "> Line", "= a :: b", "| a | b |", "x\n# y", "a::b", "{{ 7 }}"]


def written(text: str, monkeypatch: pytest.MonkeyPatch, **shown: Any) -> list[words.Block]:
    """What a text says, as a template."""
    environment = words._environment().overlay(loader=jinja2.DictLoader({"t": text}))
    monkeypatch.setattr(words, "_environment", lambda: environment)
    return blocks("t", **shown)


def test_every_kind_of_line_is_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "# Head\nOne\nsentence.\n\n! Beware\n> a/path\n= a :: b\n= c :: d\n\n| x | y > |\n| 1 | 2 |"
    )
    heading, paragraph, warning, line, facts, table = written(text, monkeypatch)
    assert heading == Heading("Head")
    assert paragraph == Paragraph("One sentence.")
    assert warning == Paragraph("Beware", warns=True)
    assert line == UnbrokenLine("a/path")
    assert facts == Facts((("a", "b"), ("c", "d")))
    assert isinstance(table, PageTable)
    assert [column.number for column in table.columns] == [False, True]
    assert table.rows == (("1", "2"),)


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{{ value }}", Paragraph),
        ("# {{ value }}", Heading),
        ("= name :: {{ value }}", Facts),
        ("= {{ value }} :: what", Facts),
        ("| name |\n| {{ value }} |", PageTable),
        ("> {{ value }}", UnbrokenLine),
    ],
)
def test_a_value_stays_in_its_place(
    text: str, kind: type, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels come from outside: none begins a line, ends a cell or runs as a template."""
    (block,) = written(text, monkeypatch, value=value)
    assert isinstance(block, kind)
    one_line = " ".join(value.splitlines())
    if isinstance(block, PageTable):
        assert block.rows == ((one_line,),)
    elif isinstance(block, Facts):
        assert one_line in block.rows[0]
    else:
        assert block.text == one_line


def test_what_is_missing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(jinja2.UndefinedError):
        written("{{ nothing }}", monkeypatch)
    with pytest.raises(TypeError, match="missing"):
        written("{{ value }}", monkeypatch, value=None)


def test_sections_begin_at_headings(monkeypatch: pytest.MonkeyPatch) -> None:
    found = sections(written("before\n\n# One\nafter\n\n# Two", monkeypatch))
    assert [heading for heading, _ in found] == ["", "One", "Two"]


def test_a_terminal_shows_every_block(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    value = "\x1b[31mred"
    show(written("# {{ v }}\n= {{ v }} :: {{ v }}\n| {{ v }} |\n| {{ v }} |", monkeypatch, v=value))
    shown = capsys.readouterr().out
    assert shown.count("red") == 5
    assert "\x1b[31m" not in shown


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_templates_can_be_read(path: Path) -> None:
    words._environment().get_template(path.name)
    assert path.read_text().endswith("\n")
