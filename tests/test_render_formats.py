"""Every format, of any report: standard parsers read it back, its totals are the report's, and no text escapes."""

import base64
import csv
import io
import json
import re
import unicodedata
import xml.etree.ElementTree as ET
from decimal import Decimal
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from autograder.hidden.catalogue import catalogue
from autograder.render import github, gradescope, jsonlines, tables, words
from autograder.render.formats import FORMATS
from autograder.render.html import html
from autograder.render.junit import junit
from autograder.render.markdown import markdown
from autograder.report import Check, ExerciseReport, FunctionReport, Report, plain_text, points_number
from autograder.syllabus import SYLLABUS

HOSTILE = [
    "\x00\x01\x1b[2J\x7f\x9b31m",
    "]]><failure/><![CDATA[",
    "::error::all is well\n::set-output name=points::10\r::stop-commands::x",
    "%0A::error::x",
    "<script>alert(1)</script><img src=x onerror=y>",
    "</pre></details></article><h1>",
    "{{ 7 * 7 }}{% raw %}",
    "a\"b'c,d;e\tf",
    "one\ntwo\r\nthree\rfour\u2028five",
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2",
    "@SUM(A1)",
    "\t=1",
    "\u202eevil\u2066 \u200b\ufeff",
    "\ud800 lone \udcff",
    "```\n# heading\n````",
    "| a | b |\n[x](javascript:y) ![z](http://e) <b>",
    "  ## x\n> y",
    "\uffff\ufffe\U0010ffff",
    "&amp;&#60;",
    "中文，注意力" * 30,
    "x" * 5_000,
    "",
]
symbols = st.text(st.sampled_from("<&`\"'|:%\n]=,"), max_size=12)
hostile = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=20), symbols)
VERDICTS = ["failed", "not_implemented", "timeout", "out_of_memory", "crashed", "skipped"]
GRADED = st.sampled_from([*["passed"] * 4, *VERDICTS])
ANY = st.sampled_from([*["passed"] * 4, *VERDICTS, "grader_error"])


@st.composite
def checks(draw, verdicts):
    verdict = draw(verdicts)
    most = draw(st.integers(0, 300))
    named = None if verdict == "passed" else draw(st.sampled_from([None, None, *sorted(catalogue()), "gone"]))
    message = "" if verdict == "passed" else draw(hostile)
    if named in catalogue() and draw(st.booleans()):
        entry = catalogue()[named]
        message = f"{message}\n{entry.title}: {entry.explanation}"
    return Check(
        id=draw(st.one_of(st.sampled_from(["test_a", "test_b[0.5-中]"]), hostile)),
        title=draw(hostile),
        verdict=verdict,
        points=most if verdict == "passed" else 0,
        max_points=most,
        message=message,
        hint="" if verdict == "passed" else draw(hostile),
        seconds=draw(st.floats(0, 100)),
        misconception=named,
    )


@st.composite
def reports(draw, verdicts=ANY):
    exercises = []
    for exercise in draw(st.lists(st.sampled_from(SYLLABUS), unique=True, max_size=2)):
        functions = [
            FunctionReport(function.name, tuple(draw(st.lists(checks(verdicts), max_size=4))))
            for function in exercise.functions[:2]
        ]
        title = draw(st.one_of(st.just(exercise.title), hostile))
        exercises.append(ExerciseReport(exercise.id, title, tuple(functions)))
    return Report(
        submission=draw(hostile),
        exercises=tuple(exercises),
        sandbox=draw(st.sampled_from(["full", *HOSTILE[:6]])),
        device=draw(st.sampled_from(["cpu", "cuda"])),
        seed=draw(st.integers(0, 2**32 - 1)),
        grader_version="0.1.0",
        notes=tuple(draw(st.lists(hostile, max_size=2))),
    )


several = st.lists(reports(), min_size=1, max_size=3)
langs = st.sampled_from(words.LANGUAGES)
few = settings(max_examples=40, deadline=None)


def clean(text):
    """No character that moves a cursor, turns the writing round, or that UTF-8 cannot carry."""
    text.encode()
    for character in set(text) - {"\n", "\r", "\t"}:
        assert unicodedata.category(character) not in {"Cc", "Cs", "Zl", "Zp"}, repr(character)
        assert unicodedata.bidirectional(character) not in {"LRE", "RLE", "LRO", "RLO", "LRI", "RLI", "FSI"}


# -- JSON there and back -----------------------------------------------------------------------------------------------


@few
@given(reports())
def test_what_is_stored_reads_back_as_the_same_report(report):
    assert jsonlines.read(jsonlines.stored(report)) == report
    bare = jsonlines.read(jsonlines.line(report))
    assert (bare.points, bare.max_points, len(bare.checks)) == (report.points, report.max_points, len(report.checks))
    assert bare.notes == ()
    record = json.loads(jsonlines.stored(report))
    del record["notes"]
    for exercise in record["exercises"]:
        for function in exercise["functions"]:
            for check in function["checks"]:
                del check["misconception"]
    assert record == json.loads(jsonlines.line(report))


def stored():
    check = Check("a", "T", "failed", 0, 255, "m", "h", 0.125)
    return jsonlines.stored(
        Report("s", (ExerciseReport("ex02", "T", (FunctionReport("f", (check,)),)),), "full", "cpu", 0, "0.1.0")
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda text: "", "Expecting value"),
        (lambda text: "[]", "got `array`"),
        (lambda text: "[" * 100_000, "recursion"),
        (lambda text: text[:-5], "Expecting"),
        (lambda text: text.replace("2.55", "2.56", 1), "the points of the submission are not the sum"),
        (lambda text: text.replace("2.55", "2.555"), "2.555 points are not hundredths of a point"),
        (lambda text: text.replace("2.55", "NaN"), "NaN is no number"),
        (lambda text: text.replace("2.55", "1e99999999"), "too many points"),
        (lambda text: text.replace("2.55", "1e99999999999999999999"), "InvalidOperation"),
        (lambda text: text.replace("0.125", "1e999"), "too large"),
        (lambda text: text.replace('"failed"', '"fine"'), "Invalid enum value 'fine'"),
        (lambda text: text.replace('"notes"', '"remarks"'), "unknown field `remarks`"),
        (lambda text: text.replace('"seed": 0, ', ""), "missing required field `seed`"),
    ],
)
def test_what_is_no_stored_report_is_refused_with_the_reason(change, why):
    with pytest.raises(ValueError, match=r"^not a result of `autograder grade` \(") as refusal:
        jsonlines.read(change(stored()))
    assert why in str(refusal.value)


# -- JUnit -------------------------------------------------------------------------------------------------------------


@few
@given(several, st.sampled_from(["gitlab", "pytest"]), langs)
def test_junit_parses_and_adds_up(many, dialect, lang):
    text = junit(many, dialect, lang)
    clean(text)
    root = ET.fromstring(text)
    cases = list(root.iter("testcase"))
    given_checks = [check for report in many for check in report.checks]
    assert len(cases) == len(given_checks)
    assert len({(case.get("classname"), case.get("name")) for case in cases}) == len(cases)
    by_tag = {"failure": "failures", "error": "errors", "skipped": "skipped"}
    for case, check in zip(cases, given_checks, strict=True):
        told = [child.tag for child in case if child.tag != "properties"]
        expected = {"passed": [], "skipped": ["skipped"], "grader_error": ["error"]}.get(check.verdict, ["failure"])
        assert told == expected
        assert all(case.find(tag).text.strip() for tag in told)
        assert case.find("properties") is None or dialect == "pytest"
        if dialect == "pytest":
            values = {p.get("name"): p.get("value") for p in case.iter("property")}
            assert Decimal(values["points"]) * 100 == check.points
            assert Decimal(values["max_points"]) * 100 == check.max_points
    for element in [root, *root.iter("testsuite")]:
        for tag, attribute in by_tag.items():
            assert int(element.get(attribute)) == len(list(element.iter(tag)))
        assert int(element.get("tests")) == len(list(element.iter("testcase")))


# -- Gradescope --------------------------------------------------------------------------------------------------------


@few
@given(reports(), langs)
def test_gradescope_parses_and_adds_up(report, lang):
    text = gradescope.results(report, lang)
    record = json.loads(text)
    for inner in strings(record):
        clean(inner)
    assert record["score"] == points_number(report.points)
    assert sum(round(test.get("score", 0) * 100) for test in record["tests"]) == report.points
    assert len(record["tests"]) == len(report.checks)
    assert record["visibility"] == ("hidden" if report.needs_attention else "visible")
    assert (words.say("needs attention", lang) in record["output"]) == report.needs_attention
    for test, check in zip(record["tests"], report.checks, strict=True):
        assert test["status"] == ("passed" if check.verdict == "passed" else "failed")
        assert ("score" in test) == ("max_score" in test) == (check.verdict != "grader_error")


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


# -- GitHub ------------------------------------------------------------------------------------------------------------


def undo(text):
    """What the runner makes of the data of a workflow command."""
    return re.sub("%(0A|0D|3A|2C|25)", lambda m: bytes.fromhex(m.group(1)).decode(), text)


@few
@given(several, langs)
def test_annotations_are_commands_of_ours_and_nothing_else(many, lang):
    text = github.annotate(many, lang)
    clean(text)
    lines = text.splitlines()
    assert len(lines) <= github.ANNOTATIONS
    assert any(c.verdict not in ("passed", "skipped") for r in many for c in r.checks) == bool(lines)
    for line in lines:
        match = re.fullmatch(r"::(error|notice) ((?:[a-z]+=[^,:]*,?)+)::(.*)", line)
        assert match, line
        assert not re.search("%(?!0A|0D|3A|2C|25)", line)
        properties = dict(part.split("=", 1) for part in match.group(2).split(","))
        assert set(properties) <= {"file", "title"}
        assert "\n" not in undo(properties["title"])


@few
@given(reports(), langs)
def test_classroom_results_parse_and_add_up(report, lang):
    lines = github.classroom(report, lang).splitlines()
    records = {}
    for line in lines:
        name, _, data = line.partition("=")
        assert re.fullmatch(r"ex\d\d", name)
        records[name] = json.loads(base64.b64decode(data, validate=True))
    assert list(records) == [exercise.id for exercise in report.exercises]
    for record, exercise in zip(records.values(), report.exercises, strict=True):
        assert record["tests"]
        assert all(type(test["score"]) in (int, float) for test in record["tests"])
        assert all(test["status"] in ("pass", "fail", "error") for test in record["tests"])
        score = sum(round(test["score"] * 100) for test in record["tests"])
        if report.needs_attention:
            assert (score, record["max_score"], record["status"]) == (0, 0, "error")
        else:
            assert (score, record["max_score"]) == (exercise.points, points_number(exercise.max_points))
            assert (record["status"] == "pass") == (exercise.points == exercise.max_points)


@few
@given(several, langs, st.integers(300, 4000))
def test_a_summary_is_never_longer_than_allowed_and_is_cut_between_blocks(many, lang, limit):
    whole = markdown(many, lang)
    assert github.summary(many, lang) == whole
    text = github.summary(many, lang, limit)
    assert len(text.encode()) <= limit
    if len(whole.encode()) <= limit:
        assert text == whole
    else:
        kept, _, note = text.rpartition("\n> **")
        assert whole.startswith(kept)
        assert re.search(r"\d", note)
        assert_closed(kept)


def assert_closed(text):
    """No block of code was cut open: its fence would swallow what follows."""
    tokens = MarkdownIt("commonmark").parse(text + "\n\nTHE END\n")
    assert tokens[-2].content == "THE END"


def test_text_between_stop_commands_cannot_end_them():
    text = "::error::x\n::0123::\n\x1b[2J"
    first, *inner, last = github.between_stop_commands(text).splitlines()
    token = first.removeprefix("::stop-commands::")
    assert last == f"::{token}::"
    assert len(token) == 32
    assert inner == plain_text(text).splitlines()
    assert github.between_stop_commands(text).splitlines()[0] != first


# -- Markdown ----------------------------------------------------------------------------------------------------------


@few
@given(several, langs)
def test_markdown_has_no_html_no_links_and_the_right_totals(many, lang):
    text = markdown(many, lang)
    clean(text)
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    kinds = {token.type for token in tokens} | {child.type for token in tokens for child in token.children or ()}
    assert not kinds & {"html_block", "html_inline", "link_open", "image", "code_inline", "code_block"}
    headings = [(t.tag, tokens[i + 1].content) for i, t in enumerate(tokens) if t.type == "heading_open"]
    assert sum(tag == "h1" for tag, _ in headings) == 1
    assert sum(tag == "h2" for tag, _ in headings) == len(many)
    thirds = [content for tag, content in headings if tag == "h3"]
    exercises = [exercise for report in many for exercise in report.exercises]
    assert [content.rpartition(" · ")[2] for content in thirds] == [words.out_of(e, lang) for e in exercises]
    totals = [words.total(report, lang) for report in many]
    start = f"**{words.say('total', lang)}{words.say('colon', lang)}"
    assert [t.content[len(start) : -2] for t in tokens if t.content.startswith(start)] == totals


# -- HTML --------------------------------------------------------------------------------------------------------------


class Document(HTMLParser):
    """What is in a document: tags, their attributes, and whether they are closed as they were opened."""

    VOID = frozenset({"meta", "br"})

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.open = []
        self.texts = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def having(self, name):
        return [attributes for _, attributes in self.tags if name in attributes]


TAGS = {"html", "head", "meta", "title", "style", "body", "header", "main", "section", "article", "footer"}
TAGS |= {"h1", "h2", "h3", "div", "p", "ul", "li", "pre", "br", "details", "summary", "span", "strong", "code", "a"}
TAGS |= {"table", "caption", "thead", "tbody", "tr", "th", "td"}


@few
@given(several, langs)
def test_html_is_whole_inert_and_adds_up(many, lang):
    text = html(many, lang)
    clean(text)
    document = Document(text)
    assert document.open == []
    assert {tag for tag, _ in document.tags} <= TAGS
    for _, attributes in document.tags:
        assert not any(name.startswith("on") for name in attributes)
        assert not {"src", "action", "srcset", "data", "formaction"} & set(attributes)
        assert attributes.get("href", "#").startswith("#")
        assert re.fullmatch(r"width:\d{1,3}%", attributes.get("style", "width:0%"))
    assert sum(tag == "style" for tag, _ in document.tags) == 1
    names = [attributes["id"] for attributes in document.having("id")]
    assert len(set(names)) == len(names)
    for reference in ("aria-labelledby", "href"):
        assert {attributes[reference].removeprefix("#") for attributes in document.having(reference)} <= set(names)
    articles = document.having("data-points")
    assert [Decimal(a["data-points"]) * 100 for a in articles] == [r.points for r in many]
    assert [Decimal(a["data-max-points"]) * 100 for a in articles] == [r.max_points for r in many]
    assert [a["data-status"] == "needs_attention" for a in articles] == [r.needs_attention for r in many]
    shown = [data.strip() for tag, data in document.texts if tag == "h3"]
    exercises = [exercise for report in many for exercise in report.exercises]
    assert [text.rpartition(" · ")[2] for text in shown] == [words.out_of(e, lang) for e in exercises]


# -- tables ------------------------------------------------------------------------------------------------------------


def rows_of(text):
    assert not re.search("(?<!\r)\n", re.sub('"[^"]*"', "", text)), "a row ends with CR LF"
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    for row in rows:
        assert len(row) == len(rows[0])
        for cell in row:
            clean(cell)
            assert not cell.startswith(("=", "+", "-", "@", "\t")) or cell == "-", cell
    return rows[0], [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def at_fault(exercise):
    return any(check.verdict == "grader_error" for function in exercise.functions for check in function.checks)


@few
@given(several, langs)
def test_the_gradebook_parses_and_adds_up(many, lang):
    header, rows = rows_of(tables.gradebook(many, lang))
    assert tuple(header[:11]) == tables.NBGRADER
    expected = [exercise for report in many for exercise in report.exercises]
    graded = [row for row in rows if row["assignment"]]
    for row, exercise in zip(graded, expected, strict=True):
        assert row["assignment"] == exercise.id
        assert row["score"] == row["raw_score"] == ("" if at_fault(exercise) else str(points_number(exercise.points)))
        assert Decimal(row["max_score"]) * 100 == exercise.max_points
        assert row["status"] == words.say("not graded" if at_fault(exercise) else "graded", lang)
        cells = [row[f"{exercise.id}.{function.name}"] for function in exercise.functions]
        if not at_fault(exercise):
            assert sum(Decimal(cell) for cell in cells) * 100 == exercise.points
    assert len(rows) - len(graded) == sum(not report.exercises for report in many)


@few
@given(st.lists(reports(), max_size=3), langs)
def test_canvas_and_moodle_parse_and_add_up(many, lang):
    many = [report for report in many if len({e.max_points for r in many for e in r.exercises}) <= 1] or many[:1]
    try:
        canvas, moodle = tables.canvas(many, lang), tables.moodle(many, lang)
    except tables.Clash:
        pairs = [(tables.student(report), exercise.id) for report in many for exercise in report.exercises]
        assert len(set(pairs)) < len(pairs)
        return
    header, (worth, *rows) = rows_of(canvas)
    assert tuple(header[:5]) == tables.CANVAS
    assert worth["Student"] == "    Points Possible"
    expected = sum(e.points for report in many for e in report.exercises if not at_fault(e))
    assert sum(Decimal(row[column] or 0) for row in rows for column in header[5:]) * 100 == expected
    header, rows = rows_of(moodle)
    assert header[:2] == ["Username", "Email address"]
    grades = [row[column] for row in rows for column in header[2::2]]
    assert sum(Decimal(grade) for grade in grades if grade != "-") * 100 == expected
    assert not any("<" in row[column] for row in rows for column in header[3::2])


# -- all of them -------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.lists(reports(GRADED), min_size=1, max_size=2), langs)
def test_every_format_is_a_pure_function_in_utf8(many, lang):
    for name, form in FORMATS.items():
        given_reports = many[:1] if form.single or name == "canvas" or name == "moodle" else many
        text = form.render(given_reports, lang)
        assert text == form.render(given_reports, lang)
        text.encode()
        assert text == "" or text.endswith("\n")
