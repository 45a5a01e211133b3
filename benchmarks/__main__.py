"""Run every benchmark and print its rows: python -m benchmarks [NAME ...] [--data DIR] [--json].

Sizes are constants of a benchmark's module; with --smallest they are those in its SMALLEST, which
shows only that it still runs.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import pkgutil
import time
from contextlib import ExitStack
from typing import Any
from unittest import mock

import benchmarks


def names() -> list[str]:
    return sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name != "__main__")


def measured(name: str, data: str | None = None, *, smallest: bool = False) -> list[dict[str, Any]]:
    """The rows of one benchmark."""
    module = importlib.import_module(f"benchmarks.{name}")
    sizes = getattr(module, "SMALLEST", {}) if smallest else {}
    known = inspect.signature(module.run).parameters
    keywords = {key: value for key, value in sizes.items() if key in known}
    if "data" in known:
        keywords["data"] = data
    constants = {key: value for key, value in sizes.items() if key not in known}
    with ExitStack() as stack:
        if constants:
            stack.enter_context(mock.patch.multiple(module, **constants))
        found: list[dict[str, Any]] = module.run(**keywords)
    return found


def table(rows: list[dict[str, Any]]) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [columns, *([_text(row.get(c, "")) for c in columns] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in cells]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _text(value: Any) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"any of {', '.join(names())}; default: all")
    parser.add_argument("--data", help="folder with real data, for the benchmarks that use it")
    parser.add_argument("--smallest", action="store_true", help="only see whether they run")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of tables")
    asked = parser.parse_args()
    found: dict[str, list[dict[str, Any]]] = {}
    for name in asked.names or names():
        start = time.perf_counter()
        found[name] = measured(name, asked.data, smallest=asked.smallest)
        if not asked.json:
            seconds = time.perf_counter() - start
            print(f"\n{name} ({seconds:.0f} s)\n{table(found[name])}", flush=True)
    if asked.json:
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
