"""Renderings agree with the Report that they render, and nothing that a student wrote gets out of its place."""

import json
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.render.jsonlines import as_dict, line
from autograder.render.terminal import gpu_line, report_text, table_text
from autograder.report import Check, ExerciseReport, FunctionReport, Report, points_number
from autograder.syllabus import SYLLABUS

VERDICTS = ["failed", "not_implemented", "timeout", "out_of_memory", "crashed", "skipped", "grader_error"]
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
COMMAND = re.compile(r"\s*::|.*##\w*\[")

hostile = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            "\x1b[2J\x1b]0;title\x07",
            "::error::all is well",
            "  ::stop-commands::x",
            "a\n::set-output name=points::10\n##[error]b ##vso[task.complete]",
            "[bold red]x[/bold red] [link=https://example.org]y[/link] :smile:",
            "\r\rTotal  10 / 10 points\r",
            "\u202eevil\u2066",
            "中文 " * 60,
            "x" * 500,
            "\t\t::warning::",
            "ex\udcff.py",
            "\x9b31m",
        ]
    ),
)


@st.composite
def checks(draw):
    passed = draw(st.booleans())
    most = draw(st.integers(0, 300))
    return Check(
        id=draw(st.sampled_from(["test_a", "test_b[0.5-中]"])),
        title=draw(hostile),
        verdict="passed" if passed else draw(st.sampled_from(VERDICTS)),
        points=most if passed else 0,
        max_points=most,
        message="" if passed else draw(hostile),
        hint="" if passed else draw(st.one_of(st.just(""), hostile)),
        seconds=draw(st.floats(0, 100).map(lambda seconds: round(seconds, 4))),
    )


@st.composite
def reports(draw):
    chosen = draw(st.lists(st.sampled_from(SYLLABUS), unique=True, max_size=3))
    return Report(
        submission=draw(hostile),
        exercises=tuple(
            ExerciseReport(
                exercise.id,
                exercise.title,
                tuple(
                    FunctionReport(function.name, tuple(draw(st.lists(checks(), max_size=6))))
                    for function in exercise.functions[:2]
                ),
            )
            for exercise in chosen
        ),
        sandbox="full",
        device=draw(st.sampled_from(["cpu", "cuda"])),
        seed=draw(st.integers(0, 2**32 - 1)),
        grader_version="0.1.0",
        notes=tuple(draw(st.lists(hostile, max_size=2))),
    )


def harmless(text):
    """Nothing in it moves the cursor, colours more than we do, turns the writing round, or commands a CI service."""
    plain = ESCAPE.sub("", text)
    for character in set(plain) - {"\n"}:
        assert unicodedata.category(character) not in {"Cc", "Cs", "Zl", "Zp"}, repr(character)
        assert unicodedata.bidirectional(character) not in DIRECTIONS, repr(character)
    for row in plain.split("\n"):
        assert not COMMAND.match(row), row


@given(reports())
def test_json_says_what_the_report_says(report):
    text = line(report)
    assert "\n" not in text
    assert text.isascii()
    record = json.loads(text)
    assert record == as_dict(report)
    assert record["submission"] == report.submission
    assert record["points"] == points_number(report.points)
    for exercise in record["exercises"]:
        assert exercise["points"] == pytest.approx(sum(f["points"] for f in exercise["functions"]))
        for function in exercise["functions"]:
            assert function["points"] == pytest.approx(sum(c["points"] for c in function["checks"]))
            assert function["max_points"] == pytest.approx(sum(c["max_points"] for c in function["checks"]))
    assert record["points"] == pytest.approx(sum(e["points"] for e in record["exercises"]))
    assert record["max_points"] == pytest.approx(sum(e["max_points"] for e in record["exercises"]))


def test_json_has_exactly_these_names_in_this_order():
    check = Check("test_a", "Title", "failed", 0, 250, "message", "hint", 0.5)
    exercise = ExerciseReport("ex02", "T", (FunctionReport("mlm_loss", (check,)),))
    record = json.loads(line(Report("path", (exercise,), "full", "cpu", 0, "0.1.0", ("a note",))))
    assert list(record) == [
        "submission",
        "points",
        "max_points",
        "sandbox",
        "device",
        "seed",
        "grader_version",
        "exercises",
    ]
    assert list(record["exercises"][0]) == ["id", "title", "points", "max_points", "functions"]
    assert list(record["exercises"][0]["functions"][0]) == ["name", "points", "max_points", "checks"]
    assert record["exercises"][0]["functions"][0]["checks"] == [
        {
            "id": "test_a",
            "title": "Title",
            "verdict": "failed",
            "points": 0,
            "max_points": 2.5,
            "message": "message",
            "hint": "hint",
            "seconds": 0.5,
        }
    ]


@settings(max_examples=60)
@given(reports(), st.booleans(), st.booleans(), st.sampled_from([60, 100, 120]))
def test_the_terminal_report_agrees_and_is_harmless(report, verbose, colour, width):
    text = report_text(report, verbose=verbose, colour=colour, width=width)
    harmless(text)
    assert colour or "\x1b" not in text
    plain = ESCAPE.sub("", text).split("\n")
    total = f"Total  {points_number(report.points)} / {points_number(report.max_points)} points"
    assert plain.count(total) == 1
    for exercise in report.exercises:
        number = int(exercise.id[2:])
        (heading,) = [row for row in plain if row.startswith(f"Exercise {number} · ")]
        assert heading.endswith(f"  {points_number(exercise.points)} / {points_number(exercise.max_points)}")
    assert any(row.startswith("Needs attention") for row in plain) == report.needs_attention
    assert any("GPU checks were not run" in row for row in plain) == (report.device != "cuda")


@settings(max_examples=40)
@given(st.lists(reports(), min_size=1, max_size=4), st.booleans())
def test_the_class_table_agrees_and_is_harmless(many, colour):
    text = table_text(many, colour=colour, width=120)
    harmless(text)
    rows = [
        [cell.strip() for cell in row.strip("│").split("│")]
        for row in ESCAPE.sub("", text).split("\n")
        if row.startswith("│")
    ]
    header = rows[0]
    column = header.index("total")
    totals = [row[column] for row in rows[1:] if len(row) == len(header) and "/" in row[column]]
    if all("│" not in report.submission for report in many):
        assert totals == [f"{points_number(r.points)} / {points_number(r.max_points)}" for r in many]


def report(*given_checks, device="cpu", name="mine"):
    functions = (FunctionReport("mlm_loss", given_checks),)
    return Report(name, (ExerciseReport("ex02", "The loss", functions),), "full", device, 0, "0.1.0")


def check(verdict="failed", message="", hint="", title="Title"):
    return Check("test", title, verdict, 100 if verdict == "passed" else 0, 100, message, hint, 0.0)


def test_a_failed_check_shows_title_verdict_message_and_hint():
    text = report_text(
        report(check("failed", "mlm_loss(…)\nreturned 1", "Count again."), check("passed", title="Fine"))
    )
    assert "    ✗ Title  failed  0 / 1\n" in text
    assert "      │ mlm_loss(…)\n      │ returned 1\n      │ → Count again.\n" in text
    assert "1 of 2 checks passed" in text
    assert "Fine" not in text
    assert "    ✓ Fine\n" in report_text(report(check("passed", title="Fine")), verbose=True)


def test_what_fails_for_one_reason_is_explained_once():
    text = report_text(report(*[check("crashed", "The file could not be loaded.")] * 7))
    assert "  crashed, all 7 checks\n    │ The file could not be loaded.\n" in text
    assert text.count("could not be loaded") == 1
    some = [check("passed"), *[check("timeout", "no answer")] * 7]
    assert "and 4 more, for the same reason" in report_text(report(*some))
    assert report_text(report(*some), verbose=True).count("✗ Title") == 7


def test_long_messages_are_cut_unless_asked_for():
    text = report_text(report(check("failed", "\n".join(map(str, range(40)))), check("passed")))
    assert "… (26 more lines: -v shows them)" in text
    assert "│ 39" not in text
    assert "│ 39" in report_text(report(check("failed", "\n".join(map(str, range(40)))), check()), verbose=True)


def test_bars_are_full_only_for_full_points():
    nearly = [check("passed")] * 99 + [check("failed")]
    assert "█" * 20 not in report_text(report(*nearly))
    assert "█" * 20 in report_text(report(check("passed")))
    assert "█" in report_text(report(check("passed"), *[check()] * 99))
    assert "█" not in report_text(report(check()))


@pytest.mark.parametrize(
    ("given_checks", "note"),
    [
        ([check("passed")], ""),
        ([check("failed", "a\nThe mean: of what?", "hint"), check("passed")], "The mean (1 of 2 checks)"),
        ([check("failed", title="It works")], "It works (1 of 1 checks)"),
        ([check("timeout"), check("failed")], "timeout (1 of 2 checks)"),
        ([check("timeout"), check("crashed")], "crashed (1 of 2 checks), timeout (1 of 2 checks)"),
    ],
)
def test_the_table_notes_the_most_telling_thing(given_checks, note):
    text = table_text([report(*given_checks)], width=120)
    assert text.split("\n")[3].rstrip("│").rsplit("│", 1)[1].strip() == note


def test_the_table_leaves_out_the_common_folder():
    text = table_text([report(check(), name="class/2026/a/"), report(check(), name="class/2026/b/ex02.py")])
    assert text.startswith("Submissions in class/2026/\n")
    assert "│ a/ " in text
    assert "│ b/ex02.py " in text


def test_the_gpu_line_is_for_runs_without_one():
    assert gpu_line(report(device="cuda")) == ""
    assert "GPU checks were not run" in gpu_line(report(device="cpu"))
