"""Public names: how a package loads them on first use, and former names that still answer.

A package lists where each of its names lives and calls `load_on_first_use`. Importing the package
then loads nothing; `from package import Name` loads the one module that defines it. Type checkers
and the documentation read the same names from imports under `TYPE_CHECKING`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


class LazyPackage(ModuleType):
    """A package whose `__all__` names are loaded when they are first asked for."""

    def __getattr__(self, name: str) -> Any:
        homes: Mapping[str, str] = self.__dict__["_homes"]
        if name not in homes:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        module, _, attribute = homes[name].partition(":")
        value = getattr(import_module(f"congenial.{module}"), attribute or name)
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # Importing a submodule binds it to its package; a public name of that spelling stays itself
        # (`congenial.transport.distance` is the function, also once its module is loaded).
        if not (isinstance(value, ModuleType) and name in self.__dict__["_homes"]):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return list(self.__dict__["__all__"])


def load_on_first_use(package: str, homes: Mapping[str, str]) -> None:
    """Make `package` load its names on first use.

    homes: name -> module below `congenial`, or "module:attribute" for a name that is an alias.
    """
    module = sys.modules[package]
    module.__dict__["_homes"] = homes
    module.__class__ = LazyPackage


class Renamed:
    """A former name of an attribute: gives the attribute and warns.

    >>> import warnings
    >>> class Count:
    ...     figures = 3
    ...     mandates = Renamed("figures")
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     found = Count().mandates
    >>> found, str(told[0].message)
    (3, '`mandates` is called `figures` now.')
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __set_name__(self, owner: type, former: str) -> None:
        self.former = former

    def __get__(self, holder: object | None, owner: type | None = None) -> Any:
        if holder is None:
            return self
        words = f"`{self.former}` is called `{self.name}` now."
        warnings.warn(words, DeprecationWarning, stacklevel=2)
        return getattr(holder, self.name)
