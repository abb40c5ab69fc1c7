"""What the notebooks say around the exercises, in English and Chinese."""

from __future__ import annotations

from typing import Literal

from autograder.build.stub import rules
from autograder.syllabus import Exercise, Family

Lang = Literal["en", "zh"]
LANGS: tuple[Lang, ...] = ("en", "zh")

_RULES_ZH = """\
- 输入属于调用者：不得修改。可以直接返回某个输入或它的视图。
- 结果与输入位于同一设备：新建张量时请写明 `device=`。
- 任何函数都不得使用全局随机数生成器（torch、numpy、random）。
- 每个练习单独评分：可以导入 {libraries}、标准库和 `exercises.kit`，但不能导入其他练习。
- “Raises” 中列出的非法输入，须由你自己的 `raise` 语句抛出 ValueError。错误信息可用任何语言，\
但至少要写出一个有问题的参数名；如果问题在于某个\
 id 或数值，还要写出它的值。由库替你抛出的错误不算。没有列出的非法输入不计分。
- 除非文档字符串另有说明，浮点类型保持不变；NumPy 结果的类型由 `np.result_type` 决定。
- 除非文档字符串另有说明，id 和标签为 int64，掩码为布尔型或取值 0/1 的整数。张量和数组的步长与内存顺序不限。\
不会出现空批次。
- 结果的容差为 tol · max(1, |期望值|)：除非文档字符串另有说明，float64 的 tol 为 1e-6，float32 为 1e-5，\
float16 为 2e-3，bfloat16 为 1e-2。
- 除非文档字符串另有说明，返回的张量对浮点输入可微，且梯度正确。"""

_LIBRARIES_ZH: dict[Family, str] = {
    "torch": "NumPy、PyTorch",
    "transformers": "NumPy、PyTorch、transformers、scikit-learn、SciPy",
}

_GUIDE: dict[Lang, str] = {
    "en": """\
## How to work with this notebook

Replace every `raise NotImplementedError(…)` by your code. Below each function stand two cells that you cannot change:
the first runs a few checks that you can read, the second holds the place of the grade. Grading runs many more checks.
You may add cells, functions and imports of your own. Keep the names and parameters of the functions given, and the
name of the file. The terminal command `autograder check {number} THIS_FILE.ipynb` runs the same few checks.

**What holds in every exercise**

{rules}""",
    "zh": """\
## 如何使用本 Notebook

把每一处 `raise NotImplementedError(…)` 换成你的代码。每个函数下面有两个不能修改的单元格：\
第一个运行几项你可以阅读的检查，第二个是记录分数的位置。\
正式评分时会运行更多检查。你可以增加自己的单元格、函数和导入语句；请保留已给函数的名称和参数，也不要更改文件名。\
在终端运行 \
`autograder check {number} 本文件.ipynb` 会执行同样的几项检查。

**所有练习都适用的规则**

{rules}""",
}
_GUIDE_TESTS: dict[Lang, str] = {
    "en": """\
## How to work with this notebook

Replace every `raise NotImplementedError(…)` by a test. You may rename, split and add tests, and add cells, fixtures,
functions and imports of your own: NumPy, PyTorch, pytest, Hypothesis, the standard library and `exercises.kit`. Keep
the name of the file. The cells that you cannot change hold the places of the grades. The tests need implementations to
run on, so this notebook has no checks of its own: the terminal command `autograder check {number} THIS_FILE.ipynb` runs
your tests on a right loss and a wrong one, among others.""",
    "zh": """\
## 如何使用本 Notebook

把每一处 `raise NotImplementedError(…)` 换成一个测试。你可以重命名、拆分和增加测试，也可以增加自己的单元格、fixture、\
函数和导入语句：NumPy、PyTorch、pytest、Hypothesis、标准库和 `exercises.kit`。请不要更改文件名。\
不能修改的单元格是记录分数的位置。\
测试需要在某个实现上运行，因此本 Notebook 不含检查单元格：在终端运行 \
`autograder check {number} 本文件.ipynb` 会在正确和错误的实现上运行你的测试。""",
}

_SETUP = """\
# {comment}
def find_exercises():
    import importlib.util
    import sys
    from pathlib import Path

    for folder in (Path.cwd(), *Path.cwd().parents):
        if importlib.util.find_spec("exercises") is None and (folder / "exercises" / "kit").is_dir():
            sys.path.insert(0, str(folder))
    if importlib.util.find_spec("exercises") is None:
        print("{missing}")
        print("{advice}")


find_exercises()"""
_SETUP_TEXT: dict[Lang, dict[str, str]] = {
    "en": {
        "comment": "Setup: finds the folder exercises/, in the folder of this notebook or one above it.",
        "missing": "The folder exercises/ of the course was not found, so cells that import exercises.kit will fail.",
        "advice": "Move this notebook into the folder of the course, or install the course: pip install -e FOLDER",
    },
    "zh": {
        "comment": "准备：在本 Notebook 所在的文件夹及其上级文件夹中寻找课程的 exercises/ 文件夹。",
        "missing": "没有找到课程的 exercises/ 文件夹，导入 exercises.kit 的单元格将无法运行。",
        "advice": "请把本 Notebook 放进课程文件夹，或安装课程：pip install -e 文件夹",
    },
}

_GRADE: dict[Lang, str] = {
    "en": 'print("Exercise {number}, {name}: {points} points, graded after you hand in, by checks not shown here.")',
    "zh": 'print("练习 {number}，{name}：{points} 分，提交后由此处未显示的检查评分。")',
}

_YOUR_ANSWER: dict[Lang, str] = {"en": "**Your answer**", "zh": "**你的回答**"}
_MODEL_ANSWER: dict[Lang, str] = {"en": "**Model answer**", "zh": "**参考答案**"}
_MARKING: dict[Lang, dict[bool, str]] = {
    "en": {
        True: "**Marking** ({points} points). Each of the {parts} questions is worth {each}: half of it for a right "
        "claim, half for the reason that makes it hold. An answer that is right in other words, or by another "
        "argument, counts in full. Restating the question counts nothing.",
        False: "**Marking** ({points} points). Half for a right claim, half for the reason that makes it hold. An "
        "answer that is right in other words, or by another argument, counts in full. Restating the question counts "
        "nothing.",
    },
    "zh": {
        True: "**评分标准**（{points} 分）。共 {parts} 个问题，每题 {each} 分：结论正确得一半，理由成立得另一半。"
        "表述不同或论证不同但正确的，给满分；只重复题目的不给分。",
        False: "**评分标准**（{points} 分）。结论正确得一半，理由成立得另一半。"
        "表述不同或论证不同但正确的，给满分；只重复题目的不给分。",
    },
}


def guide(lang: Lang, exercise: Exercise) -> str:
    """How to work with the notebook, and the rules."""
    if exercise.tests:
        return _GUIDE_TESTS[lang].format(number=exercise.number)
    told = rules(exercise) if lang == "en" else _RULES_ZH.format(libraries=_LIBRARIES_ZH[exercise.family])
    return _GUIDE[lang].format(number=exercise.number, rules=told)


def setup(lang: Lang) -> str:
    """The cell that makes `exercises` importable."""
    return _SETUP.format(**_SETUP_TEXT[lang])


def grade_line(lang: Lang, number: int, name: str, points: int | float) -> str:
    """The one line of a grade cell."""
    return _GRADE[lang].format(number=number, name=name, points=points)


def your_answer(lang: Lang) -> str:
    """What stands above the place for a written answer."""
    return _YOUR_ANSWER[lang]


def model_answer(lang: Lang, answer: str, points: int | float, parts: int) -> str:
    """The model answer and the marking scheme, for graders only.  parts: the number of questions."""
    marking = _MARKING[lang][parts > 1].format(points=points, parts=parts, each=round(points / max(parts, 1), 2))
    return f"{_MODEL_ANSWER[lang]}\n\n{answer}\n\n{marking}"
