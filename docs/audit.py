"""Write what the audit tried into its page, and the outcome into README.md.

Run by `make audit`, after the tests.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
PAGE, README = DOCS / "explanation" / "how-promises-are-tested.md", DOCS.parent / "README.md"
BEGIN, END = "<!-- audit: written by `make audit` -->", "<!-- end of audit -->"

# name a test reports -> what was tried, how much of it, and what it means that the tests passed
PARTS: dict[str, tuple[str, str, str]] = {
    "exact": (
        "Every pair of datasets that the promise compares; all results near the true answers, the "
        "rest pooled",
        "{universes:,} combinations of mechanism, promise and small universe, {pairs:,} pairs",
        "no loss above its promise",
    ),
    "black box": (
        "Guess which of two hostile datasets a release came from",
        "{pairs:,} pairs, {draws:,} draws",
        "no promise refuted",
    ),
    "planted": ("Mechanisms and budgets broken on purpose", "{defects:,} defects", "all caught"),
    "bits": (
        "Attainable results and low-order bits",
        "{draws:,} draws",
        "the naive sampler gives itself away, ours does not",
    ),
    "kills": (
        "Processes killed at random moments and at every touch of a file",
        "{kills:,} kills",
        "nothing overspent, nothing lost",
    ),
    "writers": (
        "Processes writing to one ledger at once",
        "{writers:,} writers",
        "nothing overspent, nothing lost",
    ),
    "inputs": (
        "Mutated plans, predicates, bundles and data files",
        "{cases:,} inputs",
        "accepted, or refused in words; nothing half-written",
    ),
    "markers": (
        "Rare values planted in confidential data",
        "{runs:,} runs, {files:,} files and messages read",
        "none came out",
    ),
    "desk": (
        "Requests to the desk without a token, with forged forms, beyond somebody's role, along "
        "paths that lead out, and mangled",
        "{requests:,} requests",
        "none did or showed more than it may",
    ),
    "mutations": (
        "Calibration constants changed by 20 % in the source",
        "{mutations:,} changes",
        "a test fails for each",
    ),
    "random mutants": (
        "Random small changes of privacy-relevant functions, with a fixed seed",
        "{drawn:,} mutants, {changing:,} of which are not known to change nothing",
        "{caught:,} noticed; the others are named in tests/mutation/random_mutants.toml",
    ),
}


def rows(attempts: list[dict[str, Any]]) -> list[str]:
    """One line of Markdown per part, numbers summed over the tests that report it."""
    found = []
    for part, (tried, amount, verdict) in PARTS.items():
        told = [one for one in attempts if one["part"] == part]
        if not told:
            found.append(f"| {tried} | not run | |")
            continue
        numbers: Counter[str] = Counter()
        for one in told:
            numbers.update({k: v for k, v in one.items() if k not in ("part", "passed")})
        failed = sum(not one["passed"] for one in told)
        result = (
            verdict.format(**numbers)
            if not failed
            else f"**{failed} of {len(told)} checks failed**"
        )
        found.append(f"| {tried} | {amount.format(**numbers)} | {result} |")
    return found


def outcome(told: dict[str, Any], *, names: bool = True) -> str:
    """How the run ended, with every failure: a test may fail before it reports what it tried."""
    ran = f"{told['run']:,} checks"
    if not told["complete"]:
        ran += " before it was **interrupted**"
    failed = [f"`{name}`" for name in told["failed"]]
    if not failed:
        return f"{ran}, none failed"
    return f"{ran}, **{len(failed)} failed**" + (f": {', '.join(failed)}" if names else "")


def write(told: dict[str, Any], page: Path = PAGE, readme: Path = README) -> None:
    """Replace the table on the page, and the line in the README, between their two marks."""
    day = f"Last run: {datetime.now(UTC):%Y-%m-%d}; "
    lines = ["| Tried | How much | Result |", "|---|---|---|", *rows(told["attempts"])]
    _replace(page, [*lines, "", f"{day}{outcome(told)}."])
    _replace(readme, [f"{day}{outcome(told, names=False)}."])


def _replace(file: Path, lines: list[str]) -> None:
    before, rest = file.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    text = "\n".join([BEGIN, "", *lines, "", END])
    file.write_text(before + text + after, encoding="utf-8")


if __name__ == "__main__":
    write(json.loads(Path(sys.argv[1]).read_text()))
