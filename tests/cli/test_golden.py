"""What the commands say, word for word: `tests/golden` is to be read in one sitting.

After a change of words, write the files again and read the difference before it is committed:

    pytest tests/cli/test_golden.py --rewrite-golden
    git diff tests/golden

Commands run in their own folder, so that no path of this machine is shown; digests and times are
masked by characters of the same length, so that tables keep their width.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import plans
from tests.cli.conftest import PLAN, Ran, write_people
from tests.kinds import nation_plan
from tests.kinds import test_sums_plan as hospital_plan
from tests.kinds.test_two_by_two_plan import PLAN as ODDS_RATIO

GOLDEN = Path(__file__).parents[1] / "golden"
MASKED = (
    re.compile(r"\b[0-9a-f]{12,64}\b"),  # digests, ids of releases
    re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?"),
)

Say = Callable[..., str]


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder whose name is short in every run, so that lines break in the same places."""
    with tempfile.TemporaryDirectory(prefix="golden", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def say(run: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Say:
    """Run a command in an empty folder: what was typed, what was printed, how it ended."""
    monkeypatch.chdir(tmp_path)

    def say(*words: object) -> str:
        ran = run(*words)
        typed = " ".join(f'"{word}"' if " " in str(word) else str(word) for word in words)
        lines = [f"$ congenial {typed}", ran.out.rstrip(), ran.err.rstrip()]
        if ran.code:
            lines.append(f"[exit code {ran.code}]")
        return "\n".join(line for line in lines if line) + "\n"

    return say


@pytest.fixture
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Compare texts with files of the same name; with --rewrite-golden write the files."""
    said: dict[str, str] = {}

    def keep(name: str, *texts: str) -> None:
        said[name] = masked("\n".join(texts), tmp_path)

    yield keep
    if request.config.getoption("--rewrite-golden"):
        GOLDEN.mkdir(exist_ok=True)
        for name, text in said.items():
            (GOLDEN / f"{name}.txt").write_text(text, encoding="utf-8")
    for name, text in said.items():
        expected = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
        assert text == expected, f"{name}.txt: read the difference, then --rewrite-golden"


def masked(text: str, folder: Path) -> str:
    text = text.replace(str(folder), "FOLDER")
    for pattern in MASKED:
        text = pattern.sub(lambda found: "#" * len(found.group()), text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def messy(row: dict[str, Any]) -> None:
    """Capitals and blanks, an unknown category, words for numbers, an id twice."""
    if row["id"] % 3 == 0:
        row["sex"] = f" {row['sex'].upper()}"
    if row["id"] % 40 == 1:
        row["county"] = "D"
    if row["id"] % 50 == 2:
        row["age"] = "unknown"
    if row["id"] == 7:
        row["id"] = 8


def test_sums_of_a_number(say: Say, golden: Callable[..., None], tmp_path: Path) -> None:
    """Counts and sums of two numbers, as a journalist reads them."""
    hospital_plan.with_days(hospital_plan.hospital(tmp_path, *hospital_plan.SEVERAL[:2]))
    say("publish", "plan.toml")
    say("release", "plan.toml", "--seed", 1)
    golden("explain-sums", say("explain", "bundles/cost", "--for", "journalist"))


def test_from_a_plan_to_a_bundle(
    say: Say, golden: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "ann")
    write_people(Path("people.csv"))
    Path("plan.toml").write_text(PLAN)
    Path("other.toml").write_text(PLAN.replace("epsilon = 0.5", "epsilon = 0.25"))
    want = "margin('county') within 10 at 95%"
    golden("check", say("check", "plan.toml"), say("check", "plan.toml", "--want", want))
    golden("check-full", say("check", "plan.toml", "--full"))
    golden("compare", say("compare", "plan.toml", "other.toml"))
    golden("init", say("init", "people.csv", "--out", "draft.toml"), Path("draft.toml").read_text())
    Path("messy.toml").write_text(PLAN.replace("people.csv", "messy.csv"))
    write_people(Path("messy.csv"), messy)
    golden(
        "data",
        say("data", "plan.toml"),
        say("data", "messy.toml"),
        say("data", "messy.toml", "--examples", 2),
    )
    golden("publish-dry-run", say("publish", "plan.toml", "--dry-run", "--fewer-than", 30))
    golden("publish", say("publish", "plan.toml"), say("publish", "plan.toml"))
    golden("check-published", say("check", "plan.toml"))
    golden("release", say("release", "plan.toml", "--seed", 1))
    golden("verify", say("verify", "bundles/detail"))
    golden("explain-plan", say("explain", "plan.toml"))
    golden("explain", say("explain", "bundles/detail"))
    readers = ("analyst", "journalist", "engineer")
    golden("explain-for", *(say("explain", "bundles/detail", "--for", one) for one in readers))
    golden(
        "estimate",
        say("estimate", "bundles/detail", "--of", "count(age >= 65) by county"),
        say("estimate", "bundles/detail", "--of", "share(sex = 'f' | age >= 65)", "--jointly"),
        say("estimate", "bundles/detail", "--test", "independent(sex, age)"),
    )
    chain = ("--set", "draws=200", "--set", "seed=1")
    golden("infer", say("infer", "bundles/summary", "--model", "poisson", *chain))
    attack = ("--name", "summary", "--draws", 4000, "--pairs", 1, "--seed", 1)
    golden("audit", say("audit", "plan.toml", *attack))
    golden("export", say("export", "bundles/detail", "--to", "datapackage", "--out", "package"))
    golden("reassess", say("reassess", "plan.toml"), say("reassess", "plan.toml", "--rho", "0.5"))
    golden(
        "ledger",
        say("ledger", "show", "plan.toml"),
        say("ledger", "pending", "plan.toml"),
        say("ledger", "finish", "plan.toml"),
        say("ledger", "unit", "plan.toml"),
        say("ledger", "repair", "plan.toml"),
        say("ledger", "grant", "plan.toml", "ben", "reviewer"),
        say("ledger", "require", "plan.toml"),
        say("propose", "plan.toml"),
        say("ledger", "show", "plan.toml"),
    )
    monkeypatch.setenv("LOGNAME", "ben")
    golden(
        "approve",
        say("approve", "plan.toml"),
        say("approve", "plan.toml", "--withdraw"),
        say("ledger", "budget", "plan.toml", "--epsilon", 4),
    )
    golden(
        "convert",
        say("convert", "--epsilon", 1),
        say("convert", "--rho", 2.56, "--delta", 1e-10, "--to", "epsilon"),
    )


KINDS = {
    "parts": lambda: nation_plan.written(Path()),
    "odds-ratio": lambda: Path("plan.toml").write_text(ODDS_RATIO),
    "given-public-information": lambda: plans.write_plan(Path(), "given-public"),
    "statistics": lambda: plans.write_plan(Path(), "statistics-persons"),
    "records-from-models": lambda: plans.write_plan(Path(), "synthetic"),
    "records-from-tables": lambda: Path("plan.toml").write_text(
        plans.PLANS["plain"].split("[[release]]")[0]
        + '[[release]]\nname = "people"\nsynthesise = ["county", "sex", "age"]\nrho = 0.5\n'
        "[budget]\nrho = 1\n"
    ),
    "estimate": lambda: Path("plan.toml").write_text(
        plans.PLANS["statistics-persons"].split("[[release]]")[0]
        + '[[release]]\nname = "age"\nestimate = { mean = "age", between = [0, 109] }\n'
        "epsilon = 1\n[budget]\nepsilon = 4\n"
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_check_of_every_kind(kind: str, say: Say, golden: Callable[..., None]) -> None:
    KINDS[kind]()
    golden(f"check-{kind}", say("check", "plan.toml"), say("check", "plan.toml", "--full"))


# What is wrong, the text of the plan that is replaced, and what it is replaced by.
WRONG_PLANS = [
    ("a key is misspelt", "epsilon = 1.0", "epsilom = 1.0"),
    ("a promise is missing", "epsilon = 1.0\n", ""),
    ("a promise is negative", "epsilon = 1.0", "epsilon = -1"),
    ("a promise is text", "epsilon = 1.0", 'epsilon = "1"'),
    ("two promises", "epsilon = 1.0", "epsilon = 1.0\nrho = 0.1"),
    ("delta without epsilon", "epsilon = 0.5", "rho = 0.5\ndelta = 1e-6"),
    ("a name with a slash", 'name = "detail"', 'name = "a/b"'),
    ("one name twice", 'name = "summary"', 'name = "detail"'),
    ("a table that is not a list", 'table = ["state", "age"]', 'table = "state"'),
    ("a column that is not in the schema", '["state", "age"]', '["state", "ages"]'),
    ("a condition that cuts a class", "age >= 18", "age >= 17"),
    ("a condition about a category that does not exist", "age >= 18", "sex = 'x'"),
    ("a condition that cannot be read", "age >= 18", "age => 18"),
    ("edges that are not in order", "[0, 18, 30, 65]", "[0, 30, 18, 65]"),
    ("an unknown key of the schema", "levels = [", "level = ["),
    ("two kinds of figure", "total = true", 'total = true, margin = ["sex"]'),
    ("no budget", "[budget]\nepsilon = 2.0\n", ""),
    ("rounding", "epsilon = 1.0", "epsilon = 1.0\nround_to = 5"),
    ("suppression", "epsilon = 1.0", "epsilon = 1.0\nsuppress_below = 10"),
    ("survey weights", 'unit = "id"', 'unit = "id"\nweight = "w"'),
    ("a seed", "epsilon = 1.0", "epsilon = 1.0\nseed = 1"),
    ("not TOML", "[data]", "[data"),
]
# What is wrong, and the column and value that every person has.
WRONG_DATA = [
    ("a value outside the schema", "sex", "x"),
    ("missing values", "sex", ""),
    ("text instead of numbers", "age", "old"),
    ("one id for all", "id", 1),
]


def test_errors(say: Say, golden: Callable[..., None]) -> None:
    texts: list[str] = []

    def add(title: str, *words: object) -> None:
        text = say(*words)
        assert "[exit code" in text, text
        texts.append(f"# {title}\n{text}")

    plan = Path("plan.toml")
    write_people(Path("people.csv"))
    for title, old, new in WRONG_PLANS:
        assert old in PLAN
        plan.write_text(PLAN.replace(old, new, 1))
        add(title, "check", plan)
    plan.write_text(PLAN.replace("people.csv", "persons.csv"))
    add("a file that does not exist", "publish", plan)
    plan.write_text(PLAN)
    for title, column, value in WRONG_DATA:
        write_people(Path("people.csv"), lambda row, c=column, v=value: row.update({c: v}))
        add(title, "publish", plan)
    write_people(Path("people.csv"))
    add("no plan", "check", "plans.toml")
    add("release before publish", "release", plan)
    add("nothing to reassess", "reassess", plan)
    assert "error" not in say("publish", plan)
    assert "error" not in say("release", plan, "--name", "detail", "--seed", 1)
    add("a release twice", "release", plan, "--name", "detail")
    plan.write_text(PLAN.replace("epsilon = 0.5", "epsilon = 1.5"))
    add("more than the budget", "release", plan, "--name", "summary")
    plan.write_text(PLAN)
    add("an unknown release", "release", plan, "--name", "sumary")
    add("a question that cannot be read", "estimate", "bundles/detail", "--of", "count(age")
    add("a question about an unknown column", "estimate", "bundles/detail", "--of", "count() by x")
    add("no bundle", "verify", "bundles/summary")
    add("a model that does not exist", "infer", "bundles/detail", "--model", "probit")
    golden("errors", *texts)


HELP = (
    *((), "init", "data", "check", "compare", "publish", "release", "sign", "verify", "explain"),
    *("estimate", "infer", "export", "site", "demo", "audit", "convert", "reproduce", "reassess"),
)


def test_help(say: Say, golden: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    golden("help", *(say(*([one] if one else []), "--help") for one in HELP))
