"""JUnit XML, as GitLab reads it and as pytest writes it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Literal

from autograder.render.words import Lang, explained, one_line, say, short_names, verdict
from autograder.report import Check, ExerciseReport, FunctionReport, Report, points_number

Dialect = Literal["gitlab", "pytest"]


def junit(reports: Sequence[Report], dialect: Dialect = "pytest", lang: Lang = "en") -> str:
    """One test suite for each exercise of each report, one case for each check.

    gitlab: cases are called what the check says, and everything worth reading stands in the body of a failure, which
    is all of it that GitLab shows.
    pytest: its xunit2; cases are called by the check's id, and points stand in properties.

    A <failure> is the student's, an <error> the grader's: such a case is not graded yet.
    """
    names = _Names()
    root = ET.Element("testsuites", name="autograder")
    for name, report in zip(short_names(reports), reports, strict=True):
        for exercise in report.exercises:
            prefix = f"{name} " if len(reports) > 1 else ""
            root.append(_suite(report, exercise, dialect, lang, names, prefix))
    _count(root, [case for suite in root for case in suite.iter("testcase")])
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


class _Names:
    """Hands out names of which none comes twice in a class: GitLab would drop the second."""

    def __init__(self) -> None:
        self._taken: set[tuple[str, str]] = set()

    def unique(self, classname: str, wanted: str) -> str:
        name, copy = wanted, 1
        while (classname, name) in self._taken:
            copy += 1
            name = f"{wanted} ({copy})"
        self._taken.add((classname, name))
        return name


def _suite(
    report: Report, exercise: ExerciseReport, dialect: Dialect, lang: Lang, names: _Names, prefix: str
) -> ET.Element:
    suite = ET.Element("testsuite", name=f"{prefix}{one_line(exercise.id)}")
    if dialect == "pytest":
        _properties(
            suite,
            submission=one_line(report.submission),
            points=points_number(exercise.points),
            max_points=points_number(exercise.max_points),
            sandbox=one_line(report.sandbox),
            device=one_line(report.device),
            seed=report.seed,
            grader_version=one_line(report.grader_version),
        )
    for function in exercise.functions:
        classname = f"{prefix}{one_line(exercise.id)}.{one_line(function.name)}"
        for check in function.checks:
            wanted = one_line(check.title if dialect == "gitlab" else check.id)
            suite.append(_case(function, check, classname, names.unique(classname, wanted), dialect, lang))
    _count(suite, list(suite.iter("testcase")))
    return suite


def _case(
    function: FunctionReport, check: Check, classname: str, name: str, dialect: Dialect, lang: Lang
) -> ET.Element:
    case = ET.Element("testcase", classname=classname, name=name, time=f"{check.seconds:.3f}")
    if dialect == "pytest":
        properties = {
            "title": one_line(check.title),
            "verdict": check.verdict,
            "points": points_number(check.points),
            "max_points": points_number(check.max_points),
        }
        _properties(case, **properties, **({"misconception": check.misconception} if check.misconception else {}))
    if check.verdict == "passed":
        return case
    tag = {"grader_error": "error", "skipped": "skipped"}.get(check.verdict, "failure")
    words = verdict(check, lang) if check.verdict != "grader_error" else say("not graded", lang)
    text = explained(check, lang).text(lang)
    told = ET.SubElement(case, tag, type=check.verdict, message=f"{words}{say('colon', lang)}{one_line(check.title)}")
    told.text = "\n".join(part for part in (f"{words} · {one_line(function.name)}", text) if part)
    return case


def _properties(element: ET.Element, **values: object) -> None:
    properties = ET.SubElement(element, "properties")
    for name, value in values.items():
        ET.SubElement(properties, "property", name=name, value=one_line(str(value)))


def _count(element: ET.Element, cases: list[ET.Element]) -> None:
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(name, str(sum(case.find(tag) is not None for case in cases)))
    element.set("tests", str(len(cases)))
    element.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.3f}")
