"""Everything that the report of a class says of itself, in English and Chinese."""

from __future__ import annotations

from autograder.render.words import LANGUAGES, Lang

WORDS: dict[str, tuple[str, str]] = {
    "title": ("Class report", "班级报告"),
    "overview": ("Overview", "概览"),
    "all submissions": ("Submissions", "提交"),
    "all misconceptions": ("Misconceptions", "误解"),
    "all checks": ("Checks", "检查项"),
    "similar": ("Near-identical work", "近似提交"),
    "pages": ("Pages of this report", "报告页面"),
    "skip": ("Skip to the content", "跳到正文"),
    "made": (
        "Made with `autograder report`. These pages load nothing and send nothing.",
        "由 `autograder report` 生成。页面不加载也不发送任何内容。",
    ),
    "for instructors": (
        "For the instructor, not for students: hidden checks and the conduct of others are named here.",
        "仅供教师使用，请勿发给学生：其中提到隐藏检查和他人的行为记录。",
    ),
    # what is counted
    "submissions": ("Submissions", "提交"),
    "mean": ("Mean score", "平均分"),
    "median": ("Median score", "中位数"),
    "full": ("Full marks", "满分"),
    "attention": ("Needs attention", "需要处理"),
    "timeout": ("Timeouts", "超时"),
    "crashed": ("Crashes", "崩溃"),
    "out_of_memory": ("Out of memory", "内存不足"),
    "of points": ("of {most} points", "满分 {most} 分"),
    "colon": (": ", "："),
    "comma": (", ", "，"),
    "unreadable": ("{n} result files cannot be read, and are left out", "{n} 个结果文件无法读取，未计入"),
    # distribution
    "distribution": ("Scores", "分数分布"),
    "distribution note": (
        "Each bar counts submissions by their share of the points, in steps of ten per cent; the last is full marks. "
        "What still needs attention is no grade, and is left out.",
        "每根柱表示得分率（以 10% 为一档）落在该档的提交数，最后一根为满分。尚需处理的结果不是成绩，不计入。",
    ),
    "uneven": (
        "{n} submissions hold fewer exercises than others: their total is a share of what they hold.",
        "{n} 份提交包含的练习比其他的少：其总分按所含练习计算。",
    ),
    "total": ("Total", "总分"),
    "exercise": ("Exercise {number}", "练习 {number}"),
    "figures": (
        "{n} graded · mean {mean} · median {median} · of {most} points · {full} with full marks",
        "已评分 {n} 份 · 平均 {mean} · 中位数 {median} · 满分 {most} · {full} 份满分",
    ),
    "chart title": ("{what}: distribution of scores", "{what}：分数分布"),
    "numbers": ("The numbers", "具体数字"),
    "share of points": ("Share of the points", "得分率"),
    "how many": ("Submissions", "提交数"),
    "bar": ("{low} to {high} %", "{low}%–{high}%"),
    "last bar": ("full marks", "满分"),
    "no grades": ("There is no grade yet.", "尚无成绩。"),
    # hardest
    "hardest checks": ("Hardest checks", "最难的检查项"),
    "hardest functions": ("Hardest functions", "最难的函数"),
    "check": ("Check", "检查项"),
    "function": ("Function", "函数"),
    "passed": ("Passed", "通过"),
    "passed of": ("{passed} of {ran}", "{passed} / {ran}"),
    "unwritten": ("Not written", "未实现"),
    "average": ("Average score", "平均得分率"),
    "checks note": (
        "Counted over the submissions in which the function is written and the check ran.",
        "只统计已实现该函数且检查实际运行过的提交。",
    ),
    "functions note": ("Functions that are not written count as no points.", "未实现的函数按零分计。"),
    "more": ("All {n}", "全部 {n} 项"),
    # misconceptions
    "misconceptions": ("Misconceptions", "常见误解"),
    "misconception": ("Misconception", "误解"),
    "no misconceptions": ("No failed check points at a known misconception.", "没有未通过的检查指向已知误解。"),
    "misconceptions note": (
        "How many submissions show each. A failed check names the misconception that most likely explains it.",
        "每种误解出现在多少份提交中。未通过的检查会指出最可能的误解。",
    ),
    "shown by": ("{n} of {all} submissions", "{all} 份提交中的 {n} 份"),
    "who": ("Which submissions", "涉及的提交"),
    "where": ("Where", "位置"),
    "hint": ("Hint", "提示"),
    # time
    "time": ("By time", "按时间"),
    "time note": (
        "When the files were last changed, or what nbgrader noted, in the time zone {zone}. {known} of {all} "
        "submissions have a time.",
        "时间取文件的最后修改时间或 nbgrader 的记录，时区 {zone}。{all} 份提交中有 {known} 份带时间。",
    ),
    "time table note": (
        "How many submissions of each period show a misconception; the darker, the larger their share of the period.",
        "每个时间段内出现该误解的提交数；颜色越深，占该时间段的比例越大。",
    ),
    "no times": (
        "All files have the same time: copying or unpacking loses it. Copy with `cp -p`, or give the archive itself.",
        "所有文件的时间相同：复制或解压会丢失时间。请用 `cp -p` 复制，或直接给出压缩包。",
    ),
    "period": ("From", "起始时间"),
    "handed in": ("Handed in", "提交时间"),
    "handed in then": ("Handed in", "提交数"),
    "average score": ("Average share of points, %", "平均得分率（%）"),
    # trouble
    "trouble": ("Timeouts, crashes, out of memory", "超时、崩溃、内存不足"),
    "checks": ("{n} checks", "{n} 项检查"),
    "and more pairs": ("and {n} more pairs", "另有 {n} 对"),
    "and more": ("and {n} more", "另有 {n} 份"),
    "attention note": (
        "The grader itself failed here, so there is no grade yet. Run the batch again; if it stays, grade by hand.",
        "评分程序在此处出错，因此尚无成绩。请重新运行评分；如仍出错，请人工评分。",
    ),
    "none": ("None.", "无。"),
    "conduct": ("Conduct notes", "行为记录"),
    "conduct note": (
        "Things that code tried and that no exercise needs. They changed no points, and are no proof of anything.",
        "代码尝试过而练习并不需要的行为。它们不影响分数，也不能证明任何事情。",
    ),
    "note": ("Note", "备注"),
    "circumstances": ("How this was graded", "评分环境"),
    "several circumstances": (
        "Not all were graded in the same way: their points may not compare.",
        "并非所有提交都在相同条件下评分：分数可能无法比较。",
    ),
    # table of submissions
    "submission": ("Submission", "提交"),
    "remark": ("Remark", "说明"),
    "not a grade": ("no grade yet", "尚无成绩"),
    "filter": ("Show only submissions with", "筛选"),
    "shown rows": ("{n} of {all} shown", "显示 {n} / {all}"),
    "sort note": ("Press a heading to sort.", "点击表头可排序。"),
    # similarity
    "signal": ("A signal, not a verdict.", "这是线索，不是结论。"),
    "signal note": (
        "Short tasks have few good answers, so work that looks alike may be independent. Read both before you ask "
        "anybody.",
        "题目较短时好的写法不多，相像的代码可能各自独立完成。请先阅读双方代码，再找任何人询问。",
    ),
    "similar how": (
        "Compared are runs of {length} tokens, without names, comments, layout and docstrings, exercise by exercise. "
        "What the stub gives does not count, nor what more than {many} submissions share; rare passages count more. "
        "From {near} % on, submissions are shown.",
        "逐个练习比较连续 {length} 个词法单元，不计名称、注释、排版和文档字符串。存根给出的内容不计，"
        "超过 {many} 份提交共有的片段也不计；越少见的片段权重越大。相似度达到 {near}% 才列出。",
    ),
    "similar too little": (
        "Too little code of one's own to compare: {list}.",
        "自己编写的代码太少而无法比较：{list}。",
    ),
    "no code": (
        "The results do not hold the code. Give it to the command, as you gave it to `autograder batch`:",
        "结果中不含代码。请像运行 `autograder batch` 时那样把提交交给命令：",
    ),
    "code of": ("The code of {n} of {all} submissions was found.", "找到了 {all} 份提交中 {n} 份的代码。"),
    "no similar": ("No two submissions are that similar.", "没有达到该相似度的提交。"),
    "similar summary": (
        "{groups} groups with {members} submissions are nearly the same in an exercise.",
        "有 {groups} 组共 {members} 份提交在某个练习中几乎相同。",
    ),
    "group": ("{exercise} · {n} submissions", "{exercise} · {n} 份提交"),
    "same": ("the same but for names, comments and layout", "除名称、注释和排版外相同"),
    "similarity": ("Similarity", "相似度"),
    "pair": ("Two submissions", "两份提交"),
    "several": ("Near in more than one exercise", "在多个练习中近似"),
    "exercises": ("Exercises", "练习"),
    "passage": ("The longest passage they share", "最长的相同片段"),
    "lines": ("lines {first} to {last}", "第 {first}–{last} 行"),
    "other tools": (
        "`--similarity-export DIR` writes the code for JPlag and Dolos, which compare more closely.",
        "`--similarity-export DIR` 会导出代码，供 JPlag 和 Dolos 做更细致的比较。",
    ),
}


def say(key: str, lang: Lang, **values: object) -> str:
    """An entry of the table, filled in."""
    return WORDS[key][LANGUAGES.index(lang)].format(**values)
