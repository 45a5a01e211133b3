"""The report of a table released given public information: counts, both promises, the law.

Everything on the page is released or public.
"""

from __future__ import annotations

from itertools import product

from congenial._version import __version__
from congenial.mechanisms.wasserstein.release import VALUES, ValuesRelease
from congenial.privacy.tradeoff import Pure
from congenial.privacy.words import number
from congenial.release.page import Column, facts, folded_table, page, section, text
from congenial.release.promise import promise_section
from congenial.release.report import banner
from congenial.transport.secrets import meaning

CONTENTS = (
    ("counts", "The counts"),
    ("promise", "The promise"),
    ("law", "The law of the counts"),
    ("use", "How to use it"),
)
CODE = """import congenial
from congenial.inference import Poisson, infer

release = congenial.read("this-folder")
release.counts

# the law of the counts is known, so inference accounts for it
infer(release, Poisson()).summary(0.95)"""


def render(release: ValuesRelease, promise: str) -> str:
    """The report as one HTML document; `promise` is the paragraph printed at release time."""
    return page(
        f"{release.name}: counts given public information",
        [
            banner(release),
            _opening(release),
            _counts(release),
            _promise(release, promise),
            _law(release),
            _use(),
            f'<footer class="soft">Written by congenial {text(__version__)}. This page loads '
            "nothing from a network and shows released and public values only.</footer>",
        ],
    )


def _opening(release: ValuesRelease) -> str:
    links = "".join(f'<li><a href="#{anchor}">{text(title)}</a></li>' for anchor, title in CONTENTS)
    return (
        f'<header><h1>{text(release.name)}</h1>\n<p class="lead">{len(release.values):,} counts '
        f"over {text(', '.join(release.table))}, protected with "
        f"{text(release.guarantee.tradeoff.words)} given what is public already.</p>\n"
        f"<nav><ul>{links}</ul></nav></header>"
    )


def _counts(release: ValuesRelease) -> str:
    axes = release.schema.axes(release.table)
    cells = product(*(axis.levels for axis in axes))
    rows = [[*cell, value] for cell, value in zip(cells, release.values, strict=True)]
    columns = [*(Column(name) for name in release.table), Column("released count", number=True)]
    told = (
        "<p>Released counts are draws, not the truth. Taking them for the truth makes intervals "
        "too narrow; <code>congenial infer</code> shows by how much.</p>"
    )
    return section(
        "counts", "The counts", told, folded_table(columns, rows, of=len(rows), file=VALUES)
    )


def _promise(release: ValuesRelease, promise: str) -> str:
    guarantee, persons = release.guarantee, release.persons
    beliefs = ""
    if isinstance(guarantee.tradeoff, Pure):
        beliefs = f"<p>{text(meaning(guarantee.tradeoff.eps))}</p>"
    anybody = "<p>Without those beliefs nothing is promised about single persons.</p>"
    if persons is not None:
        anybody = f"<blockquote>{text(persons.explain())}</blockquote>"
    return promise_section(
        guarantee, promise, "<h3>Whatever anybody believes</h3>", anybody, lead=beliefs
    )


def _law(release: ValuesRelease) -> str:
    law, base = release.description.law, release.base
    nu = {
        "naive": "every table of whole numbers, all alike",
        "congenial": "tables of counts with the published sums, all alike",
        "prior-congenial": "tables of counts with the published sums, weighted by the earlier "
        "counts (Dirichlet-multinomial)",
    }[base.kind]
    return section(
        "law",
        "The law of the counts",
        "<p>p(y | x) ~ nu(y) exp(-rate loss(y, x)), x the true table.</p>",
        facts(
            [
                ("Base measure nu", f"{base.kind}: {nu}"),
                ("Loss", law["loss"]),
                ("Rate", number(release.rate)),
                ("Factor for the normaliser", law["factor"]),
                ("Delta_z", f"{law['delta_z']['value']:g} in {law['delta_z']['measure']}"),
                ("Sampler", law["sampler"]),
                ("One replaced record", f"epsilon = {number(release.description.epsilon)}"),
            ]
        ),
    )


def _use() -> str:
    return section(
        "use",
        "How to use it",
        f"<pre><code>{text(CODE)}</code></pre>",
        "<p>Without Python: <code>values.csv</code> has one row per cell, with its labels and the "
        "column <code>count</code>; the law is in <code>release.json</code> under "
        "<code>description</code>.</p>",
        "<pre><code>congenial verify this-folder --digest DIGEST</code></pre>",
    )
