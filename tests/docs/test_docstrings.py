"""Examples in docstrings are run, module by module, and give what they say."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

import congenial

SOURCE = Path(congenial.__file__).parent
PROMPT = re.compile(r"^ *>>> ", re.MULTILINE)
SKIPPED = {"congenial.kinds.by_group"}  # examples that need Spark and a ledger


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


WRITTEN = {
    module_of(path): len(PROMPT.findall(path.read_text())) for path in sorted(SOURCE.rglob("*.py"))
}
MODULES = [name for name, number in WRITTEN.items() if number]


def examples(module: str) -> list[doctest.DocTest]:
    """Those of a module, its classes and its functions, however they are wrapped."""
    return doctest.DocTestFinder().find(import_module(module))


@pytest.mark.parametrize("module", MODULES)
def test_examples(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    for one in examples(module):
        runner.run(one, out=told.append)
    assert not runner.failures, "".join(told)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("module", MODULES)
def test_no_example_is_overlooked(module: str) -> None:
    """As many are found as are written, and none is skipped without a line above."""
    found = [example for one in examples(module) for example in one.examples]
    assert len(found) == WRITTEN[module]
    skipped = [one for one in found if one.options.get(doctest.SKIP)]
    assert bool(skipped) == (module in SKIPPED)


def test_a_wrong_example_is_noticed() -> None:
    """Negative control."""
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(wrong, out=lambda _: None)
    assert runner.failures == 1
