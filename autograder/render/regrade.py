"""What a new grading changes, for people at a terminal and as lines of JSON."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from autograder.batch.regrade import Compared, NoGrade, OnlyIn, Side, Turned
from autograder.render.terminal import new_console, one_line, text_of
from autograder.render.words import misconception_title
from autograder.report import Verdict, points_number

#: In the table a submission's most important checks are shown, so many; lines of JSON have all.
CHECKS_SHOWN = 3
#: Names in a list, before it says how many more there are.
NAMES_SHOWN = 20
_SIDES: dict[Side, str] = {"old": "OLD", "new": "NEW"}


@dataclass
class Tally:
    """What is kept of a comparison while results pass by: the rows of the table, not the results."""

    same: int = 0
    up: list[Row] = field(default_factory=list)
    down: list[Row] = field(default_factory=list)
    level: list[Row] = field(default_factory=list)
    only: dict[Side, list[str]] = field(default_factory=lambda: {"old": [], "new": []})
    no_grade: list[NoGrade] = field(default_factory=list)
    checks: dict[tuple[str, str, Verdict | None, Verdict | None], list[int]] = field(
        default_factory=lambda: defaultdict(lambda: [0, 0])
    )
    versions: dict[Side, set[str]] = field(default_factory=lambda: {"old": set(), "new": set()})

    def add(self, found: Compared | OnlyIn | NoGrade) -> None:
        if isinstance(found, OnlyIn):
            self.only[found.side].append(found.submission)
        elif isinstance(found, NoGrade):
            self.no_grade.append(found)
        else:
            self.versions["old"].add(found.versions[0])
            self.versions["new"].add(found.versions[1])
            for turned in found.turned:
                counted = self.checks[f"{turned.exercise}.{turned.function}", turned.title, turned.before, turned.after]
                counted[0] += 1
                counted[1] += turned.points
            if not found.differs:
                self.same += 1
            else:
                (self.up if found.change > 0 else self.down if found.change < 0 else self.level).append(_row(found))

    @property
    def compared(self) -> int:
        return self.same + len(self.up) + len(self.down) + len(self.level)


@dataclass(frozen=True, slots=True)
class Row:
    submission: str
    before: int
    after: int
    max_before: int
    max_after: int
    shown: tuple[Turned, ...]
    more: int

    @property
    def change(self) -> int:
        return self.after - self.before


def json_line(found: Compared | OnlyIn | NoGrade) -> str:
    """One line for a submission of which there is something to say, else "": points as in all our JSON."""
    record: dict[str, Any]
    if isinstance(found, OnlyIn):
        record = {"submission": found.submission, "status": f"only in {found.side}"}
    elif isinstance(found, NoGrade):
        record = {"submission": found.submission, "status": "needs attention", "in": found.side, "why": found.why}
    elif not found.differs:
        return ""
    else:
        record = {
            "submission": found.submission,
            "status": "up" if found.change > 0 else "down" if found.change < 0 else "same points",
            "before": points_number(found.before),
            "after": points_number(found.after),
            "change": points_number(found.change),
            "max_before": points_number(found.max_before),
            "max_after": points_number(found.max_after),
            "checks": [_check(turned) for turned in found.turned],
        }
    return json.dumps(record, allow_nan=False)


def json_summary(tally: Tally) -> str:
    """The last line: how many of each."""
    return json.dumps(
        {
            "compared": tally.compared,
            "up": len(tally.up),
            "down": len(tally.down),
            "same_points_other_verdicts": len(tally.level),
            "unchanged": tally.same,
            "only_in_old": len(tally.only["old"]),
            "only_in_new": len(tally.only["new"]),
            "needs_attention": len(tally.no_grade),
        }
    )


def table_text(tally: Tally, *, colour: bool = False, width: int = 100) -> str:
    """Who goes down, who goes up, by which checks; then the checks over the whole class; then what was not compared."""
    console = new_console(colour, width)
    rows = [*sorted(tally.down, key=lambda row: row.change), *sorted(tally.up, key=lambda row: -row.change)]
    if rows or tally.level:
        console.print(_submissions([*rows, *tally.level]))
        console.print(_checks(tally))
    console.print(_counted(tally), soft_wrap=True)
    for side, names in tally.only.items():
        if names:
            console.print(Text(f"Only in {_SIDES[side]}: {_names(names)}"), soft_wrap=True)
    for found in tally.no_grade:
        what = ": ".join(part for part in (one_line(found.submission), one_line(found.why)[:200]) if part)
        console.print(Text(f"Needs attention in {_SIDES[found.side]}: {what}"), soft_wrap=True)
    if tally.versions["old"] != tally.versions["new"]:
        old, new = (", ".join(sorted(map(one_line, tally.versions[side]))) for side in ("old", "new"))
        console.print(Text(f"Grader: {old} in OLD, {new} in NEW."), soft_wrap=True)
    return text_of(console)


def _counted(tally: Tally) -> Text:
    return Text(
        f"{tally.compared} submissions compared: {len(tally.up)} go up, {len(tally.down)} go down, {len(tally.level)} "
        f"keep their points with other verdicts, {tally.same} are as they were."
    )


def _submissions(rows: Iterable[Row]) -> Table:
    table = Table(box=box.ROUNDED)
    table.add_column("submission", overflow="fold", min_width=10)
    for name in ("before", "after", "change"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("by which check", overflow="fold", min_width=20)
    for row in rows:
        lines = [_described(turned) for turned in row.shown]
        if row.more:
            lines.append(Text(f"… {row.more} more", "dim"))
        table.add_row(
            Text(one_line(row.submission)),
            *_points(row),
            Text(_signed(row.change), "green" if row.change > 0 else "red" if row.change < 0 else ""),
            Text("\n").join(lines),
        )
    return table


def _points(row: Row) -> tuple[Text, Text]:
    if row.max_before == row.max_after:
        return Text(f"{points_number(row.before)}"), Text(f"{points_number(row.after)}")
    return (
        Text(f"{points_number(row.before)} / {points_number(row.max_before)}"),
        Text(f"{points_number(row.after)} / {points_number(row.max_after)}"),
    )


def _described(turned: Turned) -> Text:
    line = Text(f"{turned.exercise}.{turned.function}: {one_line(turned.title)}\n  ")
    before = _explained(turned.before, turned.misconception_before)
    after = _explained(turned.after, turned.misconception_after)
    return line.append(f"{before} → {after}, {_signed(turned.points)}", "bold")


def _explained(verdict: Verdict | None, misconception: str | None) -> str:
    return _verdict(verdict) + ("" if misconception is None else f" ({misconception_title(misconception, 'en')})")


def _checks(tally: Tally) -> Table:
    table = Table(box=box.ROUNDED)
    table.add_column("check, over all submissions", overflow="fold", min_width=20)
    table.add_column("before → after", overflow="fold")
    table.add_column("submissions", justify="right", no_wrap=True)
    table.add_column("points", justify="right", no_wrap=True)
    most_first = sorted(tally.checks.items(), key=lambda item: (-item[1][0], item[0][:2]))
    for (function, title, before, after), (count, points) in most_first[:NAMES_SHOWN]:
        where = Text(f"{one_line(function)}: {one_line(title)}")
        table.add_row(where, f"{_verdict(before)} → {_verdict(after)}", str(count), _signed(points))
    if len(most_first) > NAMES_SHOWN:
        table.add_row(Text(f"… {len(most_first) - NAMES_SHOWN} more", "dim"), "", "", "")
    return table


def _row(found: Compared) -> Row:
    most_first = sorted(found.turned, key=lambda turned: -abs(turned.points))
    return Row(
        found.submission,
        found.before,
        found.after,
        found.max_before,
        found.max_after,
        tuple(most_first[:CHECKS_SHOWN]),
        len(most_first[CHECKS_SHOWN:]),
    )


def _check(turned: Turned) -> dict[str, Any]:
    return {
        "exercise": turned.exercise,
        "function": turned.function,
        "id": turned.check,
        "title": turned.title,
        "before": turned.before,
        "after": turned.after,
        "points": points_number(turned.points),
        "misconception_before": turned.misconception_before,
        "misconception_after": turned.misconception_after,
    }


def _verdict(verdict: Verdict | None) -> str:
    return "not there" if verdict is None else verdict.replace("_", " ")


def _signed(hundredths: int) -> str:
    return f"{'+' if hundredths > 0 else '−' if hundredths < 0 else '±'}{points_number(abs(hundredths))}"


def _names(names: list[str]) -> str:
    shown = ", ".join(one_line(name) for name in names[:NAMES_SHOWN])
    return shown + (f", … ({len(names) - NAMES_SHOWN} more)" if len(names) > NAMES_SHOWN else "")
