"""Everything that the renderers say of themselves, in English and Chinese, and what a failed check says in either."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, get_args

from autograder.render.reasons import WORST_FIRST, misconceptions
from autograder.report import Check, ExerciseReport, FunctionReport, Report, Verdict, plain_text, points_number
from autograder.syllabus import EXERCISES

if TYPE_CHECKING:
    from autograder.hidden.catalogue import Misconception

Lang = Literal["en", "zh"]
LANGUAGES: tuple[Lang, ...] = get_args(Lang)
#: What an HTML document says its language is.
HTML_LANG: dict[Lang, str] = {"en": "en", "zh": "zh-Hans"}

WORDS: dict[str, tuple[str, str]] = {
    "report": ("Grading report", "评分报告"),
    "class": ("Class", "班级"),
    "submissions": ("{n} submissions", "{n} 份提交"),
    "submission": ("Submission", "提交"),
    "exercise": ("Exercise {number}", "练习 {number}"),
    "function": ("Function", "函数"),
    "check": ("Check", "检查项"),
    "verdict": ("Verdict", "结果"),
    "points": ("Points", "得分"),
    "total": ("Total", "总分"),
    "of": ("{points} / {most}", "{points} / {most}"),
    "of points": ("{points} of {most} points", "得 {points} 分，满分 {most} 分"),
    "checks passed": ("{passed} of {all} checks passed", "通过 {passed} / {all} 项检查"),
    "verdict of": ("{verdict} ({n} of {all} checks)", "{verdict}（{n} / {all} 项检查）"),
    "misconception": ("Misconception", "常见误解"),
    "misconceptions": ("Most frequent misconceptions", "最常见的误解"),
    "how many": ("Submissions", "提交数"),
    "hint": ("Hint", "提示"),
    "note": ("Note", "备注"),
    "notes": ("Notes", "备注"),
    "needs attention": (
        "Needs attention: the grader itself failed in places. This is not a grade yet.",
        "需要处理：评分程序自身出错，此结果尚不是成绩。",
    ),
    "fault": (
        "The grader itself failed here. The result file and the log say how.",
        "评分程序在此处出错，详情见结果文件和日志。",
    ),
    "no grade": ("not a grade yet ({points} of {most} points so far)", "尚无成绩（目前 {points} / {most} 分）"),
    "unfinished": (
        "Grading did not finish. This is not a grade: the submission has to be graded again.",
        "评分未能完成。此结果不是成绩，需要重新评分。",
    ),
    "graded": ("graded", "已评分"),
    "not graded": ("needs attention: not a grade yet", "需要处理：尚无成绩"),
    "nothing graded": ("nothing graded", "没有评分内容"),
    "cpu only": (
        "GPU checks were not run: everything was graded on the CPU.",
        "未运行 GPU 检查：全部在 CPU 上评分。",
    ),
    "circumstances": (
        "sandbox: {sandbox} · device: {device} · seed: {seed} · grader: {version}",
        "沙箱：{sandbox} · 设备：{device} · 随机种子：{seed} · 评分程序：{version}",
    ),
    "left out": (
        "Cut here: {n} more parts do not fit into the {limit} KiB that are shown.",
        "内容在此截断：超出 {limit} KiB 的显示上限，其余 {n} 部分未显示。",
    ),
    "more": ("{n} more: see the report.", "还有 {n} 条，详见报告。"),
    "authoritative": (
        "Authoritative: {points} of {most} points, the sum of the scores.",
        "以各项得分之和为准：{points} / {most} 分。",
    ),
    "feedback": ("{item} (Feedback)", "{item}（反馈）"),
    "distribution": ("Points by exercise, on average", "各练习平均得分"),
    "to class": ("Back to the class", "返回班级"),
    "colon": (": ", "："),
}

VERDICTS: dict[Verdict, tuple[str, str]] = {
    "passed": ("passed", "通过"),
    "failed": ("failed", "未通过"),
    "not_implemented": ("not implemented", "未实现"),
    "timeout": ("timeout", "超时"),
    "out_of_memory": ("out of memory", "内存不足"),
    "crashed": ("crashed", "崩溃"),
    "skipped": ("skipped", "已跳过"),
    "grader_error": ("grader error", "评分程序出错"),
}


def say(key: str, lang: Lang, **values: object) -> str:
    """An entry of the table, filled in."""
    return WORDS[key][LANGUAGES.index(lang)].format(**values)


def verdict(check: Check, lang: Lang) -> str:
    return VERDICTS[check.verdict][LANGUAGES.index(lang)]


def out_of(part: Report | ExerciseReport | FunctionReport | Check, lang: Lang, key: str = "of") -> str:
    """Its points out of how many: the place where hundredths become numbers for people."""
    return say(key, lang, points=points_number(part.points), most=points_number(part.max_points))


def total(report: Report, lang: Lang) -> str:
    """The points of a report; what needs attention never reads like a grade."""
    return out_of(report, lang, "no grade" if report.needs_attention else "of points")


def remark(report: Report, lang: Lang) -> str:
    """The most telling thing about a report, for its row in a class."""
    if report.needs_attention:
        return say("not graded", lang)
    for check in sorted(report.checks, key=lambda check: WORST_FIRST.index(check.verdict)):
        if check.verdict in ("crashed", "out_of_memory", "timeout", "not_implemented"):
            many = sum(other.verdict == check.verdict for other in report.checks)
            return say("verdict of", lang, verdict=verdict(check, lang), n=many, all=len(report.checks))
    first = next(iter(misconceptions(report)), None)
    return "" if first is None else misconception_title(first, lang)


def circumstances(report: Report, lang: Lang) -> str:
    return say(
        "circumstances",
        lang,
        sandbox=one_line(report.sandbox),
        device=one_line(report.device),
        seed=report.seed,
        version=one_line(report.grader_version),
    )


def exercise_title(exercise: ExerciseReport, lang: Lang) -> str:
    """The title, in Chinese where the syllabus has one for it."""
    for entry in EXERCISES.values():
        if lang == "zh" and (entry.id, entry.title) == (exercise.id, exercise.title):
            return entry.title_zh
    return one_line(exercise.title)


def exercise_number(exercise: ExerciseReport) -> str:
    return one_line(exercise.id).removeprefix("ex").lstrip("0")


@dataclass(frozen=True)
class Explanation:
    """What a check that did not pass tells the student.  The last three are empty where nothing is known.

    message: what was called, came back and was expected.
    """

    message: str
    misconception: str = ""
    explanation: str = ""
    hint: str = ""

    def text(self, lang: Lang) -> str:
        """All of it, for formats that take plain text."""
        named = f"{self.misconception}{say('colon', lang)}{self.explanation}" if self.misconception else ""
        hint = f"{say('hint', lang)}{say('colon', lang)}{self.hint}" if self.hint else ""
        return "\n".join(part for part in (self.message, named, hint) if part)


def explained(check: Check, lang: Lang) -> Explanation:
    """The parts of a check's message, and its misconception in the language asked for.

    A message ends with the misconception's title and explanation.  Where it does not (another version of the
    catalogue, a message that was cut), it is left as it is.
    """
    message, hint = plain_text(check.message).strip("\n"), plain_text(check.hint).strip("\n")
    if check.verdict == "grader_error":  # how it failed may quote hidden checks: that stays in the record and the log
        return Explanation(say("fault", lang))
    if check.verdict == "not_implemented":  # that it is not written is all there is to say, whatever it was called with
        return Explanation(message.rpartition("\n")[2], hint=hint)
    entry = _catalogue().get(check.misconception) if check.misconception is not None else None
    if entry is None:
        return Explanation(message, hint=hint)
    ending = plain_text(f"{entry.title}: {entry.explanation}").strip("\n")
    known = message == ending or message.endswith(f"\n{ending}")
    bare = message.removesuffix(ending).rstrip("\n") if known else message
    if lang == "zh":
        return Explanation(bare, entry.title_zh, entry.explanation_zh, entry.hint_zh)
    if known:
        return Explanation(bare, entry.title, entry.explanation, hint)
    return Explanation(message, hint=hint)


def misconception_title(name: str, lang: Lang) -> str:
    """A misconception's title by its id; the id itself where the catalogue has it no more."""
    entry = _catalogue().get(name)
    if entry is None:
        return one_line(name)
    return entry.title_zh if lang == "zh" else entry.title


def one_line(text: str) -> str:
    return " ".join(plain_text(text).split())


def common_folder(paths: Sequence[str]) -> str:
    """What all paths begin with, up to and with a slash."""
    folders = [path.rstrip("/").split("/")[:-1] for path in paths]
    count = 0
    while all(len(folder) > count and folder[count] == folders[0][count] for folder in folders):
        count += 1
    return "".join(f"{name}/" for name in folders[0][:count])


def short_names(reports: Sequence[Report]) -> list[str]:
    """What to call each submission."""
    return shortened([report.submission for report in reports])


def shortened(paths: Sequence[str]) -> list[str]:
    """Each path without what the paths of all begin with."""
    folder = common_folder(paths) if len(paths) > 1 else ""
    return [one_line(path[len(folder) :]) or one_line(path) for path in paths]


@cache
def _catalogue() -> dict[str, Misconception]:
    from autograder.hidden.catalogue import catalogue

    return catalogue()
