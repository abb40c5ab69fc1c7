"""`nbgrader autograde` of a class in which most students are hostile: no point, no trace, and nobody else harmed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.nbgrader.from_module import fill
from autograder.nbgrader.repair import grade_id
from autograder.syllabus import EXERCISES
from tests.attacks.corpus import ATTACKS, TARGETS
from tests.attacks.corpus_replies import REPLIES
from tests.attacks.test_command_line import QUICK
from tests.attacks.traces import left_by
from tests.test_nbgrader import Course, new_course

ROOT = Path(__file__).parents[2]
MOST = {function.name: function.points / 100 for function in EXERCISES[2].functions}
NOTHING = "def answer(*a): return 0.0\n" + TARGETS
EVIL_HTML = "</pre><script>alert('evil')</script><img src=x onerror=alert('evil')><a href='javascript:evil()'>x</a>"


def cell(notebook: Any, name: str) -> Any:
    return next(cell for cell in notebook.cells if grade_id(cell).partition("-")[2] == name)


def own(notebook: Any, code: str) -> None:
    notebook.cells.append(nbformat.v4.new_code_cell(code))


# -- what only a notebook can try --------------------------------------------------------------------------------------
def kernel_hooks(notebook: Any) -> None:
    own(
        notebook,
        "ip = get_ipython()\nip.events.register('post_run_cell', lambda *a: None)\n"
        "ip.showtraceback = lambda *a, **k: None\nip.run_cell = lambda *a, **k: 10.0\n"
        "ip.ast_transformers.append(None)\nip.display_pub.publish = print",
    )
    own(
        notebook,
        "import builtins, sys\nclass Shell:\n    def __getattr__(self, name): return lambda *a, **k: 10.0\n"
        "builtins.get_ipython = get_ipython = lambda: Shell()\nsys.modules['IPython'] = Shell()",
    )


def magics(notebook: Any) -> None:
    own(notebook, "%%bash\ntouch /tmp/left-by-magic\nkill -9 -1")
    own(notebook, "!touch /tmp/left-by-magic\n%run /etc/passwd\n%load_ext autoreload\n%cd ../../..\n%pip install evil")
    own(notebook, "%%javascript\nalert('evil')")
    own(notebook, f"%%html\n{EVIL_HTML}")


def scores_written_by_hand(notebook: Any) -> None:
    for name in MOST:
        each = cell(notebook, name)
        each.source = "10.0"
        each.outputs = [nbformat.v4.new_output("execute_result", data={"text/plain": "10.0"}, execution_count=1)]
        each.execution_count = 1


def points_raised(notebook: Any) -> None:
    for name in MOST:
        cell(notebook, name).metadata.nbgrader.update(points=1000, schema_version=1, checksum="0", locked=False)


def cells_of_ones_own_graded(notebook: Any) -> None:
    for number in range(3):
        own(notebook, "100.0")
        notebook.cells[-1].metadata.nbgrader = {
            "grade": True,
            "solution": False,
            "locked": True,
            "task": False,
            "schema_version": 3,
            "grade_id": f"ex02-bonus{number}",
            "points": 100,
            "cell_type": "code",
        }


def identities_exchanged(notebook: Any) -> None:
    names = list(MOST)
    for name, other in zip(names, [*names[1:], names[0]], strict=True):
        cell(notebook, name).metadata["other"] = f"ex02-{other}"
    for each in notebook.cells:
        if "other" in each.metadata:
            each.metadata.nbgrader.grade_id = each.metadata.pop("other")


def twice_in_disguise(notebook: Any) -> None:
    copies = [nbformat.from_dict(json.loads(json.dumps(cell(notebook, name)))) for name in MOST for _ in range(20)]
    for number, each in enumerate(copies):
        each.source = "print(10.0)"
        each["id"] = f"copy-{number}"
    notebook.cells += copies


def metadata_that_is_none(notebook: Any) -> None:
    for each, value in zip(notebook.cells, [[], {"nbgrader": []}, {"nbgrader": {"grade_id": {}}}] * 50, strict=False):
        each["metadata"] = value
    notebook.metadata = {
        "kernelspec": {"name": "../../evil; touch /tmp/left-by-kernel", "display_name": EVIL_HTML},
        "language_info": {"name": EVIL_HTML},
        "autograder": {"notes": [EVIL_HTML], "refused": None, "report": {"points": 10}},
        "widgets": {"application/vnd.jupyter.widget-state+json": {"state": EVIL_HTML}},
        "title": EVIL_HTML,
    }


def outputs_with_scripts(notebook: Any) -> None:
    own(notebook, f"class H:\n    def _repr_html_(self): return {EVIL_HTML!r}\n    __repr__ = _repr_html_\nH()")
    data = {"text/html": EVIL_HTML, "application/javascript": "alert('evil')", "image/svg+xml": EVIL_HTML}
    notebook.cells[-1].outputs = [nbformat.v4.new_output("display_data", data=data)]
    own(notebook, f"raise type({EVIL_HTML!r}, (Exception,), {{}})({EVIL_HTML!r} + '\\x1b[31m\\x1b]8;;http://evil')")
    own(notebook, f"print({EVIL_HTML!r})\nimport sys\nprint({EVIL_HTML!r}, file=sys.stderr)")
    notebook.cells.append(
        nbformat.v4.new_markdown_cell(f"{EVIL_HTML}\n\n[x](javascript:evil)\n\n$\\href{{javascript:x}}{{y}}$")
    )
    notebook.cells[-1]["attachments"] = {"x.png": {"text/html": EVIL_HTML, "image/svg+xml": EVIL_HTML}}


NOTEBOOKS: list[Callable[[Any], None]] = [
    kernel_hooks,
    magics,
    scores_written_by_hand,
    points_raised,
    cells_of_ones_own_graded,
    identities_exchanged,
    twice_in_disguise,
    metadata_that_is_none,
    outputs_with_scripts,
]


HOSTILE = [*(attempt.__name__ for attempt in NOTEBOOKS), "gradebook_writer", "link_to_the_source", *QUICK]


def gradebook_writer(folder: Path) -> str:
    """Code that writes full marks into the gradebook, from here and from processes that stay."""
    return (
        f"""
import os, sqlite3, subprocess, sys, threading
STATEMENT = "update grade set auto_score = 10, manual_score = 10, extra_credit = 100"
def write():
    for place in ({str(folder)!r}, ".", "..", "../..", "../../.."):
        try:
            db = sqlite3.connect(os.path.join(place, "gradebook.db")); db.execute(STATEMENT); db.commit()
        except Exception: pass
write()
threading.Thread(target=write).start()
sleeper = [sys.executable, "-c", "import time; time.sleep(600)", {str(folder)!r}]
for action in (os.fork, lambda: subprocess.Popen(sleeper)):
    try:
        if action() == 0: os.setsid(); write(); os._exit(0)
    except Exception: pass
"""
        + NOTHING
    )


class _Active(HTMLParser):
    """What a browser would run in a page: the text of scripts, handlers, addresses that are code."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self._script = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._script = tag == "script"
        if tag in ("iframe", "object", "embed", "base", "form", "svg"):
            self.found.append(tag)
        for name, value in attrs:
            if name.startswith("on") or re.match(r"\s*(javascript|data:text)", value or "", re.I):
                self.found.append(f"{name}={value}")
            if tag == "script" and name == "src":
                self.found.append(f"src={value}")

    def handle_data(self, data: str) -> None:
        if self._script:
            self.found.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._script = False


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file of the course that no command of nbgrader's has to change."""
    own_folders = ("autograded", "feedback")
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path.relative_to(folder).parts[0] not in own_folders
        and path.suffix not in (".db", ".log")
    }


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    base = tmp_path_factory.mktemp("hostile")
    temporary = base / "temporary"
    temporary.mkdir()
    course = new_course(base / "course")
    released = course.released(2)
    right = fill(released, (ROOT / "solutions" / "ex02_mlm_loss.py").read_text(encoding="utf-8"))
    for name in ("a-bystander", "zz-bystander"):
        course.hand_in(name, 2, right)
    for attempt in NOTEBOOKS:
        notebook = fill(released, NOTHING)
        attempt(notebook)
        course.hand_in(f"h-{attempt.__name__}", 2, json.dumps(notebook))
    course.hand_in("h-gradebook_writer", 2, fill(released, gradebook_writer(course.folder)))
    source = course.folder / "source" / "ex02" / "ex02_mlm_loss.ipynb"
    path = course.hand_in("h-link_to_the_source", 2, released)
    path.unlink()
    path.symlink_to(source)
    path = course.hand_in(
        "h-timestamp", 2, fill(released, NOTHING), timestamp=f"2026-03-01 {EVIL_HTML}; drop table grade"
    )
    for attack in [*ATTACKS, *REPLIES]:
        if attack.name in QUICK:
            course.hand_in(f"h-{attack.name}", 2, fill(released, attack.code))
    course.before = fingerprint(course.folder)
    for command in (["autograde", "ex02"], ["generate_feedback", "ex02"]):
        done = subprocess.run(
            [sys.executable, "-m", "nbgrader", *command],
            cwd=course.folder,
            capture_output=True,
            text=True,
            env={**os.environ, "TMPDIR": str(temporary), "OMP_NUM_THREADS": "1"},
            check=False,
        )
        course.log = done.stdout + done.stderr
        # nbgrader itself refuses the one whose time of handing in is none
        assert done.returncode == (1 if command[0] == "autograde" else 0), course.log
        if command[0] == "autograde":
            failed = re.findall(r"error processing assignment 'ex02' for student '([\w-]+)'", course.log)
            assert failed == ["h-timestamp"], course.log
    assert left_by(temporary) == []
    return course


def students(course: Course) -> list[str]:
    return sorted(path.name for path in (course.folder / "submitted").iterdir())


def automatic(course: Course, student: str) -> dict[str, float | None]:
    return {name: score for name, score in course.scores(student, 2).items() if name in MOST}


def test_bystanders_get_full_marks_and_the_same_report(course: Course) -> None:
    reports = []
    for name in ("a-bystander", "zz-bystander"):
        assert automatic(course, name) == MOST
        report = json.dumps(course.graded(name, 2).metadata["autograder"]["report"])
        reports.append(re.sub(r'"seconds": [0-9.e-]+|' + name, "", report))
    assert reports[0] == reports[1]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_notebook_earns_nothing(course: Course, name: str) -> None:
    assert automatic(course, f"h-{name}") == dict.fromkeys(MOST, 0.0)


def test_nothing_is_worth_more(course: Course) -> None:
    with course.gradebook() as gradebook:
        assert [assignment.name for assignment in gradebook.assignments] == ["ex02"]
        assert gradebook.find_assignment("ex02").max_code_score == sum(MOST.values())
        for submission in gradebook.assignment_submissions("ex02"):
            assert submission.score == (sum(MOST.values()) if "bystander" in submission.student.id else 0)


def test_the_course_is_as_it_was(course: Course) -> None:
    assert fingerprint(course.folder) == course.before
    assert not [name for name in os.listdir("/tmp") if name.startswith("left-by")]


def test_feedback_holds_nothing_that_runs(course: Course) -> None:
    expected = _Active(course.feedback("a-bystander", 2)).found
    for name in students(course):
        if (course.folder / "feedback" / name).exists():
            assert _Active(course.feedback(name, 2)).found == expected, name


def test_the_link_was_not_followed(course: Course) -> None:
    assert "it is a link to a file outside of the submission" in course.feedback("h-link_to_the_source", 2)
