"""Labels that are code: a report shows them as text, in every kind of report."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from congenial.publication import workflow
from congenial.publication.plan import Plan
from congenial.report.page_data import rows_of
from tests.confidentiality.scenes import EARLIER, SCENES, Columns, Scene, save

ATTACKS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'onmouseover='alert(1)",
    "</title><svg onload=alert(1)>",
    "javascript:alert(1)",
    "&lt;b&gt; ]]> --> ${x} {{x}} {x.__class__}",
)


class Tags(HTMLParser):
    """What a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.handlers: list[str] = []
        self.images: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "iframe", "object", "embed", "base", "link"):
            self.scripts.append(tag)
        for name, value in attrs:
            if name.startswith("on") or (value or "").strip().lower().startswith("javascript:"):
                self.handlers.append(f"{tag} {name}={value}")
            if name in ("src", "href", "xlink:href") and (value or "").startswith(("http", "//")):
                self.images.append(f"{tag} {name}={value}")


def found(text: str) -> Tags:
    tags = Tags()
    tags.feed(text)
    return tags


def toml(text: str) -> str:
    """A basic string of TOML."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def hostile(scene: Scene, folder: Path, attack: str) -> Plan:
    """The scene's plan with a label, a name and a reason that are code."""
    level, because = toml(attack), toml(f"statute {attack}")

    def rename(columns: Columns) -> None:
        for name, old in (("sex", "f"), ("county", "A")):
            if name in columns:
                columns[name] = [attack if value == old else value for value in columns[name]]

    text = scene.plan.replace('levels = ["f", "m"]', f'levels = [{level}, "m"]')
    text = text.replace('levels = ["A", "B", "C"]', f'levels = [{level}, "B", "C"]')
    text = text.replace('"statute"', because).replace('"Population"', toml(f"Population {attack}"))
    text = text.replace('"mean age"', toml(f"mean {attack}"))
    quoted = attack.replace("'", "''")
    text = text.replace("\"sex = 'f'\"", toml(f"sex = '{quoted}'"))
    if scene.kind == "estimate":  # one number: its page names no level
        text += f"[about]\ntitle = {level}\n"
    columns = SCENES[-1].columns if scene.kind == "table" else scene.columns
    path = Scene(scene.kind, text, columns, ()).write(folder, rename, rename)
    if "earlier.csv" in text:
        earlier = dict(EARLIER)
        rename(earlier)
        save(earlier, folder / "data" / "earlier.csv")
    return Plan.load(path)


CASES = [(scene, attack) for scene in SCENES for attack in ATTACKS]
FEW = [(SCENES[0], ATTACKS[0]), (SCENES[0], ATTACKS[1]), (SCENES[1], ATTACKS[1])]


@pytest.mark.parametrize(
    ("scene", "attack"),
    [
        *FEW,
        *(pytest.param(*case, marks=pytest.mark.audit) for case in CASES if case not in FEW),
    ],
)
def test_labels_are_shown_and_not_run(
    scene: Scene, attack: str, tmp_path: Path, short_bootstrap: None
) -> None:
    plan = hostile(scene, tmp_path, attack)
    if plan.statements:
        workflow.publish(plan)
    folder = workflow.release(plan, "made").folder
    report = (folder / "report.html").read_text()
    tags = found(report)
    assert tags.scripts == ([] if rows_of(report) is None else ["script", "script"])  # its own
    assert tags.handlers == tags.images == []
    assert "alert(1)" in report or "alert" not in attack  # it is shown, as text


@pytest.mark.parametrize("attack", ATTACKS[:4])
def test_the_parser_sees_code(attack: str) -> None:
    """Negative control: the same label without escaping."""
    tags = found(f"<p title='{attack}'>{attack}</p>")
    assert tags.scripts or tags.handlers
