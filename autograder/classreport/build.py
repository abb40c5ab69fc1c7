"""The whole report, one submission after the other: read, count, write its page, compare its code."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from autograder.classreport.counting import ClassCount
from autograder.classreport.export import Export
from autograder.classreport.pages import Found, Similar, pages
from autograder.classreport.reading import Results, Submissions, code, stub
from autograder.classreport.similarity import Comparison, Group, longest_shared
from autograder.classreport.site import OwnFolder
from autograder.classreport.timeline import handed_in_at
from autograder.files import file_stems
from autograder.render.html import html
from autograder.render.words import Lang, shortened

#: The longest shared passage is looked for, and shown, in so many groups: the most similar ones.
PASSAGES = 200


@dataclass(frozen=True)
class Written:
    """What was written.  groups: of nearly identical work; None if no code was given.  notes: what was left out."""

    submissions: int
    attention: int
    with_code: int
    groups: int | None
    notes: tuple[str, ...]


def build(results: str, out: str, lang: Lang, submissions: str | None, export: str | None) -> Written:
    """Write the report of a class into the folder `out`, and its code into `export`.

    results: what `autograder batch --out` wrote.  submissions: what batch was given; needed for times and similarity.
    Raises UsageError if something cannot be read, or a folder is not ours to write.
    """
    given = [results, *([submissions] if submissions else [])]
    with ExitStack() as stack:
        found = Results(results)
        site = stack.enter_context(OwnFolder(out, "--out", given))
        code_of = None
        if submissions is not None:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="autograder-report-")))
            code_of = Submissions(submissions, scratch)
        exporting = None
        if export is not None:
            exporting = Export(stack.enter_context(OwnFolder(export, "--similarity-export", given)))
        return _Builder(found, site, lang, code_of, exporting).build()


class _Builder:
    def __init__(
        self, results: Results, site: OwnFolder, lang: Lang, code_of: Submissions | None, export: Export | None
    ) -> None:
        self._results = results
        self._site = site
        self._lang = lang
        self._code_of = code_of
        self._export = export
        self._count = ClassCount(lang)
        self._paths: list[str | None] = []
        self._with_code = 0
        self._comparisons: dict[str, Comparison] = {}

    def build(self) -> Written:
        names = shortened(self._results.names)
        files = file_stems(names)
        for index, (named, report) in enumerate(self._results):
            path = None if self._code_of is None else self._code_of.path(report.submission)
            time = None if path is None else handed_in_at(path)
            self._paths.append(path)
            name = names[named] or files[named]
            self._count.add(report, name, files[named], time)
            page = html([report], self._lang, names=[name], home="../index.html")
            self._site.write(f"submissions/{files[named]}.html", page)
            if path is not None:
                self._take_code(index, code(path, self._count.rows[index].exercises))
        groups = None
        if self._code_of is not None:
            groups = [group for _, comparison in sorted(self._comparisons.items()) for group in comparison.groups()]
            groups.sort(key=lambda group: (-group.pairs[0].similarity, -len(group.members), group.exercise))
        if self._export is not None:
            self._export.finish({exercise: stub(exercise) for exercise in self._comparisons})
        similar = self._similar(groups)
        for page_name, text in pages(self._count, similar, self._results.unreadable, self._lang):
            self._site.write(page_name, text)
        return Written(
            submissions=len(self._count.rows),
            attention=len(self._count.attention),
            with_code=self._with_code,
            groups=None if groups is None else len(groups),
            notes=(*self._results.unreadable, *(self._code_of.notes if self._code_of is not None else ())),
        )

    def _take_code(self, index: int, texts: dict[str, str]) -> None:
        self._with_code += bool(texts)
        for exercise, text in texts.items():
            if exercise not in self._comparisons:
                self._comparisons[exercise] = Comparison(exercise, stub(exercise))
            self._comparisons[exercise].add(index, text)
        if self._export is not None:
            row = self._count.rows[index]
            self._export.add(row.page, row.name, row.time, texts)

    def _similar(self, groups: list[Group] | None) -> Similar | None:
        if groups is None:
            return None
        found = []
        for number, group in enumerate(groups):
            passage = None
            if number < PASSAGES:
                pair = group.pairs[0]
                first, second = (self._code(index, group.exercise) for index in (pair.first, pair.second))
                passage = longest_shared(stub(group.exercise), first, second)
            found.append(Found(group, passage))
        too_little = {name: one.too_little for name, one in sorted(self._comparisons.items()) if one.too_little}
        return Similar(tuple(found), self._with_code, too_little)

    def _code(self, index: int, exercise: str) -> str:
        path = self._paths[index]
        return "" if path is None else code(path, [exercise]).get(exercise, "")
