"""Nothing that a student can receive holds a line of a hidden check, an oracle or a solution."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autograder import cikits
from autograder.authors import banks
from autograder.authors.canaries import canaries
from autograder.authors.canaries import leaked as lines_leaked
from autograder.grading import Options, Submission, Work, grade_all
from autograder.render import jsonlines, terminal
from autograder.render.formats import FORMATS
from autograder.render.words import LANGUAGES
from autograder.report import Report
from autograder.sandbox.loading import Part
from autograder.syllabus import EXERCISES

ROOT = Path(__file__).parents[2]
HIDDEN = ROOT / "autograder" / "hidden"
CANARIES = canaries(ROOT)
#: What lies in a worker's view, for whoever runs there to read: the kit, what the worker is made of, and a library that
#: has a line in common with a check.
PUBLIC = "".join(
    path.read_text(encoding="utf-8")
    for path in (
        *(ROOT / "exercises" / "kit").rglob("*.py"),
        *(ROOT / "autograder" / "sandbox").rglob("*.py"),
        *(Path(np.__file__).parent / "lib").glob("*.py"),
    )
)


def leaked(text: str) -> list[str]:
    return lines_leaked(text, CANARIES)


def test_there_is_something_to_look_for() -> None:
    assert len(CANARIES) > 1_000
    sample = (HIDDEN / "test_ex02_mlm_loss.py").read_text(encoding="utf-8")
    assert len(leaked(sample)) > 50


@pytest.mark.parametrize(
    "path",
    [*(ROOT / "exercises").glob("ex*.py"), *(ROOT / "exercises" / "kit").glob("*.py")],
    ids=lambda path: path.name,
)
def test_what_is_handed_out_holds_none(path: Path) -> None:
    assert leaked(path.read_text(encoding="utf-8")) == []


def test_visible_checks_hold_no_oracle_and_no_solution() -> None:
    for path in (ROOT / "exercises" / "tests").glob("*.py"):
        assert leaked(path.read_text(encoding="utf-8")) == [], path.name


CURIOUS = {
    "raises with its frames": """
import sys, traceback
def answer(*a):
    frame, text = sys._getframe(), ""
    while frame:
        text += f"{frame.f_code.co_filename}:{frame.f_lineno} {sorted(frame.f_locals)}"
        frame = frame.f_back
    raise RuntimeError(text)
""",
    "returns all text in its memory": """
import gc, os, sys
def texts(o, depth=0):
    if isinstance(o, str): yield o
    elif isinstance(o, (list, tuple, set, frozenset)) and depth < 3:
        for x in list(o)[:1000]: yield from texts(x, depth + 1)
    elif isinstance(o, dict) and depth < 3:
        for k, v in list(o.items())[:1000]:
            yield from texts(k, depth + 1); yield from texts(v, depth + 1)
    elif hasattr(o, "co_consts"): yield from texts(o.co_consts, depth + 1)
    elif hasattr(o, "__code__"): yield from texts(o.__code__.co_consts, depth + 1)
def answer(*a):
    gc.unfreeze()
    found = {t for o in gc.get_objects() if "autograder" in getattr(o, "__module__", "") or isinstance(o, (dict, list))
             for t in texts(o) if 20 < len(t) < 5000 or "autograder" in t}
    found |= {str(dict(os.environ)), str(sys.argv), str(sys.path)}
    return "\\n".join(found)[: 20 * 2**20]
""",
}
TARGETS = """
def mean_nll(probabilities): return answer(probabilities)
def stable_log_softmax(logits): return answer(logits)
def mlm_loss(logits, labels, ignore_index=-100): return answer(logits, labels)
"""


@pytest.mark.parametrize("code", CURIOUS.values(), ids=CURIOUS)
def test_a_worker_has_none_in_memory(code: str) -> None:
    import torch

    from autograder.wire.classroom import RemoteClassroom
    from autograder.wire.errors import RemoteError

    work = Work(EXERCISES[2], (Part("ex02_mlm_loss.py", code + TARGETS),))
    with RemoteClassroom("auto", torch.device("cpu")) as room, room.open(work) as student:
        student.begin_check("mean_nll")
        try:
            text = student.mean_nll([0.5])
        except RemoteError as error:
            text = str(error)
    assert len(text) > 100
    assert leaked(text) == []


#: A submission for any exercise: what is called says, now and then, what text is new in its memory since it last did.
CURIOUS_EVERYWHERE = """
import gc, os, sys
import torch
calls, known = 0, set()
def texts(o, depth=0):
    kind = type(o)
    if kind is str: yield o
    elif depth < 3 and kind in (list, tuple, set, frozenset):
        for x in list(o)[:1000]: yield from texts(x, depth + 1)
    elif depth < 3 and kind is dict:
        for k, v in list(o.items())[:1000]: yield from texts(k, depth + 1); yield from texts(v, depth + 1)
    elif kind is type(texts.__code__): yield from texts(o.co_consts, depth + 1)
    elif kind is type(texts): yield from texts(o.__code__.co_consts, depth + 1)
def texts_now():
    gc.unfreeze()
    looked_at = (dict, list, type(texts))
    found = {t for o in gc.get_objects() if type(o) in looked_at for t in texts(o) if 20 < len(t) < 5000}
    return found | {str(dict(os.environ)), str(sys.argv), str(sys.orig_argv), str(sys.path)}
def answer(*a, **k):
    global calls
    calls += 1
    if calls > 2 and calls % 40: return None
    new = sorted(texts_now() - known)
    known.update(new)
    for value in (*a, *k.values()):
        try: new += [repr(vars(value)), repr(value.__code__.co_consts), repr(value.__closure__[0].cell_contents)]
        except Exception: pass
    text = "\\n".join(new).encode("utf-8", "replace").decode()
    return "NEW" + text[: 20 * 2**20]
"""
#: Exercise 7 asks for tests: what they find goes to the grader as an argument.
CURIOUS_TEST = """
def test_it(impl):
    try: impl.predict(answer(impl, *vars(impl).values()), None)
    except Exception: pass
    assert False
"""


def curious(number: int) -> str:
    functions = [f"def {f.name}(*a, **k): return answer(*a, **k)" for f in EXERCISES[number].functions]
    return CURIOUS_EVERYWHERE + (CURIOUS_TEST if number == 7 else "\n".join(functions) + "\n")


def test_a_worker_has_none_while_and_after_checks_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """With models, splits, lent functions and stand-ins at hand: exercises whose checks bring such things along."""
    from autograder.wire import frames

    heard: set[str] = set()
    receive = frames.Reader.receive

    def recorded(reader: frames.Reader, *arguments: Any) -> bytes:
        message = receive(reader, *arguments)
        heard.update(message.decode("utf-8", "ignore").splitlines())
        return message

    monkeypatch.setattr(frames.Reader, "receive", recorded)
    numbers = (3, 5, 6, 7, 8, 9, 10)
    works = [Work(EXERCISES[n], (Part(f"{EXERCISES[n].module}.py", curious(n)),)) for n in numbers]
    reports: list[Report] = []
    grade_all([Submission(w.exercise.id, (w,)) for w in works], Options(), reports.append)
    assert all(report.points == 0 and not report.needs_attention for report in reports)
    text = "\n".join(heard)
    assert len(text) > 100_000
    assert text.count("NEW") >= len(numbers)
    assert [line for line in leaked(text) if line not in PUBLIC] == []


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_kits_and_pages_for_students_hold_none(lang: str) -> None:
    for name in ("github", "gitlab"):
        for path, content in cikits.kit(name, ROOT, list(EXERCISES.values()), lang).items():
            assert leaked(content.decode()) == [], path
    for page in [*(ROOT / "docs").glob("student*.md"), ROOT / "README.md"]:
        assert leaked(page.read_text(encoding="utf-8")) == [], page.name


@pytest.mark.parametrize("number", [6, 9])
def test_nothing_that_the_grader_sends_holds_any(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right definitions stood in for a submission's own as text: whoever read it had the solution."""
    from autograder.wire.zygote_process import Worker

    sent: list[str] = []
    send = Worker.send

    def recorded(worker: Worker, message: bytes) -> None:
        text = message.decode("utf-8", "ignore")
        if "load" not in text[:16]:  # that is the submission itself
            sent.append(text)
        send(worker, message)

    monkeypatch.setattr(Worker, "send", recorded)
    exercise = EXERCISES[number]
    entries = [next(e for e in banks.impostors({number}) if e.function == f.name) for f in exercise.functions]
    reports: list[Report] = []
    grade_all([banks.submission(exercise, entry.path, entry.name) for entry in entries], Options(), reports.append)
    assert all(0 < report.points < report.max_points for report in reports)
    assert len(sent) > 200
    assert leaked("\n".join(sent)) == []


def test_reports_hold_none() -> None:
    """Reports of impostors of every exercise, in every format there is: messages, hints and tracebacks."""
    entries = [entry for number in EXERCISES for entry in banks.impostors({number})[::9]]
    submissions = [banks.submission(entry.exercise, entry.path, entry.name) for entry in entries]
    nothing = Part("ex02_mlm_loss.py", "def answer(*a): return None\n" + TARGETS)
    submissions.append(Submission("nothing", (Work(EXERCISES[2], (nothing,)),)))
    reports: list[Report] = []
    grade_all(submissions, Options(), reports.append)
    for report in reports:
        documents = [html.unescape(form.render([report], lang)) for form in FORMATS.values() for lang in LANGUAGES]
        for text in (jsonlines.stored(report), terminal.report_text(report, verbose=True), *documents):
            own = next((e.path.read_text(encoding="utf-8") for e in entries if e.name == report.submission), "")
            assert [line for line in leaked(text) if line not in own] == [], report.submission
            assert "Traceback" not in text
