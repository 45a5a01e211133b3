"""Large figures of a ledger: in a file beside it, of which the event holds the digest."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from congenial.cli.program import app
from congenial.errors import LedgerError
from congenial.figures.statements import total
from congenial.ledger.ledger import Ledger
from congenial.ledger.stores import figure_files
from tests.commands import run
from tests.ledger.ledgers import COUNTIES, SCHEMA, described, published, spend

TABLE = published((total(["sex", "county"]), [[1, 2, 3], [4, 5, 6]]))


def opened(folder: Path, large: int, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A ledger with figures by county, and with a release that was drawn given them."""
    monkeypatch.setattr(figure_files, "LARGE", large)
    ledger = Ledger.open(folder / "ledger.sqlite", SCHEMA)
    ledger.publish(COUNTIES)
    ledger.publish(TABLE)
    spend(ledger, described(support=ledger.figures))
    return ledger


def files_of(ledger: Ledger) -> list[Path]:
    return sorted(Path(f"{ledger.where}.figures").glob("*"))


def test_large_figures_are_in_one_file_and_small_ones_in_their_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(tmp_path, 6, monkeypatch)
    (file,) = files_of(ledger)  # once, although publish and reserve name it
    texts = [event.text for event in ledger.events()]
    assert [text.count(file.stem) for text in texts] == [0, 0, 1, 1, 0, 0]
    assert '"values":[5,7,9]' in texts[1]
    assert "[1,2,3]" not in texts[2]
    again = Ledger.open(ledger.where)
    assert again.figures == COUNTIES.join(TABLE)
    (entry,) = again.entries()
    assert entry.description.support == again.figures
    assert not again.malformed()
    np.testing.assert_array_equal(np.load(file), TABLE.values[0])  # type: ignore[index]


def test_below_the_size_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = opened(tmp_path, figure_files.LARGE, monkeypatch)
    assert not files_of(ledger)
    assert not Path(f"{ledger.where}.figures").exists()
    assert '"values":[[1,2,3],[4,5,6]]' in ledger.events()[2].text
    (tmp_path / "other").mkdir()
    other = opened(tmp_path / "other", 6, monkeypatch)
    assert [one.payload for one in other.events()[1:4]] == [
        one.payload for one in ledger.events()[1:4]
    ]
    assert other.spent() == ledger.spent()


@pytest.mark.parametrize(
    ("harm", "word"),
    [
        (lambda file: file.unlink(), "is missing"),
        (lambda file: file.write_bytes(file.read_bytes()[:-1] + b"\1"), "was changed"),
        (lambda file: file.write_bytes(b""), "was changed"),
        (lambda file: shutil.rmtree(file.parent), "is missing"),
    ],
)
def test_a_file_that_is_lost_or_changed_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: object, word: str
) -> None:
    ledger = opened(tmp_path, 6, monkeypatch)
    (file,) = files_of(ledger)
    content = file.read_bytes()
    harm(file)  # type: ignore[operator]
    for use in (ledger.entries, ledger.spent, lambda: ledger.publish(COUNTIES)):
        with pytest.raises(LedgerError, match=word) as reason:
            use()
        assert str(file) in reason.value.what
        assert "last good copy" in reason.value.remedy
    shown = CliRunner().invoke(app, ["ledger", "show", ledger.where])
    assert shown.exit_code != 0
    assert word in " ".join(shown.stderr.split())
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)  # the remedy works
    assert run("ledger", "show", ledger.where, "--json")["published"][1]["labels"]


def test_a_file_without_its_event_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that failed between file and event: the next one writes the same file."""
    monkeypatch.setattr(figure_files, "LARGE", 6)
    ledger = Ledger.open(tmp_path / "ledger.sqlite", SCHEMA)

    def fails(*_: object) -> None:
        raise LedgerError("no power.")

    with monkeypatch.context() as broken:
        broken.setattr("congenial.ledger.ledger.check_event", fails)
        with pytest.raises(LedgerError, match="no power"):
            ledger.publish(TABLE)
    (left,) = files_of(ledger)
    assert not ledger.figures.statements
    ledger.publish(TABLE)
    assert files_of(ledger) == [left]


def test_the_folder_moves_with_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = opened(tmp_path, 6, monkeypatch)
    shutil.copytree(tmp_path, tmp_path / "copy")
    assert Ledger.open(tmp_path / "copy" / "ledger.sqlite").figures == ledger.figures
    shutil.copy(ledger.where, tmp_path / "alone.sqlite")
    with pytest.raises(LedgerError, match=r"alone.sqlite.figures.*is missing"):
        Ledger.open(tmp_path / "alone.sqlite")
