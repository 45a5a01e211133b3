"""Render docs/ to static HTML in site/ and refuse dead links. Run by `make docs`."""

from __future__ import annotations

import html
import re
import shutil
import sys
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

from markdown_it import MarkdownIt

DOCS = Path(__file__).resolve().parent
SITE = DOCS.parent / "site"
LINK = re.compile(r'(?:href|src)="([^"]+)"')
STYLE = """
body { margin: 0; font: 17px/1.55 system-ui, sans-serif; color: #1b2733; }
nav { position: fixed; top: 0; bottom: 0; width: 15rem; overflow: auto; padding: 1rem 1.2rem;
  box-sizing: border-box; background: #f4f6f8; font-size: 15px; }
nav p { margin: 1rem 0 .2rem; } nav a { display: block; padding: .1rem 0; }
nav p, nav a.here { color: #1b2733; font-weight: 600; }
main { margin-left: 15rem; padding: 1rem 2.5rem 4rem; max-width: 50rem; }
a { color: #0b5cad; text-decoration: none; } a:hover { text-decoration: underline; }
pre { background: #f4f6f8; padding: .8rem 1rem; overflow: auto; } code { font-size: .88em; }
table { border-collapse: collapse; display: block; overflow: auto; } img { max-width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem .8rem .35rem 0;
  border-bottom: 1px solid #d8dee4; }
@media (max-width: 800px) { nav { position: static; width: auto; } main { margin: 0; } }
"""


def slug(text: str) -> str:
    """The anchor of a heading, as code hosts make it."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def render(source: str) -> tuple[str, str, set[str]]:
    """Title, HTML and anchors of one page."""
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(source)
    title, anchors = "", set()
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            anchor = slug(inline.content)
            token.attrSet("id", anchor)
            anchors.add(anchor)
            title = title or inline.content
    return title, parser.renderer.render(tokens, parser.options, {}), anchors


def group(page: Path, docs: Path) -> str:
    """The heading of the sidebar a page stands under."""
    if page.parent == docs:
        return "" if page.name == "index.md" else "check"
    return {"adr": "decisions"}.get(page.parent.name, page.parent.name)


def pages(docs: Path) -> list[Path]:
    """All pages: first those the index names, in its order."""
    text = (docs / "index.md").read_text(encoding="utf-8")
    named = [docs / name for name in ["index.md", *re.findall(r"\]\(([^)#]+\.md)\)", text)]]
    every = [*(page for page in named if page.is_file()), *sorted(docs.glob("**/*.md"))]
    return list(dict.fromkeys(every))


def sidebar(here: Path, titles: dict[Path, str], docs: Path) -> str:
    """Links to every page, grouped by folder."""
    lines, last, up = [], "", "../" * len(here.relative_to(docs).parts[1:])
    for page, title in titles.items():
        if (name := group(page, docs)) != last:
            lines.append(f"<p>{html.escape(name.capitalize())}</p>")
            last = name
        to = page.relative_to(docs).with_suffix(".html").as_posix()
        mark = ' class="here"' if page == here else ""
        lines.append(f'<a{mark} href="{up}{to}">{html.escape(title)}</a>')
    return "\n".join(lines)


def problem(page: Path, target: str, anchors: dict[Path, set[str]], docs: Path) -> str | None:
    """Why a link is dead, if it is; addresses elsewhere are not tried."""
    if re.match(r"[a-z]+:", target):
        return None
    name, _, anchor = unquote(target).partition("#")
    file = (page.parent / name).resolve() if name else page
    if not file.is_relative_to(docs) or not file.is_file():
        return f"{page.relative_to(docs)}: no such page: {target}"
    if anchor and anchor not in anchors.get(file, set()):
        return f"{page.relative_to(docs)}: no such heading: {target}"
    return None


def build(docs: Path = DOCS, site: Path = SITE) -> list[str]:
    """Write the site and return the dead links found."""
    rendered = {page: render(page.read_text(encoding="utf-8")) for page in pages(docs)}
    titles = {page: title for page, (title, _, _) in rendered.items()}
    anchors = {page: found for page, (_, _, found) in rendered.items()}
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(docs, site, ignore=shutil.ignore_patterns("*.md", "*.py", "__pycache__"))
    dead = []
    for page, (title, body, _) in rendered.items():
        links = map(html.unescape, LINK.findall(body))
        dead += [why for link in links if (why := problem(page, link, anchors, docs))]
        body = re.sub(r'href="((?![a-z]+:)[^"]*?)\.md(#[^"]*)?"', r'href="\1.html\2"', body)
        out = site / page.relative_to(docs).with_suffix(".html")
        head = f"<title>{html.escape(title)}</title><style>{STYLE}</style>"
        out.write_text(
            f'<!doctype html><html lang="en"><meta charset="utf-8">{head}\n'
            f"<nav>{sidebar(page, titles, docs)}</nav>\n<main>{body}</main></html>\n",
            encoding="utf-8",
        )
    return dead


if __name__ == "__main__":
    problems = build()
    sys.stdout.write("".join(f"{line}\n" for line in problems) or f"{SITE / 'index.html'}\n")
    sys.exit(1 if problems else 0)
