"""The tree is the argument: a package imports only from packages above it, one module does a thing
that must be done in one way, and files that prose names are there.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import congenial

ROOT = Path(congenial.__file__).parent
REPOSITORY = ROOT.parent.parent
ORDER = (
    *("data", "figures", "pairs", "privacy", "ledger", "sampling", "transport", "tables"),
    *("mechanisms", "synthesis", "inference", "audit", "report", "kinds", "publication"),
    *("exports", "papers", "desk", "cli"),
)
EVERYWHERE = ("errors", "_exports", "_notebook", "_version")


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def modules() -> tuple[Path, ...]:
    """All modules in rooms."""
    return tuple(sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT))


def place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def dotted(path: Path) -> set[str]:
    """Names that a module imports, inside functions and for typing too."""
    names = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def imported(path: Path) -> set[str]:
    """Packages of congenial that a module imports."""
    return {name.split(".")[1] for name in dotted(path) if name.startswith("congenial.")}


def test_imports_point_upwards():
    for path in modules():
        room = ORDER.index(path.relative_to(ROOT).parts[0])
        assert imported(path) <= {*ORDER[: room + 1], *EVERYWHERE}, place(path)


def test_no_room_imports_the_front_door():
    """`congenial` reaches every room: what a later room works out is asked for by its public name
    (`_exports.public`).
    """
    assert [place(path) for path in modules() if "congenial" in dotted(path)] == []


def graph() -> dict[str, set[str]]:
    """The modules that each module imports, inside functions and for typing too."""
    names = {
        ".".join(("congenial", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): path
        for path in modules()
    }
    edges: dict[str, set[str]] = {}
    for name, path in names.items():
        used = dotted(path) | {long.rpartition(".")[0] for long in dotted(path)}
        edges[name] = {
            other
            for other in used & names.keys()
            if other != name
            and not any(long.startswith(f"{other}.") for long in used & names.keys())
        }
    return edges


def test_no_modules_import_each_other_in_a_circle():
    TopologicalSorter(graph()).prepare()  # CycleError names the circle


def test_a_circle_would_be_noticed():
    edges = graph()
    edges["congenial.errors_of_tables"] = {"congenial.kinds.tables"}
    edges["congenial.kinds.tables"] = edges["congenial.kinds.tables"] | {
        "congenial.errors_of_tables"
    }
    with pytest.raises(CycleError):
        TopologicalSorter(edges).prepare()


def test_every_package_has_its_place():
    packages = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert packages <= set(ORDER)


def test_no_name_stands_for_two_things():
    """A command of cli/ may carry the name of its room, and a room's first module the room's."""
    rooms = {path.name for path in ROOT.iterdir() if path.is_dir()}
    named: dict[str, list[str]] = {}
    for path in modules():
        classes = [n.name for n in parsed(path).body if isinstance(n, ast.ClassDef)]
        own = [] if path.parent.name == "cli" and path.stem in rooms else [path.stem]
        for name in (*own, *classes):
            named.setdefault(name, []).append(place(path))
    assert {n: where for n, where in named.items() if len(where) > 1 and n[0] != "_"} == {}


# What a kind of release is, is asked of the registry; only a command that is about one kind (an
# attack on tables) names it.
OF_ANY_KIND = {"registry", "kind", "planned_data", "plan_sections"}
OF_ONE_KIND = ["cli/audit.py"]


def kinds_imported(path: Path) -> set[str]:
    """Modules of kinds/ that a module imports."""
    names = (name.split(".") for name in dotted(path) if name.startswith("congenial.kinds."))
    return {name[2] for name in names}


def test_kinds_are_known_through_the_registry_only():
    outside = [path for path in modules() if path.parent in (ROOT / "publication", ROOT / "cli")]
    assert [place(path) for path in outside if kinds_imported(path) - OF_ANY_KIND] == OF_ONE_KIND


@pytest.mark.parametrize(
    ("line", "package", "kind"),
    [
        ("from congenial.publication import plan", "publication", set()),
        ("from congenial.kinds.tables import TablesSection", "kinds", {"tables"}),
        ("import congenial.kinds.tables", "kinds", {"tables"}),
    ],
)
def test_a_wrong_import_would_be_noticed(tmp_path, line, package, kind):
    bad = tmp_path / "bad.py"
    bad.write_text(f"def f():\n    {line}\n    import congenial\n")
    assert imported(bad) == {package}
    assert kinds_imported(bad) == kind
    assert "congenial" in dotted(bad)


# ---- what a command loads -----------------------------------------------------------------------

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
            waiting += imported_at_the_top(parsed(path).body)
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


# ---- what one module does ------------------------------------------------------------------------

# A pattern, and the modules that may have it: whoever needs the thing uses them.
ONCE = {
    "words become doubles: 0.5 added to 53 bits rounds to 1.0 at the end": (
        r"\+ 0\.5\) \* 2\.0\*\*-53",
        {"sampling/randomness.py"},
    ),
    "CSV is written, without formulas; the demo writes names of its own": (
        r"csv\.(writer|DictWriter)|write_csv|to_csv",
        {"data/text_files.py", "publication/demo_population.py"},
    ),
    "files are synced and renamed; parts of a bundle get a second name in a folder that is": (
        r"\bos\.(fsync|replace|rename|link)\(|\.rename\(|mkstemp|NamedTemporaryFile",
        {"data/durable_files.py", "publication/bundle.py"},
    ),
    "the precision of ball arithmetic is set, for the whole process and under a lock": (
        r"\b(workprec|extraprec|workdps|extradps)\b|ctx\.(prec|dps) = ",
        {"sampling/exact_decisions.py"},
    ),
}


@pytest.mark.parametrize("what", ONCE)
def test_one_module_does_it(what):
    pattern, places = ONCE[what]
    texts = {place(path): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}
    assert {where for where, text in texts.items() if re.search(pattern, text)} == places
    if "publication/bundle.py" in places:
        assert not re.search(pattern, texts["publication/bundle.py"].replace("os.link(", ""))


# ---- files that prose names ----------------------------------------------------------------------

MODULE = re.compile(r"(?<![\w./*-])((?:[a-z][a-z_]*/)*[a-z][a-z_]*\.py)\b")


def prose(text: str) -> str:
    """Docstrings and comments of a module."""
    nodes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    documented = [
        ast.get_docstring(node) or ""
        for node in ast.walk(ast.parse(text))
        if isinstance(node, nodes)
    ]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    return "\n".join([*documented, *comments])


@cache
def present() -> tuple[str, ...]:
    folders = [ROOT, REPOSITORY / "tests", REPOSITORY / "benchmarks"]
    return tuple(path.as_posix() for folder in folders for path in folder.rglob("*.py"))


def absent(text: str) -> list[str]:
    """Modules that some prose names and that are nowhere in the repository, by name and folder."""
    named = set(MODULE.findall(text))
    return sorted(n for n in named if not any(path.endswith(f"/{n}") for path in present()))


def test_modules_that_are_named_exist():
    told = {place(path): absent(prose(path.read_text("utf-8"))) for path in ROOT.rglob("*.py")}
    assert {path: missing for path, missing in told.items() if missing} == {}
    assert absent((REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")) == []
    source = '"""See `figures/merged.py` and figures/people.py."""\n\nx = 1  # as `set_cover.py`\n'
    assert absent(prose(source)) == ["figures/merged.py", "set_cover.py"]


def test_twelve_changes_open_at_most_three_files_each():
    """The table of CONTRIBUTING.md: paths below src/congenial/, tests/ or docs/ that exist."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.split("## Twelve changes")[1].split("\n## ")[0]
    rows = [row for row in table.splitlines() if row.startswith("|")][2:]
    assert len(rows) == 12
    for row in rows:
        files = re.findall(r"`([\w/-]+\.[a-z]+)`", row)
        assert 1 <= len(files) <= 3, row
        for name in files:
            roots = (ROOT, REPOSITORY) if name.split("/")[0] in ORDER else (REPOSITORY,)
            assert any((root / name).is_file() for root in roots), name
