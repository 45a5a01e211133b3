"""The public names: few at the top, the rest in packages, all there, loaded on first use."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import congenial
from congenial._exports import LazyPackage

PACKAGES = [
    "congenial",
    *(
        f"congenial.{name}"
        for name in (
            "audit",
            "figures",
            "inference",
            "ledger",
            "mechanisms",
            "pairs",
            "papers",
            "privacy",
            "synthesis",
            "tables",
            "transport",
        )
    ),
]


def documented(module: ModuleType, name: str) -> bool:
    """Whether a name has a docstring of its own; a constant's stands below its assignment."""
    value = getattr(module, name)
    if callable(value):
        return bool(vars(value).get("__doc__") or inspect.getdoc(value))
    home = import_module(module._homes[name][0])
    body = ast.parse(Path(str(home.__file__)).read_text()).body
    for statement, below in pairwise(body):
        targets = getattr(statement, "targets", [getattr(statement, "target", None)])
        if any(isinstance(one, ast.Name) and one.id == name for one in targets):
            return isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
    return False


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_there_and_documented(package: str) -> None:
    module = import_module(package)
    assert isinstance(module, LazyPackage)
    names = {*module.__all__} - {"__version__"}
    assert names == set(module._homes)
    assert dir(module) == sorted(module.__all__)
    assert module.__doc__
    for name in names:
        assert not isinstance(getattr(module, name), ModuleType), name
        assert documented(module, name), name


def test_a_name_that_is_only_imported_for_types_is_not_public() -> None:
    """Type checkers and users see the same names: those of `__all__`, from the same imports."""
    module: Any = import_module("congenial.ledger")
    listed = module.__all__
    module.__all__ = [name for name in listed if name != "Budget"]
    try:
        with pytest.raises(AttributeError, match="no attribute 'Budget'"):
            module.__getattr__("Budget")
    finally:
        module.__all__ = listed


def test_one_level_everywhere() -> None:
    """Of intervals; a test of an odds ratio has its own, with its size."""
    from congenial.cli.estimate import estimate
    from congenial.cli.export import export
    from congenial.cli.infer import infer
    from congenial.inference import Posterior
    from congenial.mechanisms import Released
    from congenial.mechanisms.released import LEVEL

    asked = (estimate, export, infer, congenial.estimate, Released.interval, Posterior.summary)
    assert {inspect.signature(one).parameters["level"].default for one in asked} == {LEVEL}


def test_the_list_stays_short_and_sorted() -> None:
    assert len(congenial.__all__) <= 32
    assert congenial.__all__ == sorted(congenial.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_an_unknown_name_is_an_attribute_error(package: str) -> None:
    module: Any = import_module(package)
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = module.Nonsense


def test_a_name_that_is_also_a_module_stays_the_name() -> None:
    program = (
        "from congenial.transport.certificates import Distance\n"
        "import congenial.transport.delta_z\n"
        "from congenial.transport import delta_z, distance\n"
        "print(callable(distance), callable(delta_z), callable(congenial.transport.delta_z))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["True"] * 3, done.stderr


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_a_package_loads_nothing_heavy(package: str) -> None:
    program = f"import sys, {package}; print([m for m in ('numpy', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("name", sorted(set(congenial.__all__) - {"__version__"}))
def test_every_exported_name_is_explained_with_an_example(name: str) -> None:
    told = inspect.getdoc(getattr(congenial, name)) or ""
    assert ">>> " in told
    assert len(told.splitlines()) > 1
