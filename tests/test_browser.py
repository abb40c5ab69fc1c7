"""What people do with the mouse, in a real browser: an instructor in formgrader, a student in JupyterLab.

A server of its own serves a copy of the English course, and the browser reaches nothing but that server.  A picture
of each step is left in results/screenshots/, beside the server's log.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import psutil
import pytest
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright
from test_nbgrader import EXAMPLES, ROOT, Course, cell, new_course

from autograder.nbgrader.from_module import fill
from autograder.syllabus import EXERCISES

PICTURES = ROOT / "results" / "screenshots"
PATIENCE = 120  # seconds for one step: a busy machine is no failure
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: apt-get install chromium"),
]

PROOF = r"""1. They are added entry by entry: $\mathbf{x}_i + \mathbf{s}_i + \mathbf{p}_i \in \mathbb{R}^d$.
2. The sum has $d$ numbers, the parts have $3d$: add $\boldsymbol{\delta}$ to one part and take it from another."""
COMMENT = "Name a $\\boldsymbol{\\delta}$ that is not zero."


class Jupyter:
    """A Jupyter server with nbgrader's extensions, on a free port of loopback, and none of the user's settings."""

    def __init__(self, course: Path, home: Path) -> None:
        folders = ("HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
        own = {name: str(home / name.lower()) for name in folders}
        for folder in own.values():
            Path(folder).mkdir(parents=True)
        _settings_of_lab(Path(own["JUPYTER_CONFIG_DIR"]) / "labconfig")
        self._token = secrets.token_hex(16)
        options = ["--no-browser", "--ip=127.0.0.1", "--port=0", f"--IdentityProvider.token={self._token}"]
        options += ["--allow-root"] if os.geteuid() == 0 else []
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._log = PICTURES / "server.log"
        with self._log.open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "jupyterlab", *options],
                cwd=course,
                env={**os.environ, **own, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._listens = Path(own["JUPYTER_RUNTIME_DIR"]) / f"jpserver-{self._process.pid}.json"

    def address(self) -> str:
        """Where it listens, once it does."""
        deadline = time.monotonic() + PATIENCE
        while not (self._listens.exists() and self._listens.read_text(encoding="utf-8").endswith("}")):
            why = "ended" if self._process.poll() is not None else "does not listen"
            if why == "ended" or time.monotonic() > deadline:
                raise RuntimeError(f"the server {why}:\n{self._log.read_text(encoding='utf-8')[-3000:]}")
            time.sleep(0.1)
        return f"http://127.0.0.1:{json.loads(self._listens.read_text(encoding='utf-8'))['port']}/"

    def url(self, path: str) -> str:
        return f"{self.address()}{path}?token={self._token}"

    def stop(self) -> None:
        """End it, and see that kernels and the grading process end with it."""
        family = [psutil.Process(self._process.pid)]
        family += family[0].children(recursive=True)
        self._process.terminate()
        _, alive = psutil.wait_procs(family, timeout=PATIENCE)
        for process in alive:
            process.kill()
        self._process.wait()
        assert not alive, f"the server left processes behind: {alive}"


def _settings_of_lab(folder: Path) -> None:
    """No news from the internet; and all cells of a notebook are in the page, also those out of sight."""
    folder.mkdir()
    page = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
    (folder / "page_config.json").write_text(json.dumps(page), encoding="utf-8")
    settings = {"@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"}}
    (folder / "default_setting_overrides.json").write_text(json.dumps(settings), encoding="utf-8")


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """Exercise 1 handed in by one student, and exercise 2 half done."""
    course = new_course(tmp_path_factory.mktemp("browser") / "course")
    submitted = fill(course.released(1), (EXAMPLES / "segment_table_ignored" / "ex01_input_embeddings.py").read_text())
    cell(submitted, "written").source = PROOF
    course.hand_in("s01", 1, submitted)
    with course.gradebook() as gradebook:
        gradebook.add_student("s01", first_name="Student", last_name="One")
    half = fill(course.released(2), _right(2))
    cell(half, "mlm_loss-solution").source = cell(course.released(2), "mlm_loss-solution").source
    nbformat.write(half, course.folder / "release" / "ex02" / "ex02_mlm_loss.ipynb")
    return course


def _right(number: int) -> str:
    return (EXAMPLES / "right" / f"{EXERCISES[number].module}.py").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def jupyter(course: Course, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    PICTURES.mkdir(parents=True, exist_ok=True)
    server = Jupyter(course.folder, tmp_path_factory.mktemp("home"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE * 1000)
    with sync_playwright() as playwright:
        as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=as_root, timeout=PATIENCE * 1000)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Browser, jupyter: Jupyter) -> Iterator[Page]:
    """A window in which nothing may go wrong unseen: no request to elsewhere, no error of a script."""
    home, elsewhere, errors = jupyter.address(), [], []
    context = chromium.new_context(viewport={"width": 1280, "height": 1400}, locale="en-GB")
    context.set_default_timeout(PATIENCE * 1000)

    def only_here(route: Route) -> None:
        if route.request.url.startswith((home, "data:", "blob:")):
            route.continue_()
        else:
            elsewhere.append(route.request.url)
            route.abort()

    context.route("**/*", only_here)
    page = context.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    context.close()
    assert elsewhere == []
    assert errors == []


@pytest.fixture
def picture(page: Page, tmp_path: Path) -> Callable[[str], None]:
    """Keeps what the window shows now, in the test's folder and in results/screenshots/."""

    def take(name: str) -> None:
        page.screenshot(path=tmp_path / f"{name}.png", full_page=True, animations="disabled")
        shutil.copy(tmp_path / f"{name}.png", PICTURES)

    return take


# -- an instructor ----------------------------------------------------------------------------------------------------
def test_formgrader_autogrades_shows_the_report_and_keeps_the_points_of_a_person(course, jupyter, page, picture):
    page.goto(jupyter.url("formgrader"))
    row = page.locator("#main-table tr", has=page.get_by_role("link", name="ex01"))
    expect(row.locator(".num-submissions")).to_have_text("1")
    picture("formgrader-1-assignments")

    row.locator(".num-submissions a").click()
    row = page.locator("#main-table tr", has_text="s01")
    expect(row.locator(".status")).to_have_text("needs autograding")
    row.locator(".autograde a").click()
    expect(page.locator("#success-modal")).to_contain_text("Successfully autograded 'ex01' for student 's01'")
    expect(row.locator(".status")).to_have_text("needs manual grading")
    picture("formgrader-2-autograded")
    page.locator("#success-modal .modal-footer button").click()
    expect(page.locator(".modal-backdrop")).to_have_count(0)
    scores = course.scores("s01", 1)
    done = {"embedding_sum": 3.0, "input_embeddings": 0.0, "another_decomposition": 3.0}
    assert scores == {**done, "written": None}
    expect(row.locator(".score")).to_have_text("6 / 14")
    picture("formgrader-3-submissions")

    row.get_by_role("link", name="One, Student").click()
    page.get_by_role("link", name="ex01_input_embeddings").click()
    _wait_for_form(page)
    for name, score in scores.items():
        field = page.locator(f"#ex01-{name}")
        expect(field).to_have_value("")  # no points of a person yet; those of the grader stand behind
        assert field.get_attribute("placeholder") == (None if score is None else f"{score:g}")
    report = page.locator(".autograder", has_text="0 of 4 points")
    for said in (
        "0 of 14 checks passed",
        "The segment ids are not looked up",
        "Change one segment id",
        "expected array",
    ):
        expect(report).to_contain_text(said)
    assert report.locator("pre").first.is_visible()
    answer = page.locator(".nbgrader_cell", has=page.locator("#ex01-written"))
    expect(answer.locator(".MathJax, .MathJax_CHTML").first).to_be_visible()
    assert "$" not in answer.inner_text()
    scheme = page.locator("details.marking-scheme")
    expect(scheme).to_have_count(1)
    expect(scheme.get_by_text("Restating the question counts nothing.")).to_be_hidden()
    scheme.locator("summary").click()
    expect(scheme.get_by_text("Restating the question counts nothing.")).to_be_visible()
    expect(scheme).to_contain_text("Model answer")
    picture("formgrader-4-submission")

    for field, value in {"#ex01-written": "3", "#ex01-written-comment": COMMENT}.items():
        page.locator(field).fill(value)
        with page.expect_response(lambda response: response.request.method == "PUT") as saved:
            page.locator(field).press("Escape")
        assert saved.value.ok
    picture("formgrader-5-marked")
    page.reload()
    _wait_for_form(page)
    expect(page.locator("#ex01-written")).to_have_value("3")
    expect(page.locator("#ex01-written-comment")).to_have_value(COMMENT)
    picture("formgrader-6-reloaded")

    with course.gradebook() as gradebook:
        grade = gradebook.find_grade("ex01-written", "ex01_input_embeddings", "ex01", "s01")
        assert (grade.manual_score, grade.auto_score, grade.needs_manual_grade) == (3.0, None, False)
        comment = gradebook.find_comment("ex01-written", "ex01_input_embeddings", "ex01", "s01")
        assert comment.comment == COMMENT
        assert gradebook.find_submission("ex01", "s01").score == 9.0

    page.goto(jupyter.url("formgrader/manage_submissions/ex01"))
    expect(row.locator(".status")).to_have_text("graded")
    row.locator(".generate-feedback a").click()
    expect(page.locator("#success-modal")).to_contain_text("Successfully generated feedback")
    page_for_student = course.feedback("s01", 1)
    assert "Score: 9.0 / 14.0" in page_for_student
    assert "that is not zero" in page_for_student


def _wait_for_form(page: Page) -> None:
    """Until formgrader's script is through, what the gradebook holds has come, and nothing moves away from a click.

    Once the formulas are set, formgrader scrolls to the first field, for half a second.
    """
    page.wait_for_function("window.formgrader?.loaded && formgrader.grades.loaded && formgrader.comments.loaded")
    page.wait_for_function("MathJax.loaded && !$('body, html').is(':animated')")


# -- a student --------------------------------------------------------------------------------------------------------
def test_a_student_works_on_a_released_notebook_in_jupyterlab(course, jupyter, page, picture):
    path = course.folder / "release" / "ex02" / "ex02_mlm_loss.ipynb"
    before = nbformat.read(path, as_version=4)
    page.goto(jupyter.url("lab/tree/release/ex02/ex02_mlm_loss.ipynb"))
    cells = page.locator(".jp-NotebookPanel .jp-CodeCell")
    source = [each for each in before.cells if each.cell_type == "code"]
    expect(cells).to_have_count(len(source))
    expect(page.locator("#jp-bottom-panel")).to_contain_text("| Idle")
    place = {each.metadata.get("nbgrader", {}).get("grade_id", ""): number for number, each in enumerate(source)}
    _run_all(page)
    outputs = cells.nth(place["ex02-mlm_loss-check"]).locator(".jp-OutputArea-output")
    expect(outputs).to_contain_text("NotImplementedError: this is yours to write")
    picture("lab-1-half-done")

    cells.nth(place["ex02-mlm_loss-solution"]).locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(cell(fill(before, _right(2)), "mlm_loss-solution").source)
    _run_all(page)
    expect(cells.last.locator(".jp-InputPrompt")).to_have_text(re.compile(r"^\[\d+\]:$"))
    checks = 0
    for number, each in enumerate(source):
        promised = re.findall(r'print\("(✓ [^"]+)"\)', each.source)
        shown = "\n".join(cells.nth(number).locator(".jp-OutputArea-output").all_inner_texts())
        assert [line for line in shown.splitlines() if "✓" in line] == promised
        assert "Error" not in shown
        checks += len(promised)
    assert checks > 3
    cells.nth(place["ex02-mlm_loss-check"]).scroll_into_view_if_needed()
    picture("lab-2-done")

    with page.expect_response(lambda answer: answer.request.method == "PUT" and "ex02_mlm_loss" in answer.url) as saved:
        page.keyboard.press("Control+S")
    assert saved.value.ok
    after = nbformat.read(path, as_version=4)
    assert cell(after, "mlm_loss-solution").source == cell(fill(before, _right(2)), "mlm_loss-solution").source

    page.get_by_role("button", name="Validate").click()
    expect(page.get_by_role("dialog")).to_contain_text("Success! Your notebook passes all the tests.")
    picture("lab-3-validated")
    page.get_by_role("dialog").get_by_role("button", name="Ok").click()
    page.get_by_role("menuitem", name="Nbgrader").click()
    page.locator('[data-command="nbgrader:open-formgrader"]').click()
    expect(page.frame_locator("iframe").get_by_role("link", name="ex01")).to_be_visible()
    picture("lab-4-formgrader")


def _run_all(page: Page) -> None:
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.locator('[data-command="runmenu:run-all"]').click()
