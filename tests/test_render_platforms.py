"""What each platform reads, exactly, on reports small enough to be read; and the words in both languages."""

import csv
import io
import json
import re
import string
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from autograder.hidden.catalogue import catalogue
from autograder.render import github, gradescope, tables, words
from autograder.render.formats import FORMATS
from autograder.render.html import html
from autograder.render.junit import junit
from autograder.render.markdown import markdown
from autograder.report import MESSAGE_LIMIT, Check, ExerciseReport, FunctionReport, Report, plain_text

RENDER = Path(words.__file__).parent
NAMED = "mean-over-all-positions"


def passed(name="test_right", points=250):
    return Check(name, "It is right.", "passed", points, points, "", "", 0.25)


def failed(name="test_mean", misconception=NAMED, message="mlm_loss(…)\nreturned 1\nexpected 2", points=100):
    entry = catalogue()[misconception] if misconception else None
    explained = f"{message}\n{entry.title}: {entry.explanation}" if entry else message
    hint = entry.hint if entry else ""
    return Check(name, "It is the mean.", "failed", 0, points, explained, hint, 0.5, misconception)


FAULT = "The grader itself failed here. The result file and the log say how."


def fault():
    return Check("test_fault", "It is checked.", "grader_error", 0, 150, "GraderFault: in test_ex02.py", "", 0.0)


def report(*checks, name="class/s01", exercise="ex02", notes=()):
    functions = (FunctionReport("mlm_loss", checks),)
    return Report(name, (ExerciseReport(exercise, "The loss", functions),), "full", "cpu", 7, "0.1.0", notes)


# -- words -------------------------------------------------------------------------------------------------------------


def test_there_is_a_misconception_to_test_with():
    assert NAMED in catalogue()


def test_both_languages_say_each_thing_with_the_same_blanks():
    def blanks(text):
        return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}

    for key, (english, chinese) in words.WORDS.items():
        assert blanks(english) == blanks(chinese), key
    for english, chinese in [*words.VERDICTS.values(), *words.WORDS.values()]:
        assert not re.search(r"[\u4e00-\u9fff]", english)
        assert re.search(r"[\u4e00-\u9fff]", chinese) or english == chinese or len(english.strip()) == 1, chinese
        assert not re.search(r"[\u4e00-\u9fff][,:;!?()][\u4e00-\u9fff]", chinese), "half-width punctuation"


def test_every_word_is_used_and_every_word_used_is_there():
    source = "".join(
        path.read_text(encoding="utf-8")
        for path in RENDER.iterdir()
        if path.suffix in (".py", ".j2") and path.is_file()
    )
    used = set(re.findall(r"""(?:\bsay|\blabel)\(\s*["']([^"']+)["']""", source))
    assert used <= set(words.WORDS)
    for key in words.WORDS:
        assert source.count(f'"{key}"') + source.count(f"'{key}'") >= 2, f"{key} is not used"


def test_a_misconception_is_told_in_the_language_asked_for_and_only_once():
    entry = catalogue()[NAMED]
    english, chinese = words.explained(failed(), "en"), words.explained(failed(), "zh")
    assert english.message == chinese.message == "mlm_loss(…)\nreturned 1\nexpected 2"
    assert (english.misconception, english.explanation, english.hint) == (entry.title, entry.explanation, entry.hint)
    assert chinese.misconception == entry.title_zh
    assert (chinese.explanation, chinese.hint) == (entry.explanation_zh, entry.hint_zh)
    assert chinese.text("zh").count(entry.title_zh) == 1
    assert entry.title not in chinese.text("zh")


def test_a_message_that_the_catalogue_does_not_know_stays_whole():
    for message in ("only this", "x" * (MESSAGE_LIMIT + 50), ""):
        for name in (None, "gone"):
            check = Check("a", "T", "failed", 0, 1, message, "a hint", 0.0, name)
            assert words.explained(check, "zh") == words.Explanation(plain_text(message), hint="a hint")
    other = Check("a", "T", "failed", 0, 1, "call\nAn older title: text", "older hint", 0.0, NAMED)
    assert words.explained(other, "en") == words.Explanation("call\nAn older title: text", hint="older hint")
    assert words.explained(other, "zh").hint == catalogue()[NAMED].hint_zh


# -- Gradescope --------------------------------------------------------------------------------------------------------


def test_gradescope_golden():
    entry = catalogue()[NAMED]
    assert json.loads(gradescope.results(report(passed(), failed(), notes=("ex02 was taken from EX 2.py",)))) == {
        "score": 2.5,
        "execution_time": 0.75,
        "output": "Total: 2.5 of 3.5 points\nExercise 2 · The loss: 2.5 / 3.5\nex02 was taken from EX 2.py\n"
        "sandbox: full · device: cpu · seed: 7 · grader: 0.1.0\n"
        "GPU checks were not run: everything was graded on the CPU.",
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "extra_data": {
            "status": "graded",
            "max_points": 3.5,
            "sandbox": "full",
            "device": "cpu",
            "seed": 7,
            "grader_version": "0.1.0",
        },
        "tests": [
            {
                "name": "mlm_loss: It is right.",
                "number": "2.1.1",
                "status": "passed",
                "output": "",
                "tags": ["ex02", "passed"],
                "extra_data": {"id": "test_right", "seconds": 0.25},
                "score": 2.5,
                "max_score": 2.5,
            },
            {
                "name": "mlm_loss: It is the mean.",
                "number": "2.1.2",
                "status": "failed",
                "output": "mlm_loss(…)\nreturned 1\nexpected 2\n"
                f"{entry.title}: {entry.explanation}\nHint: {entry.hint}",
                "tags": ["ex02", "failed", NAMED],
                "extra_data": {"id": "test_mean", "seconds": 0.5},
                "score": 0,
                "max_score": 1,
            },
        ],
    }


def test_gradescope_says_that_a_fault_of_the_grader_is_no_grade():
    record = json.loads(gradescope.results(report(fault())))
    assert record["output"].startswith("Needs attention: the grader itself failed")
    assert "not a grade yet (0 of 1.5 points so far)" in record["output"]
    assert (record["visibility"], record["extra_data"]["status"]) == ("hidden", "needs_attention")
    assert record["tests"][0]["output"] == f"grader error\n{FAULT}"
    assert "score" not in record["tests"][0]


@pytest.mark.parametrize("lang", words.LANGUAGES)
def test_gradescope_before_grading_has_finished(lang):
    record = json.loads(gradescope.not_finished(lang))
    assert type(record["score"]) is int
    assert record["tests"] == []
    assert record["visibility"] == "hidden"
    assert record["output"] == words.say("unfinished", lang)


# -- JUnit -------------------------------------------------------------------------------------------------------------


def test_junit_golden_for_gitlab():
    text = junit([report(passed(), failed(misconception=None), failed(misconception=None), fault())], "gitlab")
    assert text == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<testsuites name="autograder" failures="2" errors="1" skipped="0" tests="4" time="1.250">\n'
        '  <testsuite name="ex02" failures="2" errors="1" skipped="0" tests="4" time="1.250">\n'
        '    <testcase classname="ex02.mlm_loss" name="It is right." time="0.250" />\n'
        '    <testcase classname="ex02.mlm_loss" name="It is the mean." time="0.500">\n'
        '      <failure type="failed" message="failed: It is the mean.">failed · mlm_loss\n'
        "mlm_loss(…)\nreturned 1\nexpected 2</failure>\n"
        "    </testcase>\n"
        '    <testcase classname="ex02.mlm_loss" name="It is the mean. (2)" time="0.500">\n'
        '      <failure type="failed" message="failed: It is the mean.">failed · mlm_loss\n'
        "mlm_loss(…)\nreturned 1\nexpected 2</failure>\n"
        "    </testcase>\n"
        '    <testcase classname="ex02.mlm_loss" name="It is checked." time="0.000">\n'
        '      <error type="grader_error" message="needs attention: not a grade yet: It is checked.">'
        f"needs attention: not a grade yet · mlm_loss\n{FAULT}</error>\n"
        "    </testcase>\n"
        "  </testsuite>\n"
        "</testsuites>\n"
    )


def test_junit_has_the_structure_that_pytest_writes(written_by_pytest):
    """The tags and the attributes of ours are those of pytest's own xunit2, on a file of one pass, failure and skip."""
    theirs = written_by_pytest
    skipped = Check("test_c", "C", "skipped", 0, 1, "Not run.", "", 0.0)
    ours = ET.fromstring(junit([report(passed(), failed(), skipped)], "pytest"))
    suite = next(theirs.iter("testsuite"))
    for tag in ("testsuites", "testsuite", "testcase", "failure", "skipped", "property"):
        own = {name for element in ours.iter(tag) for name in element.attrib}
        known = {name for element in theirs.iter(tag) for name in element.attrib}
        extra = {"failure": {"type"}, "testsuites": set(suite.keys())}.get(tag, set())
        assert own, tag
        assert own <= known | extra, tag
    places = {(parent.tag, child.tag) for parent in ours.iter() for child in parent}
    assert places <= {(parent.tag, child.tag) for parent in theirs.iter() for child in parent} | {
        ("testsuite", "properties")
    }


@pytest.fixture
def written_by_pytest(tmp_path):
    (tmp_path / "test_three.py").write_text(
        "import pytest\n"
        "def test_a(record_property):\n    record_property('points', 1)\n"
        "def test_b(record_property):\n    record_property('points', 1)\n    assert False\n"
        "def test_c():\n    pytest.skip('no')\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=out.xml", "test_three.py"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    return ET.parse(tmp_path / "out.xml").getroot()


def test_several_reports_are_told_apart_by_their_suites():
    root = ET.fromstring(junit([report(passed()), report(passed(), name="class/s02")], "gitlab"))
    assert [suite.get("name") for suite in root] == ["s01 ex02", "s02 ex02"]
    assert [case.get("classname") for case in root.iter("testcase")] == ["s01 ex02.mlm_loss", "s02 ex02.mlm_loss"]


# -- GitHub ------------------------------------------------------------------------------------------------------------


def test_annotations_golden():
    entry = catalogue()[NAMED]
    told = f"{entry.title}: {entry.explanation}\nHint: {entry.hint}".replace("%", "%25").replace("\n", "%0A")
    title = f"mlm_loss: {entry.title}".replace(":", "%3A").replace(",", "%2C")
    assert github.annotate([report(passed(), failed())]) == (
        f"::error file=exercises/ex02_mlm_loss.py,title={title}::It is the mean. (failed, 0 / 1)%0A"
        f"mlm_loss(…)%0Areturned 1%0Aexpected 2%0A{told}\n"
    )


def test_the_most_useful_annotations_come_first_and_no_more_than_are_shown():
    many = [failed(f"test_{n}", None, f"message {n}", points=n) for n in range(20)]
    lines = github.annotate([report(passed(), *many, failed(points=1), fault())]).splitlines()
    assert len(lines) == 10
    assert FAULT in lines[0]
    assert catalogue()[NAMED].hint.split("`")[0] in lines[1]
    assert [re.search(r"message (\d+)", line).group(1) for line in lines[2:9]] == [str(n) for n in range(19, 12, -1)]
    assert lines[9] == "::notice title=Grading report::13 more: see the report."


def test_a_passed_report_has_no_annotations():
    assert github.annotate([report(passed())]) == ""


def test_classroom_golden():
    assert github.classroom_results(report(passed(), failed(misconception=None)).exercises[0]) == {
        "version": 1,
        "status": "fail",
        "max_score": 3.5,
        "tests": [
            {
                "name": "mlm_loss",
                "status": "fail",
                "score": 2.5,
                "message": "Authoritative: 2.5 of 3.5 points, the sum of the scores.\n2.5 / 3.5\n"
                "It is the mean. (failed)\nmlm_loss(…)\nreturned 1\nexpected 2",
                "test_code": "",
                "filename": "exercises/ex02_mlm_loss.py",
                "line_no": 0,
                "duration": 0.75,
            }
        ],
    }


def test_classroom_gets_no_grade_where_the_grader_failed():
    exercise = report(passed(), fault()).exercises[0]
    record = github.classroom_results(exercise, graded=False)
    assert (record["status"], record["max_score"]) == ("error", 0)  # a total of 0 is not sent
    assert record["tests"][0]["message"].startswith("Needs attention")


def test_a_summary_that_is_too_long_says_how_much_is_missing():
    many = [report(*[failed(f"t{n}", None, "m" * 3900 + str(n)) for n in range(30)], name=f"s{n}") for n in range(12)]
    text = github.summary(many)
    assert github.SUMMARY_LIMIT - 5000 < len(text.encode()) <= github.SUMMARY_LIMIT
    assert re.search(r"> \*\*Cut here: \d+ more parts do not fit into the 1024 KiB that are shown\.\*\*\n$", text)


# -- Markdown and HTML -------------------------------------------------------------------------------------------------


def test_markdown_golden():
    entry = catalogue()[NAMED]
    assert markdown([report(passed(), failed(), notes=("a note",))], "zh") == (
        "# 评分报告\n\n## class/s01\n\n**总分：得 2.5 分，满分 3.5 分**\n\n- a note\n\n"
        "### 练习 2 · The loss · 2.5 / 3.5\n\n"
        "| 函数 | 得分 | 检查项 |\n| --- | ---: | --- |\n| mlm\\_loss | 2.5 / 3.5 | 通过 1 / 2 项检查 |\n\n"
        "#### mlm\\_loss\n\n- It is the mean. · **未通过** · 0 / 1\n\n"
        "```text\nmlm_loss(…)\nreturned 1\nexpected 2\n```\n\n"
        f"> 常见误解：**{inline(entry.title_zh)}**：{inline(entry.explanation_zh)}\n\n"
        f"> **提示**：{inline(entry.hint_zh)}\n\n"
        "沙箱：full · 设备：cpu · 随机种子：7 · 评分程序：0.1.0  \n未运行 GPU 检查：全部在 CPU 上评分。\n"
    )


def inline(text):
    return re.sub(r"([\\`*_\[\]<>#|~&$])", r"\\\1", text)


def test_what_needs_attention_never_reads_like_a_grade():
    broken = report(passed(), fault())
    for text in (markdown([broken]), html([broken])):
        assert "not a grade yet (2.5 of 4 points so far)" in text
        assert "2.5 of 4 points</" not in text.replace("so far)", "")
    table = markdown([broken, report(passed(), name="class/s02")])
    assert "| s01 | 2.5 / 4 | not a grade yet (2.5 of 4 points so far) | needs attention: not a grade yet |" in table
    assert '<td class="number">–</td><td class="grader_error">' in html([broken, report(passed())])


def test_how_the_grader_failed_is_for_the_record_and_not_for_students():
    for name, form in FORMATS.items():
        text = form.render([report(fault())], "en")
        assert ("test_ex02.py" in text) == (name == "json"), name


def test_html_speaks_the_language_and_loads_nothing():
    for lang, tag in words.HTML_LANG.items():
        text = html([report(failed()), report(passed(), name="class/s02")], lang)
        assert f'<html lang="{tag}">' in text
        assert not re.search(r"https?:|//|<script|<link|@import|url\(", text)
        assert "default-src 'none'" in text
        assert 'name="viewport"' in text
        assert "prefers-color-scheme: dark" in text
    assert catalogue()[NAMED].hint_zh in text.replace("&#39;", "'").replace("&#34;", '"').replace("&amp;", "&")


def test_html_bars_are_full_only_for_full_points():
    nearly = report(passed(points=9_999), failed(points=1, misconception=None))
    assert 'style="width:99%"' in html([nearly])
    assert 'style="width:100%"' not in html([nearly])
    assert 'style="width:1%"' in html([report(passed(points=1), failed(points=9_999))])
    assert 'class="bar full"' in html([report(passed())])


# -- gradebooks --------------------------------------------------------------------------------------------------------


def test_the_gradebook_golden():
    text = tables.gradebook([report(passed(), failed(misconception=None)), report(fault(), name='class/s02, "the" =1')])
    assert text == (
        "assignment,duedate,timestamp,student_id,last_name,first_name,email,raw_score,late_submission_penalty,score,"
        "max_score,status,submission,ex02.mlm_loss\r\n"
        "ex02,,,s01,,,,2.5,,2.5,3.5,graded,class/s01,2.5\r\n"
        'ex02,,,"s02, ""the"" =1",,,,,,,1.5,needs attention: not a grade yet,"class/s02, ""the"" =1",\r\n'
    )


def test_canvas_golden():
    many = [report(passed()), report(fault(), passed(points=100), name="class/s02/ex02.py")]
    many += [report(passed(points=300), name="class/s02", exercise="ex03")]
    assert tables.canvas(many) == (
        "Student,ID,SIS User ID,SIS Login ID,Section,ex02 The loss,ex03 The loss\r\n"
        "    Points Possible,,,,,2.5,3\r\n"
        "s01,,,s01,,2.5,\r\n"
        "s02,,,s02,,,3\r\n"
    )


def test_canvas_does_not_take_a_student_for_the_row_of_points():
    rows = list(csv.reader(io.StringIO(tables.canvas([report(passed(), name="Points Possible")]))))
    assert [row[0] for row in rows] == ["Student", "    Points Possible", ""]
    assert rows[2][3] == "Points Possible"


def test_moodle_golden():
    many = [report(passed(), failed(misconception=None, message="a < b")), report(fault(), name="class/z@example.org")]
    assert tables.moodle(many) == (
        "Username,Email address,ex02 The loss,ex02 The loss (Feedback)\r\n"
        's01,,2.5,"mlm_loss: 2.5 / 3.5\nIt is the mean. (failed)\na &lt; b"\r\n'
        'z@example.org,z@example.org,-,"needs attention: not a grade yet\nmlm_loss: 0 / 1.5\n'
        f'It is checked. (grader error)\n{FAULT}"\r\n'
    )


@pytest.mark.parametrize("render", [tables.canvas, tables.moodle])
def test_two_results_for_one_cell_are_refused(render):
    with pytest.raises(tables.Clash, match="two results have ex02 of s01"):
        render([report(passed()), report(failed(), name="other/s01/ex02_mlm_loss.ipynb")])


def test_canvas_refuses_results_that_disagree_about_what_an_exercise_is_worth():
    with pytest.raises(tables.Clash, match="disagree about what ex02 is worth"):
        tables.canvas([report(passed()), report(passed(points=100), name="class/s02")])


@pytest.mark.parametrize(
    ("path", "who"),
    [
        ("class/zoe", "zoe"),
        ("class/zoe/", "zoe"),
        ("class/zoe/ex02_mlm_loss.py", "zoe"),
        ("submitted/zoe/ex02/ex02_mlm_loss.ipynb", "zoe"),
        ("class/zoe.py", "zoe"),
        ("ex02_mlm_loss.py", "ex02_mlm_loss"),
        ("./zoe", "zoe"),
        ("/", "/"),
        ("", ""),
    ],
)
def test_who_handed_in_is_told_by_the_path(path, who):
    assert tables.student(report(name=path)) == who


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "＝1"])
def test_no_cell_is_a_formula(text):
    rows = list(csv.reader(io.StringIO(tables.gradebook([report(passed(), name=text)]))))
    assert rows[1][12] == f"'{text}"
