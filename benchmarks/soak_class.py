"""The class of the soak: right, unwritten, wrong, hostile and broken submissions, from one seed."""

from __future__ import annotations

import ast
import os
import random
import re
from collections import Counter
from pathlib import Path

from autograder.authors import banks
from autograder.syllabus import EXERCISES
from tests.attacks import junk
from tests.attacks.corpus import ATTACKS

ROOT = Path(__file__).resolve().parents[1]
#: Shares of the class.  A copy is another's work, byte for byte.
SHARES = {"right": 14, "unwritten": 8, "honest": 6, "wrong": 36, "hostile": 12, "broken": 16, "copy": 8}
#: Exercises that train models take longer: so many of a hundred right, honest and wrong submissions are of them.
TRAINING_SHARE = 6
#: Hostile submissions that use up all their time, a minute of computing each: one in so many submissions.
SLOW = ("loops", "endless_reply", "hostile_str")
SLOW_EVERY = 250
#: What draws from the clock or from the system is not the same twice either.
_BY_CHANCE = re.compile(r"\.seed\(\)|time_ns|urandom")
#: In `make attacks`, not here: how far these get before time or the host's memory is up is not the same twice.
LEFT_OUT = (
    "long",
    "huge_text",
    "memory",
    "shared_memory",
    "deep",
    "always_equal",
    "output",
    "disk",
    "limits_of_others",
)


def make_class(folder: Path, size: int, seed: int, exercises: list[int]) -> Counter[str]:
    """Write `size` submissions, a folder each; how many there are of each kind."""
    makers = _Makers(random.Random(seed), exercises)
    kinds: Counter[str] = Counter()
    copied: list[tuple[str, bytes]] = []
    for number in range(size):
        place = folder / f"s{number:05d}"
        place.mkdir(parents=True)
        kind = makers.random.choices(list(SHARES), list(SHARES.values()))[0]
        if kind == "copy" and copied:
            name, data = makers.random.choice(copied)
            (place / name).write_bytes(data)
        elif kind == "broken":
            makers.broken(place, number)
        else:
            name, text = makers.work(kind if kind != "copy" else "wrong", number)
            data = text.encode("utf-8")
            (place / name).write_bytes(data)
            copied.append((name, data))
        kinds[kind] += 1
    return kinds


class _Makers:
    def __init__(self, rng: random.Random, exercises: list[int]) -> None:
        self.random = rng
        training = [number for number in exercises if EXERCISES[number].family != "torch"]
        self._quick = [number for number in exercises if number not in training] or training
        self._training = training or self._quick
        self._wrong = {
            number: [one for one in banks.impostors({number}) if not _BY_CHANCE.search(one.path.read_text("utf-8"))]
            for number in exercises
        }
        self._honest = {number: banks.honest({number}) for number in exercises}
        self._attacks = [attack for attack in ATTACKS if attack.name not in (*SLOW, *LEFT_OUT)]
        self._slow = [attack for attack in ATTACKS if attack.name in SLOW]

    def work(self, kind: str, number: int) -> tuple[str, str]:
        """A submission in one file: its name, and the text."""
        if kind == "hostile" or number % SLOW_EVERY == SLOW_EVERY - 1:
            attack = self.random.choice(self._slow if number % SLOW_EVERY == SLOW_EVERY - 1 else self._attacks)
            return f"{EXERCISES[2].module}.py", f"{attack.code}\n# {number}\n"
        chosen = self._training if self.random.random() * 100 < TRAINING_SHARE else self._quick
        exercise = EXERCISES[self.random.choice(chosen)]
        name = f"{exercise.module}.py"
        path = {
            "right": lambda: ROOT / "solutions" / name,
            "unwritten": lambda: ROOT / "exercises" / name,
            "honest": lambda: self.random.choice(self._honest[exercise.number]).path,
            "wrong": lambda: self.random.choice(self._wrong[exercise.number]).path,
        }[kind]()
        return name, self._made_distinct(path.read_text(encoding="utf-8"), number)

    def broken(self, folder: Path, number: int) -> None:
        seed = self.random.randrange(10**6)
        while junk.KINDS[seed % len(junk.KINDS)] is junk.unreadable and os.getuid() != 0:
            seed += 1  # what the grader may not read has no grade, however often it is tried
        junk.make(seed, folder)

    def _made_distinct(self, text: str, number: int) -> str:
        """The same code, as another might have written it."""
        way = self.random.choice(["comment above", "comment below", "variables", "lines"])
        if way == "comment above":
            return f"# {number}\n{text}"
        if way == "lines":
            return f"{text}\n{chr(10) * (number % 7)}# {number}\n"
        if way == "variables":
            text = renamed(text, f"_{number}")
        return f"{text}\n# {number}\n"


def renamed(text: str, ending: str) -> str:
    """The code with every local variable of its functions renamed, where that is sure to change nothing."""
    tree = ast.parse(text)
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
        names = _renamable(function)
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id in names:
                node.id += ending
    return ast.unparse(tree) + "\n"


def _renamable(function: ast.FunctionDef) -> set[str]:
    """Names that the function assigns to, and that nothing in it binds in another way."""
    stored: set[str] = set()
    bound: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored.add(node.id)
        elif isinstance(node, ast.Name) and node.id in ("locals", "vars", "eval", "exec", "globals"):
            return set()
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            bound.update(node.names)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            bound.add(node.name or "")
        elif isinstance(node, ast.MatchMapping):
            bound.add(node.rest or "")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
    classes = any(isinstance(node, ast.ClassDef) for node in ast.walk(function))
    return set() if classes else stored - bound  # in a class, what looks like a variable is an attribute
