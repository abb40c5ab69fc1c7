"""A slice of `make judge`: the checks catch the wrong, spare the right and say why; the whole takes minutes more."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from autograder.authors import audit, banks, matrix, mutants
from autograder.authors.commands import ROOT
from autograder.authors.parallel import grade_many
from autograder.grading import Options, Submission, Work, grade
from autograder.hidden.catalogue import catalogue
from autograder.report import Report
from autograder.sandbox.loading import Part
from autograder.syllabus import EXERCISES, Exercise

FILES = {exercise.id: ROOT / "solutions" / f"{exercise.module}.py" for exercise in EXERCISES.values()}


@pytest.fixture(scope="module")
def references() -> dict[str, Report]:
    return {
        exercise.id: grade(banks.submission(exercise, FILES[exercise.id], exercise.id))
        for exercise in EXERCISES.values()
    }


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda e: e.id)
def test_the_points_of_the_checks_add_up(exercise: Exercise, references: dict[str, Report]) -> None:
    (report,) = references[exercise.id].exercises
    assert {f.name: f.max_points for f in report.functions} == {f.name: f.points for f in exercise.functions}
    assert report.points == report.max_points == 1000


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda e: e.id)
def test_a_stub_is_not_implemented_throughout(exercise: Exercise) -> None:
    report = grade(banks.submission(exercise, ROOT / "exercises" / f"{exercise.module}.py", exercise.id))
    assert report.points == 0
    assert {check.verdict for check in report.checks} == {"not_implemented"}


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda e: e.id)
def test_titles_are_sentences_and_differ(exercise: Exercise, references: dict[str, Report]) -> None:
    (report,) = references[exercise.id].exercises
    titles = [check.title for check in references[exercise.id].checks]
    assert all(title.endswith(".") and " " in title for title in titles), titles
    for function in report.functions:
        assert max(Counter(check.title for check in function.checks).values()) == 1


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda e: e.id)
def test_the_banks_are_large_and_in_order(exercise: Exercise) -> None:
    impostors, honest = banks.impostors({exercise.number}), banks.honest({exercise.number})
    assert len(impostors) >= (30 if exercise.number < 6 else 20)
    assert len(honest) >= (15 if exercise.number < 6 else 8)
    assert {i.function for i in impostors} == set(exercise.by_name)
    assert len({i.path.read_text(encoding="utf-8") for i in impostors}) == len(impostors)


@pytest.mark.slow
def test_a_slice_of_the_matrix_holds() -> None:
    found = matrix.run(every=12)
    assert len(found.impostors) >= 25
    assert found.problems == []


def test_a_wrong_header_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The matrix can fail: an honest file posing as an impostor, and an impostor posing as honest."""
    right, wrong = FILES["ex02"].read_text(encoding="utf-8"), banks.impostors({2})[0]
    for bank in ("impostors", "honest"):
        (tmp_path / bank / "ex02").mkdir(parents=True)
    header = f"# fault: none\n# function: mlm_loss\n# check: {wrong.check}\n# misconception: off-limits\n"
    (tmp_path / "impostors" / "ex02" / "right.py").write_text(header + right, encoding="utf-8")
    text = wrong.path.read_text(encoding="utf-8")
    (tmp_path / "honest" / "ex02" / "wrong.py").write_text("# honest: not at all\n" + text, encoding="utf-8")
    monkeypatch.setattr(banks, "HIDDEN", tmp_path)
    problems = matrix.run({2}, jobs=1).problems
    assert any(p.startswith("ex02/right: passes, though wrong") for p in problems)
    assert any(p.startswith("ex02/wrong:") for p in problems)
    assert any("no impostor is caught by" in p for p in problems)


def test_every_misconception_is_complete_and_used() -> None:
    named = {impostor.misconception for impostor in banks.impostors()}
    sources = "\n".join(
        path.read_text(encoding="utf-8")
        for path in [*(ROOT / "autograder" / "hidden").glob("*.py"), ROOT / "autograder" / "grading.py"]
    )
    for name, entry in catalogue().items():
        assert name in named or f'"{name}"' in sources, f"{name} is used nowhere"
        for text in (entry.title_zh, entry.explanation_zh, entry.hint_zh):
            assert any("\u4e00" <= character <= "\u9fff" for character in text), name
        assert len(entry.hint) < 300, name


def test_a_verdict_does_not_depend_on_the_seed() -> None:
    exercise = EXERCISES[5]
    entries = [("reference", FILES["ex05"]), *((e.name, e.path) for e in banks.honest({5})[:2])]
    submissions = [banks.submission(exercise, path, name) for name, path in entries]
    for seed in (1, 2):
        for report in grade_many(submissions, Options(seed=seed)):
            assert report.points == report.max_points, report.submission


def test_the_audit_counts_what_it_grades(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(banks, "honest", lambda numbers: [])
    found = audit.run({1}, ROOT, range(2), Options(), with_impostors=False, jobs=1)
    assert (found.submissions, found.seeds, found.changes, found.losses) == (1, (0, 1), {}, [])


def test_grading_twice_gives_the_same_report() -> None:
    exercise = EXERCISES[5]
    reports = [grade(banks.submission(exercise, FILES["ex05"], "x")) for _ in range(2)]
    bare = [[(c.id, c.verdict, c.points, c.message, c.hint) for c in report.checks] for report in reports]
    assert bare[0] == bare[1]


def test_mutants_are_single_changes_of_function_bodies() -> None:
    found = mutants.mutants_of(EXERCISES[2], ROOT)
    assert len(found) > 60
    assert len({m.text for m in found}) == len(found)
    lines = FILES["ex02"].read_text(encoding="utf-8").splitlines()
    for mutant in found:
        assert lines[mutant.line - 1].strip() == mutant.before
        assert "raise" not in mutant.before
        compile(mutant.text, mutant.name, "exec")
    assert {m.operator for m in found} >= {"comparison", "operator", "constant", "call dropped", "condition never true"}


def test_a_slice_of_the_mutants_is_killed() -> None:
    chosen = [m for n in (2, 4) for m in mutants.mutants_of(EXERCISES[n], ROOT)[::25]]
    submissions = [Submission(m.name, (Work(m.exercise, (Part("mutant.py", m.text),)),)) for m in chosen]
    recorded = mutants.equivalents()
    for mutant, report in zip(chosen, grade_many(submissions, Options(stop_early=True)), strict=True):
        killed = any(check.verdict != "passed" for check in report.checks)
        assert killed or (mutant.exercise.id, mutant.before, mutant.after) in recorded, mutant
