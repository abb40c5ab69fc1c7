"""`autograder regrade`: who goes up or down, by which check; and nothing else happens."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

import pytest
from made_results import exercise, result, store

from autograder.batch.regrade import Compared, NoGrade, OnlyIn, compare, regraded
from autograder.cli import main
from autograder.render import jsonlines
from autograder.report import Check, ExerciseReport, FunctionReport, Report


def check(name: str, points: int, most: int = 100, verdict: str = "", misconception: str | None = None) -> Check:
    outcome = verdict or ("passed" if points == most else "failed")
    return Check(name, f"Title of {name}", outcome, points, most, "", "", 0.0, misconception)


def report(name: str, *checks: Check, version: str = "0.1.0") -> Report:
    return Report(
        name, (ExerciseReport("ex02", "Loss", (FunctionReport("mlm_loss", checks),)),), "full", "cpu", 0, version
    )


def lines(capsys, old: Path, new: Path) -> list[dict]:
    capsys.readouterr()
    assert main(["regrade", str(new), "--against", str(old), "--format", "json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.fixture
def gradings(tmp_path: Path) -> tuple[Path, Path]:
    """A class of seven, graded twice."""
    old = store(
        tmp_path / "old",
        report("up", check("a", 0, misconception="sequence-means-averaged"), check("b", 100)),
        report("down", check("a", 100), check("b", 100)),
        report("level", check("a", 0, verdict="failed"), check("b", 100)),
        report("same", check("a", 100), check("b", 0)),
        report("fault", check("a", 100), check("b", 100)),
        report("gone", check("a", 100)),
        report("fixed", check("a", 0, verdict="grader_error")),
    )
    new = store(
        tmp_path / "new",
        report("up", check("a", 100), check("b", 100)),
        report("down", check("a", 100), check("b", 0, misconception="divided-by-sequences"), check("c", 0, 50)),
        report("level", check("a", 0, verdict="timeout"), check("b", 100)),
        report("same", check("a", 100), check("b", 0)),
        report("fault", check("a", 0, verdict="grader_error"), check("b", 100)),
        report("fixed", check("a", 100)),
        report("added", check("a", 100)),
    )
    return old, new


def test_who_goes_up_or_down_and_by_which_check(gradings, capsys) -> None:
    old, new = gradings
    *found, summary = lines(capsys, old, new)
    by_name = {line["submission"]: line for line in found}
    assert by_name["up"] == {
        "submission": "up",
        "status": "up",
        "before": 1,
        "after": 2,
        "change": 1,
        "max_before": 2,
        "max_after": 2,
        "checks": [
            {
                "exercise": "ex02",
                "function": "mlm_loss",
                "id": "a",
                "title": "Title of a",
                "before": "failed",
                "after": "passed",
                "points": 1,
                "misconception_before": "sequence-means-averaged",
                "misconception_after": None,
            }
        ],
    }
    down = by_name["down"]
    assert (down["status"], down["change"], down["max_before"], down["max_after"]) == ("down", -1, 2, 2.5)
    assert [(c["id"], c["before"], c["after"], c["points"]) for c in down["checks"]] == [
        ("b", "passed", "failed", -1),
        ("c", None, "failed", 0),
    ]
    assert by_name["level"]["status"] == "same points"
    assert by_name["level"]["checks"][0]["after"] == "timeout"
    assert "same" not in by_name
    assert by_name["fault"] == {"submission": "fault", "status": "needs attention", "in": "new", "why": ""}
    assert by_name["fixed"]["in"] == "old"
    assert by_name["gone"]["status"] == "only in old"
    assert by_name["added"]["status"] == "only in new"
    assert summary == {
        "compared": 4,
        "up": 1,
        "down": 1,
        "same_points_other_verdicts": 1,
        "unchanged": 1,
        "only_in_old": 1,
        "only_in_new": 1,
        "needs_attention": 2,
    }


def test_the_table(gradings, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    old, new = gradings
    before = {path: path.read_bytes() for folder in gradings for path in folder.iterdir()}
    assert main(["regrade", str(new), "--against", str(old)]) == 0
    text = capsys.readouterr().out
    rows = [line for line in text.splitlines() if line.startswith("│")]
    assert [row.split("│")[1].strip() for row in rows if row.split("│")[1].strip() in ("up", "down", "level")] == [
        "down",
        "up",
        "level",
    ]
    plain = " ".join(text.replace("│", " ").split())
    assert "+1 ex02.mlm_loss: Title of a failed (The mean of the sequences' means) → passed, +1" in plain
    assert "2 / 2 1 / 2.5 −1" in plain
    assert "not there → failed, ±0" in plain
    assert "failed → timeout, ±0" in plain
    assert (
        "4 submissions compared: 1 go up, 1 go down, 1 keep their points with other verdicts, 1 are as they were."
        in plain
    )
    assert "Only in OLD: gone" in plain
    assert "Only in NEW: added" in plain
    assert "Needs attention in NEW: fault" in plain
    assert "Needs attention in OLD: fixed" in plain
    assert {path: path.read_bytes() for folder in gradings for path in folder.iterdir()} == before


def test_a_class_that_stays_as_it_is(tmp_path: Path, capsys) -> None:
    old = store(tmp_path / "old", *(result(name, exercise(2)) for name in "abc"))
    assert main(["regrade", str(old), "--against", str(old)]) == 0
    assert capsys.readouterr().out == (
        "3 submissions compared: 0 go up, 0 go down, 0 keep their points with other verdicts, 3 are as they were.\n"
    )


def test_versions_of_the_grader_are_told(tmp_path: Path, capsys) -> None:
    old = store(tmp_path / "old", report("a", check("a", 100)))
    new = store(tmp_path / "new", report("a", check("a", 100), version="0.2.0"))
    main(["regrade", str(new), "--against", str(old)])
    assert "Grader: 0.1.0 in OLD, 0.2.0 in NEW." in capsys.readouterr().out


def test_results_are_matched_by_submission_whatever_their_files_are_called(tmp_path: Path) -> None:
    old = store(tmp_path / "old", *(report(name, check("a", 0)) for name in ("x", "y", "twice", "twice")))
    new = store(tmp_path / "new", *(report(name, check("a", 100)) for name in ("y", "twice", "x", "twice", "twice")))
    found = list(regraded(str(old), str(new)))
    compared = sorted(one.submission for one in found if isinstance(one, Compared))
    assert compared == ["twice", "twice", "x", "y"]
    assert [one for one in found if not isinstance(one, Compared)] == [OnlyIn("twice", "new")]


def test_damaged_files_are_named_and_stop_nothing(tmp_path: Path) -> None:
    reports = [report(name, check("a", 100)) for name in "abcd"]
    old, new = store(tmp_path / "old", *reports), store(tmp_path / "new", *reports)
    (new / "r001.json").write_text('{"half')
    (old / "r002.json").write_bytes(b"\xff")
    (new / "r003.json").unlink()
    os.mkfifo(new / "r003.json")
    found = list(regraded(str(old), str(new)))
    assert [(one.submission, one.side) for one in found if isinstance(one, NoGrade)] == [
        ("r001.json", "new"),
        ("r002.json", "old"),
        ("r003.json", "new"),
    ]
    assert [one.submission for one in found if isinstance(one, Compared)] == ["a"]


def test_a_folder_without_results(tmp_path: Path, capsys) -> None:
    full = store(tmp_path / "full", report("a", check("a", 100)))
    for old, new in ((tmp_path / "none", full), (full, tmp_path)):
        assert main(["regrade", str(new), "--against", str(old)]) == 2
        assert "autograder:" in capsys.readouterr().err


def test_hostile_text_is_shown_as_text(tmp_path: Path, capsys) -> None:
    name = "[red]x[/]\x1b[31m\n##[error]=1+1"
    worse = Check("a\x1b", "[bold]\x1b]0;t\x07 title", "failed", 0, 100, "", "", 0.0, "no-such\x1b")
    old = store(tmp_path / "old", report(name, check("a\x1b", 100)))
    new = store(tmp_path / "new", report(name, worse), report("\udcff", check("a", 0, verdict="grader_error")))
    assert main(["regrade", str(new), "--against", str(old)]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "##[" not in out
    assert "[red]x[/]" in "".join(out.replace("│", " ").split())
    assert lines(capsys, old, new)[0]["submission"] == name


def test_two_checks_of_one_id_are_told_apart() -> None:
    old = report("a", check("x", 100), check("x", 0))
    new = report("a", check("x", 100), check("x", 100))
    (turned,) = compare(old, new).turned
    assert (turned.before, turned.after, turned.points) == ("failed", "passed", 100)


def test_many_turned_checks_are_counted_not_listed(tmp_path: Path, capsys) -> None:
    old = store(tmp_path / "old", report("a", *(check(f"c{n}", 0) for n in range(30))))
    new = store(tmp_path / "new", report("a", *(check(f"c{n}", 100) for n in range(30))))
    assert main(["regrade", str(new), "--against", str(old)]) == 0
    text = capsys.readouterr().out
    assert "… 27 more" in text
    assert "… 10 more" in text
    assert len(lines(capsys, old, new)[0]["checks"]) == 30


def test_results_do_not_lie_in_memory(tmp_path: Path, capsys) -> None:
    """Of a class that is graded alike nothing is kept, however large it is."""
    long = "x" * 2_000
    checks = [Check(f"c{n}", long, "failed", 0, 100, long, long, 0.0) for n in range(5)]
    text = jsonlines.stored(report("NAME", *checks))
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
        for number in range(200):
            (tmp_path / folder / f"s{number:03}.json").write_text(text.replace("NAME", f"s{number:03}"))
    tracemalloc.start()
    try:
        main(["regrade", str(tmp_path / "new"), "--against", str(tmp_path / "old")])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "200 are as they were" in capsys.readouterr().out
    assert peak < 200 * len(text) / 3  # both folders have six times as much
