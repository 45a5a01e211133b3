"""Public names: how a package loads them on first use.

A package imports its names under `TYPE_CHECKING`, which type checkers and the documentation read,
lists them in `__all__` and calls `load_on_first_use`. Importing the package then loads nothing;
`from package import Name` reads those imports and loads the one module that defines the name.
"""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any


class LazyPackage(ModuleType):
    """A package whose `__all__` names are loaded when they are first asked for."""

    @cached_property
    def _homes(self) -> dict[str, tuple[str, str]]:
        """Module and name there of each public name, from the imports under TYPE_CHECKING."""
        body = ast.parse(inspect.getsource(self)).body
        blocks = [part.body for part in body if isinstance(part, ast.If)]
        imports = [
            statement
            for block in blocks
            for statement in block
            if isinstance(statement, ast.ImportFrom)
        ]
        return {
            alias.asname or alias.name: (str(statement.module), alias.name)
            for statement in imports
            for alias in statement.names
        }

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dict__.get("__all__", ()) or name not in self._homes:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        module, attribute = self._homes[name]
        value = getattr(import_module(module), attribute)
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # Importing a submodule binds it to its package; a public name of that spelling stays itself
        # (`congenial.transport.delta_z` is the function, also once its module is loaded).
        if not (isinstance(value, ModuleType) and name in self.__dict__["__all__"]):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return list(self.__dict__["__all__"])


def load_on_first_use(package: str) -> None:
    """Make `package` load its names on first use."""
    sys.modules[package].__class__ = LazyPackage


def public(name: str) -> Any:
    """A public name of `congenial`, loaded now: what a release is asked is worked out in a room
    that comes after it and that it does not import.
    """
    return getattr(sys.modules["congenial"], name)
