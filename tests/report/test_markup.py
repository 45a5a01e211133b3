"""A page of ours taken apart: what must be the same to the letter is."""

from __future__ import annotations

import pytest

from congenial.report.markup import Loose, same_page

CAPTION = "Counts & their bounds"
FIGURE = (
    '<figure><img src="data:image/svg+xml;base64,QUJD" alt="Counts &amp; their bounds">'
    "<figcaption>Counts &amp; their bounds</figcaption></figure>"
)
LOOSE = Loose(("free",), "counts", (CAPTION,))


def page(counts: str = "", text: str = "It&#x27;s &lt;so&gt;", free: str = "<p>Any</p>") -> str:
    return (
        f'<!DOCTYPE html><body><p>{text}</p><section id="counts"><h2>Counts</h2>{counts}</section>'
        f'<section id="free"><h2>Free</h2>{free}</section></body>'
    )


def test_what_may_differ() -> None:
    assert same_page(page(), page(), LOOSE)
    assert same_page(page(FIGURE), page(), LOOSE)
    assert same_page(page(free="<p>Other &#x27;words&#x27;</p><ul><li>1</li></ul>"), page(), LOOSE)


@pytest.mark.parametrize(
    "text",
    [
        "Its &lt;so&gt;",
        "It&#x22;s &lt;so&gt;",
        "It&#x27;s &lt;so",
        "It&#x27;s &gt;so&gt;",
        "It&#x27;s &lt;so&gt;&#x27;",
        "It&#x27;s <b>so</b>",
    ],
)
def test_escaped_characters_are_part_of_the_text(text: str) -> None:
    assert not same_page(page(text=text), page(), LOOSE)


@pytest.mark.parametrize(
    "counts",
    [
        FIGURE + FIGURE,
        FIGURE.replace("</figure>", ""),
        FIGURE.replace("QUJD", "QUJD?"),
        FIGURE.replace("<figcaption>", "<figcaption><a>"),
        FIGURE.replace("their", "our"),
        f"{FIGURE}<!-- seen -->",
        f"<section>{FIGURE}</section>",
    ],
)
def test_one_picture_of_ours_and_no_more(counts: str) -> None:
    assert not same_page(page(counts), page(), LOOSE)


@pytest.mark.parametrize("free", ["<a>x</a>", "<script>1</script>", "<h3>x</h3>", "<figure>"])
def test_loose_sections_keep_to_our_tags(free: str) -> None:
    assert not same_page(page(free=free), page(), LOOSE)
