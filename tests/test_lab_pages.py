"""Pages about the lab's runs: tables come from the lab, words stay, and what a page shows is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import lab_pages

RESULTS = Path(__file__).parents[1] / "docs" / "results"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "ex08-synthetic-tiny"
    made.mkdir()
    (made / "table.md").write_text(
        "# ex08\n\n| 1 |\n\n![curve](curve.png)\n\n    lab ex08 --out OUT\n", encoding="utf-8"
    )
    (made / "curve.png").write_bytes(b"picture")
    return made


def test_a_page_has_the_table_the_figures_and_the_very_command(folder: Path, tmp_path: Path) -> None:
    page = lab_pages.publish(folder, tmp_path)
    text = page.read_text(encoding="utf-8")
    assert page.name == "lab-ex08-synthetic-tiny.md"
    assert "![curve](lab-ex08-synthetic-tiny-curve.png)" in text
    assert (tmp_path / "lab-ex08-synthetic-tiny-curve.png").read_bytes() == b"picture"
    assert "--out results/lab/ex08-synthetic-tiny" in text


def test_what_people_wrote_stays_when_the_table_is_new(folder: Path, tmp_path: Path) -> None:
    page = lab_pages.publish(folder, tmp_path)
    page.write_text(page.read_text(encoding="utf-8") + "\nWords.\n", encoding="utf-8")
    (folder / "table.md").write_text("| 2 |\n", encoding="utf-8")
    text = lab_pages.publish(folder, tmp_path).read_text(encoding="utf-8")
    assert text == "| 2 |\n\n## What this shows\n\nWords.\n"
    assert lab_pages.publish(folder, tmp_path).read_text(encoding="utf-8") == text


def test_a_folder_without_a_table_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lab_pages.main([str(tmp_path)]) == 1
    assert f"{tmp_path} has no table.md" in capsys.readouterr().err
    assert lab_pages.main([]) == 2


@pytest.mark.parametrize("page", sorted(RESULTS.glob("lab-*.md")), ids=lambda page: page.stem)
def test_a_committed_page_shows_its_figures_and_says_what_it_does_not_show(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    figures = re.findall(r"!\[\w+\]\(([^)]+)\)", text)
    assert figures
    for figure in figures:
        assert (RESULTS / figure).stat().st_size < 80_000
    assert re.search(
        rf"python -m exercises\.kit\.lab .* --out results/lab/{page.stem.removeprefix('lab-')}$", text, re.M
    )
    words = text.partition(lab_pages.BY_HAND)[2]
    assert "does not show" in words
