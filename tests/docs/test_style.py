"""Words that may not come back, and terms of ours that a page may not use without the glossary.

`python -m tests.docs.test_style` prints for every page how easy it is to read, and the offenders
that are still allowed. The three numbers below may only shrink: lower them when a page or a message
becomes plain.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, PAGES, ROOT

PHRASES = re.compile(
    r"\b(?:told|mend(?:s|ed|ing)?|shall|dearest|strangers?)\b"
    r"|\bthat (?:is|are) no\b(?! longer| more than)"
    r"|\b(?:changes?|changed|moves?|moved) along(?! (?:(?:a|an|the|one|which|each|every|it)\b|\{))"
    r"|\bas (?:it is|they are|the plan) reads?\b"
    r"|\bthe way:"
    r"|\bnothing else than\b"
    r"|\bslips? of the pen\b"
    r"|\bmust look alike\b"
    r"|\bis nobody else's\b"
    r"|\byour word\b"
    r"|\bbut for (?:blanks|its|their)\b",
    re.IGNORECASE,
)
# draw, aim, type and, but for noise, law are words that every page may use
OWN_TERMS = re.compile(
    r"\b(?:look-alikes?|mandates?|atoms?|laws? of|noise's law|difference types?)\b|\ba\*",
    re.IGNORECASE,
)

OURS = [
    page
    for page in PAGES
    if page.relative_to(DOCS).parts[0] not in ("papers", "adr", "tutorial", "how-to")
]
READERS = [
    ROOT / "README.md",
    *(page for page in PAGES if page.parent.name in ("tutorial", "how-to")),
]
OTHERS = [ROOT / "CHANGELOG.md", *READERS]


def prose(text: str) -> str:
    """A page without code, addresses of links and marks."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`\n]*`", "code", text))
    return text.replace("\\*", "*")


def phrases_of(text: str) -> list[str]:
    return [found[0] for found in PHRASES.finditer(" ".join(text.split()))]


def page_offenders(pages: list[Path]) -> list[str]:
    return [
        f"{page.relative_to(ROOT)}: {phrase}"
        for page in pages
        for phrase in phrases_of(prose(page.read_text(encoding="utf-8")))
    ]


def messages(source: str) -> Iterator[str]:
    """Strings of a module that a person may read: several words, and no docstring."""
    tree = ast.parse(source)
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(node.value)  # a docstring
        if isinstance(node, ast.JoinedStr):
            skipped |= {part for part in node.values if isinstance(part, ast.Constant)}
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
            )
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and node not in skipped else None
        if isinstance(text, str) and " " in text:
            yield text


def message_offenders() -> list[str]:
    root = ROOT / "src" / "congenial"
    found = []
    for file in sorted(root.rglob("*")):
        if file.suffix == ".py":
            texts = list(messages(file.read_text(encoding="utf-8")))
        elif file.suffix in (".html", ".txt", ".js", ".jinja"):
            texts = [re.sub(r"\{[{%].*?[%}]\}", "", file.read_text(encoding="utf-8"))]
        else:
            continue
        found += [f"{file.relative_to(ROOT)}: {one}" for text in texts for one in phrases_of(text)]
    return found


def terms_of(page: Path) -> list[str]:
    """The terms of ours on a page."""
    text = page.read_text(encoding="utf-8")
    return sorted({term.lower() for term in OWN_TERMS.findall(prose(text))})


@pytest.mark.parametrize("page", OURS, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_has_no_phrase_that_may_not_come_back(page: Path) -> None:
    assert page_offenders([page]) == []


def test_readme_tutorials_and_how_tos_have_no_such_phrase_either() -> None:
    assert page_offenders(OTHERS) == []


def test_no_message_and_no_template_has_such_a_phrase() -> None:
    assert message_offenders() == []


@pytest.mark.parametrize("page", READERS, ids=lambda page: page.stem)
def test_readme_tutorials_and_how_tos_use_the_readers_words(page: Path) -> None:
    """Our own terms are for reference and explanation pages."""
    assert terms_of(page) == []


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_other_pages_link_our_terms_to_the_glossary(page: Path) -> None:
    links = "glossary.md" in page.read_text(encoding="utf-8")
    assert links or page.name == "glossary.md" or terms_of(page) == []


def test_a_term_of_ours_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("The law of the noise is `a*`; look-alikes differ in a\\* records. A law asks.")
    assert terms_of(page) == ["a*", "law of", "look-alikes"]


def test_phrases_and_messages_are_found() -> None:
    assert phrases_of("It was told so, that is no date: it shall\nchange along.") == [
        "told",
        "that is no",
        "shall",
        "change along",
    ]
    assert phrases_of("That is not so, it moves along a line, and is recommended.") == []
    source = 'def f(x):\n    """Told here."""\n    raise E(f"told {x}" " twice", "told")\n'
    assert list(messages(source)) == ["told {} twice"]
    assert prose("a `told` [b](told.md)\n```text\ntold\n```\n") == "a code [b]\n\n"


def reading_ease(text: str) -> float:
    """Flesch's reading ease: 60 and more is plain English, below 30 is hard."""
    lines = [line for line in prose(text).splitlines() if not line.startswith(("|", "#"))]
    plain = " ".join(lines)
    sentences = max(1, len(re.findall(r"[.!?:;](?:\s|$)", plain)))
    words = re.findall(r"[A-Za-z']+", plain) or ["a"]
    syllables = sum(max(1, len(re.findall(r"[aeiouy]+", word.lower()))) for word in words)
    return 206.835 - 1.015 * len(words) / sentences - 84.6 * syllables / len(words)


def test_short_sentences_are_easier() -> None:
    hard = "Nonnegativity constraints unfortunately necessitate considerable computational efforts"
    assert reading_ease("The noise is small. It adds up.") > 60 > reading_ease(hard)


def report() -> None:
    rows = [(reading_ease(page.read_text(encoding="utf-8")), page) for page in [*OTHERS, *OURS]]
    for ease, page in sorted(rows):
        print(f"{ease:6.1f}  {len(page.read_text().split()):6,}  {page.relative_to(ROOT)}")
    for found in (page_offenders(OTHERS), message_offenders()):
        print("", *found, len(found), sep="\n")


if __name__ == "__main__":
    report()
