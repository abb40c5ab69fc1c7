"""The report of a class: its numbers are the results', no text of a student acts, it replaces nothing but itself."""

from __future__ import annotations

import json
import os
import random
import re
import stat
import subprocess
import sys
import time
import zipfile
from collections import Counter
from pathlib import Path
from statistics import mean, median

import pytest
import synthetic_class as synthetic
from bs4 import BeautifulSoup, Tag

from autograder.classreport import words
from autograder.classreport.build import Written, build
from autograder.classreport.charts import histogram, per_cent
from autograder.classreport.counting import Score
from autograder.classreport.timeline import handed_in_at, periods
from autograder.cli import main
from autograder.hidden.catalogue import catalogue
from autograder.render import jsonlines
from autograder.render.words import LANGUAGES
from autograder.report import Check, ExerciseReport, FunctionReport, Report, Verdict
from autograder.submission import UsageError

PAGES = ("index", "submissions", "misconceptions", "checks", "similar")
HOSTILE = [
    "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "</title></table></main><h1>all is well</h1>",
    "{{ 7 * 7 }}{% raw %}",
    "\u202eevil\u2066 \x1b[2J\x00",
    "\udcff not UTF-8",
    "javascript:alert(1)",
    "../../../etc/passwd",
    "a\"b'c`d` &amp; ; e",
    "x" * 300,
    "中文，名字",
    "CON",
    "ann",
    "ANN",
    "",
]


def soup(site: Path, page: str) -> BeautifulSoup:
    text = (site / f"{page}.html").read_text(encoding="utf-8")
    return BeautifulSoup(text.replace("<wbr>", ""), "html.parser")


def table(page: BeautifulSoup, section: str) -> list[list[str]]:
    """The cells of the first table below a heading, row by row, without the head."""
    found = page.select_one(f'[aria-labelledby="{section}"] table')
    assert isinstance(found, Tag), section
    return [[said(cell) for cell in row.select("th, td")] for row in found.select("tbody tr")]


def said(cell: Tag) -> str:
    return " ".join(cell.get_text(" ").replace("\u202f", " ").split())


def made(folder: Path, results: list[Report], **more: str) -> tuple[Path, Written]:
    stored = synthetic.store(folder / "results", results)
    written = build(
        str(stored), str(folder / "site"), more.get("lang", "en"), more.get("submissions"), more.get("export")
    )
    return folder / "site", written


# -- numbers that were worked out by hand ------------------------------------------------------------------------------
def graded(name: str, *verdicts: Verdict, notes: tuple[str, ...] = ()) -> Report:
    """Three checks, worth 3 and 2 points in mean_nll and 5 in mlm_loss."""
    most = (300, 200, 500)
    named = ("another-formula", "not-in-double", "not-in-double")
    checks = [
        Check(
            f"test_{n}",
            f"Title {n}",
            verdict,
            worth if verdict == "passed" else 0,
            worth,
            "" if verdict == "passed" else "what came back",
            "",
            0.1,
            misconception if verdict == "failed" else None,
        )
        for n, (verdict, worth, misconception) in enumerate(zip(verdicts, most, named, strict=True), 1)
    ]
    functions = (FunctionReport("mean_nll", tuple(checks[:2])), FunctionReport("mlm_loss", tuple(checks[2:])))
    exercise = ExerciseReport("ex02", "The masked-language-model loss", functions)
    return Report(f"class/{name}", (exercise,), "full", "cpu", 0, "0.1.0", notes)


CLASS = [
    graded("ann", "passed", "failed", "passed"),  # 8
    graded("bob", "failed", "passed", "failed"),  # 2
    graded("cem", "not_implemented", "not_implemented", "not_implemented"),  # 0
    graded("dora", "timeout", "timeout", "passed", notes=("conduct, ex02: tried to start a process",)),  # 5
    graded("eve", "grader_error", "failed", "passed"),  # no grade
    graded("finn", "passed", "passed", "passed", notes=("skipped `%pip`",)),  # 10
]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("small"), CLASS)[0]


def test_the_distribution_counts_grades_and_nothing_else(small: Path) -> None:
    page = soup(small, "index")
    card = page.select_one('[aria-labelledby="d1-heading"]')
    assert card is not None
    assert "5 graded · mean 5 · median 5 · of 10 points · 1 with full marks" in said(card)
    counts = {row[0]: row[1] for row in table(page, "d1-heading")}
    assert counts == {
        "0 to 9 %": "1",
        "10 to 19 %": "0",
        "20 to 29 %": "1",
        "30 to 39 %": "0",
        "40 to 49 %": "0",
        "50 to 59 %": "1",
        "60 to 69 %": "0",
        "70 to 79 %": "0",
        "80 to 89 %": "1",
        "90 to 99 %": "0",
        "full marks": "1",
    }
    described = page.select_one("#d1-desc")
    assert described is not None
    assert said(described).startswith("0 to 9 %: 1; 10 to 19 %: 0; 20 to 29 %: 1; ")


def test_the_tiles(small: Path) -> None:
    tiles = {said(dt): said(dt.find_next("dd")) for dt in soup(small, "index").select(".tiles dt")}
    assert tiles == {
        "Submissions": "6",
        "Mean score": "5 of 10 points",
        "Median score": "5",
        "Full marks": "1",
        "Timeouts": "1",
        "Crashes": "0",
        "Out of memory": "0",
        "Needs attention": "1",
    }


def test_hardest_checks_are_counted_where_they_ran(small: Path) -> None:
    """Not where the function is not written, nor where the grader failed."""
    rows = [(row[0], row[1]) for row in table(soup(small, "index"), "checks-heading")]
    assert rows == [
        ("ex02.mean_nll Title 2", "40 % 2 of 5"),
        ("ex02.mean_nll Title 1", "50 % 2 of 4"),
        ("ex02.mlm_loss Title 3", "80 % 4 of 5"),
    ]


def test_hardest_functions_count_what_is_not_written_as_nothing(small: Path) -> None:
    rows = table(soup(small, "checks"), "functions-heading")
    # mean_nll: 3 + 2 + 0 + 0 + 5 of 25, without eve; mlm_loss: 5 + 0 + 0 + 5 + 5 + 5 of 30
    assert [(row[1], row[2]) for row in rows] == [("40 %", "1 / 5"), ("66 %", "1 / 6")]


def test_misconceptions_are_counted_once_a_submission(small: Path) -> None:
    rows = table(soup(small, "index"), "misconceptions-heading")
    entry, other = catalogue()["not-in-double"], catalogue()["another-formula"]
    assert [row[1] for row in rows] == ["3 50 %", "1 16 %"]
    assert entry.title in rows[0][0]
    assert other.title in rows[1][0]
    assert entry.hint.split("`")[0].strip() in rows[0][0]
    who = soup(small, "misconceptions").select_one("#m1 .names")
    assert who is not None
    assert [link["href"] for link in who.select("a")] == [f"submissions/{n}.html" for n in ("ann", "bob", "eve")]


def test_trouble_attention_and_conduct(small: Path) -> None:
    page = soup(small, "index")
    timeouts = page.select_one('[aria-labelledby="timeout-heading"]')
    conduct = page.select_one('[aria-labelledby="conduct-heading"]')
    attention = page.select_one('[aria-labelledby="attention-heading"]')
    assert timeouts is not None
    assert conduct is not None
    assert attention is not None
    assert [said(link) for link in timeouts.select("a")] == ["dora"]
    assert "2 checks" in said(timeouts)
    assert [said(link) for link in attention.select("a")] == ["eve"]
    assert [said(link) for link in conduct.select("a")] == ["dora"]
    assert "tried to start a process" in said(conduct)
    assert "%pip" not in said(conduct)


def test_what_needs_attention_reads_like_no_grade_anywhere(small: Path) -> None:
    rows = {row[0]: row for row in table_of_submissions(small)}
    assert rows["eve"][1:3] == ["no grade yet", "–"]
    assert rows["ann"][1:3] == ["8 / 10", "8"]
    assert rows["cem"][3] == "not implemented (3 of 3 checks)"


def table_of_submissions(site: Path) -> list[list[str]]:
    return [[said(cell) for cell in row.select("th, td")] for row in soup(site, "submissions").select("tbody tr")]


def test_every_submission_has_its_page_and_every_link_leads_somewhere(small: Path) -> None:
    for page in small.rglob("*.html"):
        for link in BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser").select("a[href]"):
            target, _, anchor = str(link["href"]).partition("#")
            file = (page.parent / target).resolve() if target else page
            assert file.is_file(), (page, link)
            assert not anchor or f'id="{anchor}"' in file.read_text(encoding="utf-8"), link
    ann = soup(small, "submissions/ann")
    assert said(ann.select_one("h2")) == "ann"
    assert ann.select_one('nav a[href="../index.html"]') is not None


def test_without_code_the_page_says_how_to_get_it(small: Path) -> None:
    for page in ("index", "similar"):
        text = said(soup(small, page).select_one("main"))
        assert "autograder report RESULTS --out SITE --submissions SUBMISSIONS" in text
    assert "A signal, not a verdict." in said(soup(small, "similar").select_one("main"))


# -- a class of 200: the same numbers, counted another way -------------------------------------------------------------
def test_the_numbers_of_a_large_class_are_those_of_its_results(tmp_path: Path) -> None:
    names = [f"s{n:03d}" for n in range(200)]
    site, written = made(tmp_path, synthetic.reports(names))
    assert (written.submissions, written.attention, written.groups) == (200, 0, None)
    records = [json.loads(file.read_text()) for file in sorted((tmp_path / "results").glob("*.json"))]
    totals = [record["points"] for record in records]
    tiles = {said(dt): said(dt.find_next("dd")) for dt in soup(site, "index").select(".tiles dt")}
    assert float(tiles["Mean score"].split()[0]) == pytest.approx(mean(totals), abs=0.0051)
    assert float(tiles["Median score"]) == pytest.approx(median(totals), abs=0.0051)

    shares = Counter(10 if r["points"] == r["max_points"] else int(10 * r["points"] / r["max_points"]) for r in records)
    shown = [int(row[1]) for row in table(soup(site, "index"), "total-heading")]
    assert shown == [shares[number] for number in range(11)]

    found = [(c["misconception"], r["submission"]) for r in records for c in checks(r) if c["misconception"]]
    counts = Counter(name for name, _ in set(found))
    shown = [int(row[1].split()[0]) for row in table(soup(site, "index"), "misconceptions-heading")]
    assert shown == sorted(counts.values(), reverse=True)[:10]
    assert len(soup(site, "misconceptions").select("article")) == len(counts)

    ran, passed = Counter[str](), Counter[str]()
    for record in records:
        for check in checks(record):
            ran[check["id"]] += check["verdict"] not in ("not_implemented", "skipped", "grader_error")
            passed[check["id"]] += check["verdict"] == "passed"
    shares_passed = sorted(passed[name] / ran[name] for name in ran)
    cells = soup(site, "checks").select('[aria-labelledby="checks-heading"] tbody tr td:nth-of-type(1)')
    assert [float(str(cell["data-value"])) for cell in cells] == pytest.approx(shares_passed, abs=1e-6)

    trouble = {r["submission"] for r in records if any(c["verdict"] == "timeout" for c in checks(r))}
    assert int(tiles["Timeouts"]) == len(trouble) > 3


def checks(record: dict) -> list[dict]:
    return [check for e in record["exercises"] for f in e["functions"] for check in f["checks"]]


# -- hostile text, both languages --------------------------------------------------------------------------------------
@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_text_of_a_student_acts(tmp_path: Path, lang: str) -> None:
    results = []
    for number, text in enumerate(HOSTILE):
        check = Check(text, text, "failed", 0, 100, text, text, 0.1, f"{text} gone")
        slow = Check(text + "2", text, "timeout", 0, 100, text, text, 0.1)
        function = FunctionReport(text, (check, slow))
        exercise = ExerciseReport("ex02" if number % 2 else f"ex{text}", text, (function,))
        results.append(Report(text, (exercise,), text, "cpu", 0, text, (f"conduct {text}", text)))
    (tmp_path / "results").mkdir()
    for number, report in enumerate(results):
        (tmp_path / "results" / f"{number}.json").write_text(jsonlines.stored(report), encoding="utf-8")
    build(str(tmp_path / "results"), str(tmp_path / "site"), lang, None, None)
    names = sorted(file.name for file in (tmp_path / "site" / "submissions").iterdir())
    assert len({name.casefold() for name in names}) == len(HOSTILE)
    assert all(re.fullmatch(r"[\w.-]+\.html", name, re.ASCII) and not name.startswith(".") for name in names)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["results", "site"]
    for page in PAGES:
        text = (tmp_path / "site" / f"{page}.html").read_text(encoding="utf-8")
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
        found = BeautifulSoup(text, "html.parser")
        assert len(found.select("script")) == (page in ("submissions", "checks"))
        assert not found.select("img, iframe, object, form, link, base, [style]")
        assert len(found.select("h1")) == len(found.select("main")) == len(found.select("head > title")) == 1
        assert not [tag for tag in found.select("*") for name in tag.attrs if name.startswith("on")]
        assert all(re.match(r"(submissions/)?[\w.-]*\.html|#", str(a["href"])) for a in found.select("a"))


def test_both_languages_say_everything() -> None:
    for key, entry in words.WORDS.items():
        english, chinese = entry
        assert set(re.findall(r"\{\w+\}", english)) == set(re.findall(r"\{\w+\}", chinese)), key
        assert key == "bar" or re.search("[\u4e00-\u9fff，：/]", chinese), key
    templates = "".join(file.read_text() for file in (Path(words.__file__).parent / "templates").glob("*.j2"))
    used = set(re.findall(r"say\('([^']+)'", templates))
    assert used <= words.WORDS.keys()
    assert words.WORDS.keys() - used <= {
        "overview",
        "all submissions",
        "all misconceptions",
        "all checks",
        "exercise",
        "timeout",
        "crashed",
        "out_of_memory",
    }


def test_the_chinese_pages(tmp_path: Path) -> None:
    site, _ = made(tmp_path, CLASS, lang="zh")
    page = soup(site, "index")
    assert page.html is not None
    assert page.html["lang"] == "zh-Hans"
    assert "练习 2 · 掩码语言模型损失" in said(page)
    assert catalogue()["not-in-double"].title_zh in said(page)
    assert "中位数 5" in said(page)


# -- bars and times ----------------------------------------------------------------------------------------------------
def test_only_all_of_the_points_are_full_marks() -> None:
    told = histogram([Score(999, 1000), Score(1000, 1000), Score(0, 1000), Score(1, 1000), Score(500, 1000, True)])
    assert told is not None
    assert [bar.count for bar in told.bars] == [2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]
    assert (told.graded, told.full, told.mean) == (4, 1, 5)
    assert histogram([Score(0, 0), Score(100, 100, True)]) is None
    assert [per_cent(*pair) for pair in ((0, 9), (1, 1000), (999, 1000), (7, 7), (1, 0))] == [0, 1, 99, 100, 0]


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_periods_hold_every_time_once_and_keep_to_the_clock(berlin: None) -> None:
    random_ = random.Random(1)
    start = 1_792_700_000.0  # 2026-10-22: summer time ends on the 25th
    for span in (59, 61, 3_000, 86_400, 6 * 86_400, 400 * 86_400, 30 * 365 * 86_400):
        times = [start, start + span, *(start + random_.random() * span for _ in range(100)), None]
        found = periods(times)
        if span < 60:
            assert found == []
            continue
        assert len(found) <= 12
        assert sorted(row for period in found for row in period.rows) == list(range(102))
        assert len({period.label for period in found}) == len(found)
    labels = [period.label for period in periods([start, start + 6 * 86_400])]
    assert labels == ["10-22", "10-23", "10-24", "10-25", "10-26", "10-27", "10-28"]
    assert periods([]) == periods([None]) == []


def test_when_work_was_handed_in(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    for name, when in (("ex02.py", 1_700_000_000), ("ex03.py", 1_700_000_500), ("notes.txt", 1_800_000_000)):
        (tmp_path / "ann" / name).touch()
        os.utime(tmp_path / "ann" / name, (when, when))
    assert handed_in_at(str(tmp_path / "ann")) == 1_700_000_500
    assert handed_in_at(str(tmp_path / "ann" / "ex02.py")) == 1_700_000_000
    noted = tmp_path / "ann" / "timestamp.txt"
    noted.write_text("2026-01-31 15:58:23.5 UTC")
    assert handed_in_at(str(tmp_path / "ann")) == 1_769_875_103.5
    noted.write_text("tomorrow")
    assert handed_in_at(str(tmp_path / "ann")) == 1_700_000_500
    noted.unlink()
    noted.symlink_to("/dev/zero")
    assert handed_in_at(str(tmp_path / "ann")) == 1_700_000_500
    os.utime(tmp_path / "ann" / "ex03.py", (0, 0))
    os.utime(tmp_path / "ann" / "ex02.py", (0, 0))
    assert handed_in_at(str(tmp_path / "ann")) is None
    assert handed_in_at(str(tmp_path / "nobody")) is None


def test_misconceptions_by_time(tmp_path: Path) -> None:
    handed = tmp_path / "class"
    for number, result in enumerate(CLASS):
        file = handed / result.submission.removeprefix("class/") / "ex02_mlm_loss.py"
        file.parent.mkdir(parents=True)
        file.write_text("")
        when = synthetic.FIRST + (number // 2) * 86_400
        os.utime(file, (when, when))
    site, written = made(tmp_path, CLASS, submissions=str(handed))
    assert written.groups == 0
    rows = table(soup(site, "index"), "time-heading")
    some = [column for column, number in enumerate(rows[0]) if number not in ("Handed in", "0")]
    assert [[row[column] for column in some] for row in rows] == [
        ["2", "2", "2"],  # handed in
        ["50", "25", "100"],  # ann 8, bob 2; cem 0, dora 5; finn 10, and eve has no grade
        ["2", "·", "1"],  # not in double: ann, bob; eve
        ["1", "·", "·"],  # another formula: bob
    ]


def test_an_archive_keeps_its_times(tmp_path: Path) -> None:
    archive = tmp_path / "class.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for number, result in enumerate(CLASS):
            name = result.submission.removeprefix("class/")
            entry = zipfile.ZipInfo(f"{name}/ex02.py", (2026, 11, 16 + number, 12, 0, 0))
            file.writestr(entry, "x = 1\n")
    site, _ = made(tmp_path, CLASS, submissions=str(archive))
    shown = [row[3] for row in table_of_submissions(site)]
    assert shown == [f"2026-11-{16 + number} 12:00" for number in range(6)]


# -- folders -----------------------------------------------------------------------------------------------------------
def test_an_earlier_report_is_replaced_and_nothing_else_is(tmp_path: Path) -> None:
    site, _ = made(tmp_path, CLASS)
    made(tmp_path, [graded("zoe", "passed", "passed", "passed")])
    assert (site / "submissions" / "zoe.html").is_file()
    (tmp_path / "results" / "class-ann.json").unlink()
    build(str(tmp_path / "results"), str(site), "en", None, None)
    assert not (site / "submissions" / "ann.html").exists()
    assert stat.S_IMODE(site.stat().st_mode) == 0o755
    (site / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"something else in that folder \(notes.txt\)"):
        build(str(tmp_path / "results"), str(site), "en", None, None)
    assert (site / "notes.txt").read_text() == "mine"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["results", "site"]


def test_what_is_in_the_way_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = synthetic.store(tmp_path / "results", CLASS)
    (tmp_path / "file").touch()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "x.json").write_text("{}")
    for arguments, message in (
        ([results, "--out", tmp_path / "file"], "there is a file of that name"),
        ([results, "--out", tmp_path / "mine"], "something else in that folder (thesis.tex)"),
        ([results, "--out", results], "is in that folder"),
        ([results, "--out", tmp_path], "is in that folder"),
        ([tmp_path / "empty", "--out", tmp_path / "s"], "there is no result there"),
        ([tmp_path / "nowhere", "--out", tmp_path / "s"], "cannot be read (No such file or directory)"),
        ([tmp_path / "broken", "--out", tmp_path / "s"], "no result there can be read"),
        ([results, "--out", tmp_path / "s", "--submissions", tmp_path / "no"], "there is no such file or folder"),
        ([results, "--out", tmp_path / "s", "--similarity-export", tmp_path / "e"], "give --submissions too"),
    ):
        assert main(["report", *map(str, arguments)]) == 2, arguments
        printed = capsys.readouterr()
        assert message in printed.err
        assert printed.out == ""
    assert {file.name for file in tmp_path.iterdir()} == {"broken", "empty", "file", "mine", "results"}
    assert main(["report", str(results), "--out", str(tmp_path / "empty")]) == 0  # an empty folder is in nobody's way


def test_a_damaged_result_is_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = synthetic.store(tmp_path / "results", CLASS)
    (results / "half.json").write_text('{"submission": "half", "poi')
    (results / "later.json").write_text('{"submission": "later"}')
    assert main(["report", str(results), "--out", str(tmp_path / "site")]) == 0
    assert "6 submissions" in (printed := capsys.readouterr()).out
    assert "half.json" in printed.err
    assert "later.json" in printed.err
    alert = soup(tmp_path / "site", "index").select_one('[aria-labelledby="unreadable-heading"]')
    assert alert is not None
    assert len(alert.select("li")) == 2


def test_a_report_that_fails_leaves_the_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, _ = made(tmp_path, CLASS)
    before = (site / "index.html").read_text()

    def fails(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("autograder.classreport.build.pages", fails)
    with pytest.raises(KeyboardInterrupt):
        build(str(tmp_path / "results"), str(site), "zh", None, None)
    assert (site / "index.html").read_text() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["results", "site"]


def test_memory_does_not_grow_with_the_results(tmp_path: Path) -> None:
    """Ten times the class, hardly more memory: one report is held at a time."""
    code = (
        "import resource, sys\n"
        "from autograder.classreport.build import build\n"
        "build(sys.argv[1], sys.argv[2], 'en', None, None)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    report = synthetic.reports(["s"])[0]
    peaks = []
    for size in (50, 450):
        results = tmp_path / f"results{size}"
        results.mkdir()
        line = (synthetic.store(tmp_path / "one", [report]) / "s.json").read_text()
        for number in range(size):
            (results / f"{number}.json").write_text(line.replace('"submission": "s"', f'"submission": "s{number}"'))
        run = [sys.executable, "-c", code, str(results), str(tmp_path / f"site{size}")]
        peaks.append(int(subprocess.run(run, check=True, capture_output=True, text=True).stdout))
    assert peaks[1] - peaks[0] < 15_000  # KiB; 400 reports and their pages are 47 MiB
