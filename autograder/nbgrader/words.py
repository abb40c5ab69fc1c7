"""What the notebooks' feedback says of itself, in English and Chinese."""

from __future__ import annotations

from autograder.render.words import LANGUAGES, Lang

WORDS: dict[str, tuple[str, str]] = {
    "score": ("Score", "得分"),
    "late penalty": ("Penalty for handing in late", "迟交扣分"),
    "function": ("Function", "函数"),
    "written": ("Written answer", "书面回答"),
    "your code": ("Your code", "你的代码"),
    "your answer": ("Your answer", "你的回答"),
    "comment": ("Comment", "评语"),
    "to top": ("to the top", "返回顶部"),
    "not graded yet": ("not graded by a person yet", "尚待人工评分"),
    "no response": ("No response.", "未作答。"),
    "scheme": ("Model answer and marking scheme", "参考答案与评分标准"),
    "changes": ("What was put right in your notebook before grading", "评分前对你的 Notebook 所做的修复"),
    "timeout": (
        "This cell, or one before it that still ran, did not end in time: neither it nor what follows has output here.",
        "本单元格未能在规定时间内结束：它和之后的单元格在此没有输出。",
    ),
    "crashed": (
        "This cell ended the process: neither it nor what follows has output here.",
        "本单元格使进程终止：它和之后的单元格在此没有输出。",
    ),
    "missing": (
        "The cell {id}, which cannot be changed, was missing. It was put back.",
        "缺少不可修改的单元格 {id}，已恢复。",
    ),
    "missing solution": (
        "The cell {id} was missing. Its function is graded if another cell defines it.",
        "缺少单元格 {id}。如果其他单元格定义了该函数，仍会评分。",
    ),
    "missing written": (
        "The cell {id} for your written answer was missing. It was put back; a person will look at it.",
        "缺少书面回答的单元格 {id}，已恢复，将由人工查看。",
    ),
    "put back": (
        "(This cell was missing from the notebook handed in, and was put back.)",
        "（提交的 Notebook 缺少本单元格，已恢复。）",
    ),
    "duplicate": (
        "The cell {id} was there more than once. One of them was kept in its place; what differs is run as your own.",
        "单元格 {id} 出现多次。保留其中一个，内容不同的按你自己的单元格运行。",
    ),
    "retyped": (
        "The cell {id} had another type ({type}). It was changed back.",
        "单元格 {id} 的类型被改为 {type}，已改回。",
    ),
    "changed": (
        "The cell {id} cannot be changed, but was. It was restored; your text is run as a cell of your own.",
        "不可修改的单元格 {id} 被改动，已还原；你的内容按你自己的单元格运行。",
    ),
    "moved": (
        "Cells that cannot be changed were moved. They were put back in place: {id}.",
        "不可修改的单元格被移动，已放回原位：{id}。",
    ),
    "renamed": ("The file was taken from {name}.", "文件取自 {name}。"),
}


def say(key: str, lang: Lang, **values: object) -> str:
    """An entry of the table, filled in."""
    return WORDS[key][LANGUAGES.index(lang)].format(**values)
