"""The wheel: it holds what the program needs at run time, and runs where no source tree is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

import congenial

ROOT = Path(__file__).resolve().parents[1]
NOT_CODE = {".py", ".pyc"}


def test_every_file_beside_the_code_is_declared() -> None:
    """What setuptools leaves out unless pyproject.toml names it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["congenial"]
    source = Path(congenial.__file__).parent
    declared = {path for pattern in patterns for path in source.glob(pattern)}
    files = {path for path in source.rglob("*") if path.is_file() and path.suffix not in NOT_CODE}
    assert {path for path in files if not path.suffix.startswith(".nb")} <= declared


def test_the_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert congenial.__version__ == project == cited[1]


def run(*words: str | Path, folder: Path, **more: str) -> str:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=kept | more,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.audit
def test_a_wheel_installs_and_runs_in_a_fresh_environment(tmp_path: Path) -> None:
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    offline = ("--no-deps", "--no-index")
    wheels = tmp_path / "wheels"
    run(*pip, "wheel", *offline, "--no-build-isolation", "-w", wheels, ROOT, folder=tmp_path)
    (wheel,) = wheels.glob("congenial-*.whl")
    with ZipFile(wheel) as inside:
        names = set(inside.namelist())
        text = "\n".join(inside.read(n).decode() for n in names if n.endswith("entry_points.txt"))
    assert "congenial = congenial.cli:main" in text
    source = Path(congenial.__file__).parent
    wanted = {
        f"congenial/{path.relative_to(source).as_posix()}"
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted <= names
    assert not [name for name in names if name.startswith(("tests/", "docs/"))]

    venv = tmp_path / "fresh"
    run(sys.executable, "-m", "venv", "--without-pip", venv, folder=tmp_path)
    libraries = next((venv / "lib").glob("python*/site-packages"))
    run(*pip, "install", *offline, "--target", libraries, wheel, folder=tmp_path)
    # Its dependencies are those installed here; our own source tree is not among them.
    here = sysconfig.get_paths()["purelib"]
    (libraries / "dependencies.pth").write_text(f"{here}\n")
    python = venv / "bin" / "python"
    where = run(python, "-c", "import congenial; print(congenial.__file__)", folder=tmp_path)
    assert Path(where.strip()).is_relative_to(venv)
    program = "import sys; from congenial.cli import main; sys.argv[0] = 'congenial'; main()"
    said = run(python, "-c", program, "--version", folder=tmp_path)
    assert said.strip() == f"congenial {congenial.__version__}"
    run(python, "-c", program, "demo", "--out", "demo", folder=tmp_path)
    bundle = tmp_path / "demo" / "bundles" / "sex-by-age"
    assert "checks passed" in run(python, "-c", program, "verify", bundle, folder=tmp_path)
