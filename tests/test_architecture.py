"""The tree is the argument: a package imports only from packages above it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import congenial

ROOT = Path(congenial.__file__).parent
ORDER = (
    "data",
    "figures",
    "pairs",
    "privacy",
    "ledger",
    "sampling",
    "transport",
    "tables",
    "mechanisms",
    "synthesis",
    "inference",
    "audit",
    "report",
    "kinds",
    "publication",
    "exports",
    "papers",
    "desk",
    "cli",
)
EVERYWHERE = ("errors", "_exports", "_notebook", "_version")


def imported(path: Path) -> set[str]:
    """Packages of congenial that a module imports, inside functions and for typing too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            names = [node.module]
            if node.module == "congenial":
                names = [f"congenial.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("congenial.")}
    return found


def modules() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT)


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_upwards(path):
    package = path.relative_to(ROOT).parts[0]
    allowed = {*ORDER[: ORDER.index(package) + 1], *EVERYWHERE}
    assert imported(path) <= allowed


def imports_the_front_door(path: Path) -> bool:
    """Whether a module imports `congenial` itself, from which every room can be reached."""
    names = [
        alias.name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import)
        for alias in node.names
    ]
    return "congenial" in names


def test_no_room_imports_the_front_door():
    """What is worked out in a later room is asked for by its public name (`_exports.public`)."""
    found = {path for path in modules() if imports_the_front_door(path)}
    assert found == set()


def test_every_package_has_its_place():
    packages = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert packages <= set(ORDER)


def test_a_downward_import_would_be_noticed(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("def f():\n    from congenial.publication import plan\n")
    assert imported(bad) == {"publication"}


def test_no_module_name_stands_for_two_things():
    """A command of cli/ may carry the name of its room, and a room's first module the room's."""
    rooms = {path.name for path in ROOT.iterdir() if path.is_dir()}
    named: dict[str, list[Path]] = {}
    for path in modules():
        if not (path.parent.name == "cli" and path.stem in rooms):
            named.setdefault(path.stem, []).append(path)
    assert [paths for name, paths in named.items() if len(paths) > 1 and name[0] != "_"] == []


def test_no_class_name_stands_for_two_things():
    named: dict[str, list[Path]] = {}
    for path in modules():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                named.setdefault(node.name, []).append(path)
    assert {name: paths for name, paths in named.items() if len(paths) > 1} == {}


# What a kind of release is, is asked of the registry; only a command that is about one kind (an
# attack on tables) names it.
OF_ANY_KIND = {"registry", "kind"}
OF_ONE_KIND = {"cli/audit.py"}


def kinds_imported(path: Path) -> set[str]:
    """Modules of kinds/ that a module imports, inside functions and for typing too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "congenial.kinds":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "congenial.kinds."
        ):
            found.add(str(node.module).split(".")[2])
    return found


def test_kinds_are_known_through_the_registry_only():
    told = {}
    for package in ("publication", "cli"):
        for path in sorted((ROOT / package).glob("*.py")):
            place = path.relative_to(ROOT).as_posix()
            told[place] = kinds_imported(path) - OF_ANY_KIND
    assert {place for place, names in told.items() if names} == OF_ONE_KIND


def test_a_kind_named_outside_would_be_noticed(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text(
        "def f():\n    from congenial.kinds.records_from_models import ModelRecordsSection\n"
    )
    assert kinds_imported(bad) - OF_ANY_KIND == {"records_from_models"}


# What one has to load, and may have to read, to understand a command: modules that are imported at
# the top of a file, directly or through others. What only some plans need is imported where it is
# used.
MOST_MODULES = 76


def imported_at_the_top(body: list[ast.stmt]) -> set[str]:
    """Dotted names that a module's statements import when it is loaded; not for typing."""
    names = set()
    for node in body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("congenial"):
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            names |= imported_at_the_top([*node.body, *node.orelse])
    return names


def loaded_with(module: str) -> set[str]:
    """A module and all modules of congenial that loading it loads."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = ROOT.parent.joinpath(*name.split(".")).with_suffix(".py")
        if name not in seen and path.exists():
            seen.add(name)
            waiting += imported_at_the_top(ast.parse(path.read_text(encoding="utf-8")).body)
    return seen


def test_the_workflow_loads_few_modules():
    loaded = loaded_with("congenial.publication.workflow")
    assert "congenial.ledger.ledger" in loaded
    loaded -= {"congenial._exports", "congenial._version"}  # loaded with the package in any case
    assert len(loaded) <= MOST_MODULES


def test_what_is_loaded_on_use_or_for_typing_is_not_counted():
    source = "if TYPE_CHECKING:\n    from congenial.data import a\nfrom congenial.data import b\n"
    used = "def f():\n    from congenial.data import c\n"
    names = imported_at_the_top(ast.parse(source + used).body)
    assert names == {"congenial.data", "congenial.data.b"}
