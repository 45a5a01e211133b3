"""Coverage-guided fuzzing of plans, conditions and schemas, for `atheris` where it is installed.

    python -m tests.fuzz.guided -runs=50000 -seed=1 CORPUS

libFuzzer's options apply. An error that was not raised on purpose ends it with another exit code.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["congenial.data", "congenial.publication", "tomllib"]):
    from congenial.data.predicate import parse
    from congenial.data.schema import Schema
    from congenial.errors import CongenialError
    from congenial.publication.plan import Plan
    from tests.fuzz.test_plans import CONDITIONS, PLANS, SCHEMA, read


def one(data: bytes) -> None:
    """The first byte says what the rest is: a plan, a condition, or a schema."""
    text = data[1:].decode("utf-8", "replace")
    try:
        if data[:1] < b"\x55":
            read(text, Path("/nowhere"))
        elif data[:1] < b"\xaa":
            parse(text, SCHEMA)
        else:
            try:
                tree = json.loads(text)
            except (ValueError, RecursionError):
                return
            Schema.from_dict(tree)
    except CongenialError:
        return


def seeds(folder: Path) -> None:
    """Valid inputs to start from."""
    texts = [b"\x00" + plan.encode() for plan in PLANS]
    texts += [b"\x60" + condition.encode() for condition in CONDITIONS]
    texts += [
        b"\xb0" + json.dumps(Plan.parse(plan, Path()).schema_, default=str).encode()
        for plan in PLANS
    ]
    for at, content in enumerate(texts):
        (folder / f"seed-{at}").write_bytes(content)


if __name__ == "__main__":
    seeds(Path(sys.argv[-1]))
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
