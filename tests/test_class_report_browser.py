"""The class report as an instructor sees it: a class of 200 in a real browser, which reaches nothing but the files.

Pictures are left in results/screenshots/.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
import synthetic_class as synthetic
from playwright.sync_api import Browser, Page, sync_playwright

from autograder.classreport.build import build
from autograder.report import Report

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "results" / "screenshots"
PAGES = ("index", "submissions", "misconceptions", "checks", "similar")
WAYS = ("light", "dark", "phone")
PHONE = {"width": 390, "height": 844}
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: apt-get install chromium")

#: Rules of WCAG 2.2 and ARIA that a machine can check, each with what breaks it.
FAULTS = (Path(__file__).parent / "accessibility.js").read_text(encoding="utf-8")


@dataclass
class Visit:
    """A page that is open, and all that it said or asked for."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def open(self, file: Path) -> None:
        self.page.goto(file.as_uri())


def failed_at(report: Report) -> Report:
    """The same report, but that the grader failed at its first check."""
    exercise, *exercises = report.exercises
    function, *functions = exercise.functions
    check, *checks = function.checks
    check = msgspec.structs.replace(check, verdict="grader_error", points=0, message="no zygote")
    function = msgspec.structs.replace(function, checks=(check, *checks))
    exercise = msgspec.structs.replace(exercise, functions=(function, *functions))
    return msgspec.structs.replace(report, exercises=(exercise, *exercises))


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The class of 200 in both languages, some of it copied, some with names nobody should have."""
    folder = tmp_path_factory.mktemp("class")
    names = [f"s{n:03d}" for n in range(1, 198)] + ["张伟" * 12, "<script>alert(1)</script>", "w" * 120]
    handed_in = [f"s{n:03d}" for n in range(1, 201)]
    synthetic.hand_in(folder / "class", handed_in, copies=[(3, 50), (3, 51), (10, 60), (20, 21), (20, 22)])
    for old, new in zip(handed_in[197:199], ("张伟" * 12, "w" * 120), strict=True):
        (folder / "class" / old).rename(folder / "class" / new)
    results = synthetic.reports([f"class/{name}" for name in names])
    results[17] = failed_at(results[17])
    stored = synthetic.store(folder / "results", results)
    for lang in ("en", "zh"):
        build(str(stored), str(folder / lang), lang, str(folder / "class"), None)
    return {lang: folder / lang for lang in ("en", "zh")}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=as_root, timeout=120_000)
        yield browser
        browser.close()


def visit(chromium: Browser, way: str, **more: Any) -> Visit:
    scheme: Literal["light", "dark"] = "dark" if way == "dark" else "light"
    size = PHONE if way == "phone" else {"width": 1280, "height": 900}
    context = chromium.new_context(viewport=size, color_scheme=scheme, **more)
    context.set_default_timeout(60_000)
    found = Visit(context.new_page())
    found.page.on("console", lambda message: found.said.append(message.text))
    found.page.on("pageerror", lambda error: found.said.append(str(error)))
    found.page.on("request", lambda request: found.asked.append(request.url))
    return found


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("way", WAYS)
def test_every_page_is_sound_in_every_way_of_seeing_it(
    chromium: Browser, sites: dict[str, Path], way: str, lang: str
) -> None:
    """Nothing on the console, nothing asked for but files, nothing wider than the screen, no fault of accessibility."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    seen = visit(chromium, way)
    student = sorted((sites[lang] / "submissions").iterdir())[0]
    for file in [*(sites[lang] / f"{name}.html" for name in PAGES), student]:
        seen.open(file)
        seen.page.evaluate("document.querySelectorAll('details').forEach((one, n) => { one.open = n < 12 })")
        wide = seen.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1], (file.name, wide)
        assert seen.page.evaluate(FAULTS) == [], (file.name, way)
        seen.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = false })")
        picture = PICTURES / f"class_report_{file.stem if file != student else 'student'}_{way}_{lang}.png"
        seen.page.screenshot(path=picture, full_page=file.stem in ("index", "similar"))
        assert picture.stat().st_size > 10_000
    assert seen.said == []
    assert {url.split(":")[0] for url in seen.asked} == {"file"}
    seen.page.context.close()


def test_the_faults_are_found(chromium: Browser, tmp_path: Path) -> None:
    """A page with each of the faults: the check that finds none above finds them here."""
    page = tmp_path / "bad.html"
    page.write_text(
        "<title></title><body style='background:#fff'><h1>a</h1><h3 style='color:#bbb'>skipped</h3>"
        "<a href='#nowhere' id='x'></a><input id='x'><table><tr><td>1</td></tr></table>"
        "<svg role='img'></svg><p aria-labelledby='gone'>text</p></body>"
    )
    seen = visit(chromium, "light")
    seen.open(page)
    faults = " ".join(seen.page.evaluate(FAULTS))
    for part in (
        "lang",
        "title",
        "main",
        "nav",
        "heading h3",
        "contrast",
        "link",
        "label",
        "caption",
        "scope",
        "image",
        "twice",
        "gone",
        "nowhere",
    ):
        assert part in faults, part
    seen.page.context.close()


def test_the_table_is_sorted_and_filtered_with_the_keyboard(chromium: Browser, sites: dict[str, Path]) -> None:
    seen = visit(chromium, "light")
    page = seen.page
    seen.open(sites["en"] / "submissions.html")

    def focused() -> str:
        return str(page.evaluate("document.activeElement.textContent.trim() || document.activeElement.id"))

    page.keyboard.press("Tab")
    assert focused() == "Skip to the content"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert int(outline.removesuffix("px")) >= 2
    stops = []
    while not stops or stops[-1] != "Remark":
        page.keyboard.press("Tab")
        stops.append(focused())
        assert len(stops) < 30, stops
    assert stops[:6] == ["Overview", "Submissions", "Misconceptions", "Checks", "Near-identical work", "filter"]
    assert stops[-9:] == ["Submission", "Total", *(f"ex{n:02d} / 10" for n in synthetic.NUMBERS), "Handed in", "Remark"]

    def column(number: int) -> list[str]:
        return page.eval_on_selector_all(
            f"tbody tr:not([hidden]) > :nth-child({number})",
            "cells => cells.map(c => c.dataset.value ?? c.textContent)",
        )

    page.get_by_role("button", name="Total").focus()
    page.keyboard.press("Enter")
    points = [float(value) for value in column(2)]
    assert points == sorted(points)
    assert page.get_attribute("th:nth-child(2)", "aria-sort") == "ascending"
    page.keyboard.press("Space")
    assert [float(value) for value in column(2)] == sorted(points, reverse=True)
    assert page.get_attribute("th:nth-child(2)", "aria-sort") == "descending"
    assert len(set(column(1))) == 200

    page.focus("#filter")
    page.keyboard.type("S01")
    assert [name.strip() for name in column(1) if "s01" not in name.lower()] == []
    assert page.inner_text("#shown") == "10 of 200 shown"
    assert page.get_attribute("#shown", "role") == "status"
    assert seen.said == []
    seen.page.context.close()


def test_all_is_there_without_a_script(chromium: Browser, sites: dict[str, Path]) -> None:
    seen = visit(chromium, "light", java_script_enabled=False)
    seen.open(sites["en"] / "submissions.html")
    assert seen.page.locator("tbody tr").count() == 200
    assert seen.page.locator("tbody tr").last.is_visible()
    assert not seen.page.locator("#filter").is_visible()
    assert seen.page.get_by_text("Handed in").is_visible()
    seen.page.context.close()


def test_a_script_that_is_not_ours_does_not_run(chromium: Browser, sites: dict[str, Path], tmp_path: Path) -> None:
    """If some text got out all the same, the policy would hold it."""
    text = (sites["en"] / "submissions.html").read_text(encoding="utf-8")
    taken = "document.title = 'taken'"
    bad = f'<script>{taken}</script><img src=x onerror="{taken}"><style>* {{ color: red }}</style>'
    (tmp_path / "bad.html").write_text(text.replace("<h1>", f"{bad}<h1>", 1), encoding="utf-8")
    seen = visit(chromium, "light")
    seen.open(tmp_path / "bad.html")
    assert seen.page.title() == "Submissions · Class report"
    assert seen.page.evaluate("getComputedStyle(document.querySelector('h1')).color") != "rgb(255, 0, 0)"
    assert len([line for line in seen.said if "Content Security Policy" in line]) >= 3
    assert seen.page.get_by_role("button", name="Total").is_visible()  # ours runs
    seen.page.context.close()


def test_the_way_to_a_student_and_back(chromium: Browser, sites: dict[str, Path]) -> None:
    seen = visit(chromium, "phone")
    seen.open(sites["en"] / "index.html")
    seen.page.get_by_role("link", name="Submissions", exact=True).click()
    seen.page.get_by_role("link", name="<script>alert(1)</script>").click()
    assert seen.page.get_by_role("heading", level=2).inner_text() == "<script>alert(1)</script>"
    seen.page.get_by_role("link", name="Back to the class").click()
    assert seen.page.title() == "Overview · Class report"
    assert seen.said == []
    seen.page.context.close()
