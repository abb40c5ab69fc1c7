"""A generator of broken submissions: files as they arrive at a deadline, and as nobody would write them."""

from __future__ import annotations

import json
import os
import random
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

SOLUTION = Path(__file__).parents[2] / "solutions" / "ex02_mlm_loss.py"
NAME = "ex02_mlm_loss"


def make(seed: int, folder: Path) -> tuple[str, Path]:
    """Write broken submission number `seed` somewhere beneath an empty folder: its kind, and the path to grade."""
    rng = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    return kind.__name__, kind(rng, folder)


def _write(folder: Path, data: bytes | str, suffix: str = ".py") -> Path:
    path = folder / f"{NAME}{suffix}"
    path.write_bytes(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
    return path


def _solution() -> bytes:
    return SOLUTION.read_bytes()


# -- bytes -------------------------------------------------------------------------------------------------------------
def random_bytes(rng: random.Random, folder: Path) -> Path:
    return _write(folder, rng.randbytes(rng.choice([0, 1, 3, 100, 5000])))


def damaged(rng: random.Random, folder: Path) -> Path:
    text = bytearray(_solution())
    for _ in range(rng.choice([1, 3, 30])):
        where = rng.randrange(len(text))
        action = rng.randrange(4)
        if action == 0:
            text[where] = rng.randrange(256)
        elif action == 1:
            del text[where : where + rng.randrange(1, 60)]
        elif action == 2:
            text[where:where] = rng.randbytes(rng.randrange(1, 9))
        else:
            del text[where:]
        if not text:
            break
    return _write(folder, bytes(text))


def lines_shuffled(rng: random.Random, folder: Path) -> Path:
    lines = _solution().splitlines(keepends=True)
    i, j = sorted(rng.sample(range(len(lines)), 2))
    lines[i:j] = rng.sample(lines[i:j], j - i)
    return _write(folder, b"".join(lines))


def encoded(rng: random.Random, folder: Path) -> Path:
    text = SOLUTION.read_text(encoding="utf-8")
    codec = rng.choice(["utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp037", "utf-7", "gb18030"])
    cookie = rng.choice(
        ["", f"# -*- coding: {codec} -*-\n", "# coding: rot13\n", "# coding: no-such\n", "# coding: zip\n"]
    )
    return _write(folder, (cookie + text + "# é 中\n").encode(codec, "replace"))


def line_ends(rng: random.Random, folder: Path) -> Path:
    end = rng.choice([b"\r\n", b"\r", b"\x0b\n", b"\x0c\n", "\u2028".encode(), b"\n\r", b"\x1a\n"])
    return _write(folder, _solution().replace(b"\n", end))


def null_bytes(rng: random.Random, folder: Path) -> Path:
    text = bytearray(_solution())
    for _ in range(rng.choice([1, 50])):
        text.insert(rng.randrange(len(text)), 0)
    return _write(folder, bytes(text))


# -- syntax ------------------------------------------------------------------------------------------------------------
def other_syntax(rng: random.Random, folder: Path) -> Path:
    return _write(
        folder,
        rng.choice(
            [
                "print 'x'\n",
                "exec 'x' in {}\n",
                "def mean_nll(p):\n\treturn 1\n        x = 2\n",
                "def mean_nll(p) -> return 1\n",
                "match x:\n case\n",
                "async def mean_nll(p): yield from p\n",
                "class mean_nll(\n",
                "x = '''unfinished\n",
                "return 1\n",
                "await 1\n",
                "nonlocal x\n",
                "from __future__ import braces\n",
                "from __future__ import annotations\nimport __future__\nfrom . import x\n",
                "def mean_nll(p, p): pass\n",
                "type X = int\ndef mean_nll[T](p: T) -> T: return p\n",
                "f'{x!}'\n",
                "lambda: (yield)\nbreak\n",
                "ｄｅｆ mean_nll(p): return p\n",
                "def mеan_nll(p): return p  # Cyrillic\n",
                "%matplotlib inline\n!ls\n",
                "<html><body>Not found</body></html>\n",
                '{"cells": []}\n',
                "PK\x03\x04",
                "\\\n",
                "\ufeff\ufeffx = 1\n",
            ]
        ),
    )


def deeply_nested(rng: random.Random, folder: Path) -> Path:
    depth = rng.choice([90, 250, 3000, 100_000])
    opening, closing = rng.choice([("(", ")"), ("[", "]"), ("{1:", "}"), ("-", ""), ("not ", ""), ("lambda:", "")])
    if rng.random() < 0.3:
        text = "".join("    " * i + "if 1:\n" for i in range(min(depth, 400))) + "    " * min(depth, 400) + "pass\n"
        return _write(folder, text)
    return _write(folder, "x = " + opening * depth + "1" + closing * depth + "\n")


def huge_literal(rng: random.Random, folder: Path) -> Path:
    size = rng.choice([5_000, 100_000, 1_000_000])
    return _write(
        folder,
        rng.choice(
            [
                "x = " + "9" * size,
                "x = '" + "a" * size + "'",
                "x = [" + "1," * (size // 2) + "]",
                "x = 1" + "+1" * (size // 2),
                "x = 1\n" * (size // 6),
                "#" * size,
                "x = 0x" + "f" * size,
                "x = f'" + "{1}" * (size // 3) + "'",
            ]
        ),
    )


def fails_at_import(rng: random.Random, folder: Path) -> Path:
    return _write(
        folder,
        rng.choice(
            [
                "import no_such_package\n",
                "1 / 0\n",
                "raise SystemExit('x')\n",
                "raise KeyboardInterrupt\n",
                "def f(): f()\nf()\n",
                "import exercises.no_such\n",
                "open('data.csv')\n",
                "input('?')\n",
                "import sys; sys.exit(0)\n",
                "import sys; del sys.modules['torch']; sys.path.clear()\n",
                "del __builtins__\n",
                "import os; os.environ.clear()\n",
                "__name__ = 3\n__file__ = None\n",
                "from solutions.ex02_mlm_loss import *\n",
                "raise ExceptionGroup('x', [ValueError(1)])\n",
                "import torch; torch.set_default_dtype(torch.float16)\n",
                "import torch; torch.set_default_device('meta')\n",
                "import torch; torch.set_grad_enabled(False)\n",
                "import builtins; builtins.len = None; builtins.print = None\n",
                "mean_nll = stable_log_softmax = mlm_loss = None\n",
                "class mean_nll: pass\n",
            ]
        ),
    )


# -- notebooks ---------------------------------------------------------------------------------------------------------
def _cell(rng: random.Random) -> Any:
    source: Any = rng.choice(
        ["x = 1", ["x = 1\n", "y = 2"], None, 7, {"a": 1}, "%%bash\nrm -rf x", "!ls", "?x", "", ["a", None], "1/0"]
    )
    cell: dict[str, Any] = {"cell_type": rng.choice(["code", "markdown", "raw", "", None, 5]), "source": source}
    if rng.random() < 0.5:
        cell["id"] = rng.choice(["same", "", None, "x" * 5000])
    if rng.random() < 0.5:
        cell["metadata"] = rng.choice([{}, None, [], {"nbgrader": {"schema_version": 99}}])
    if rng.random() < 0.5:
        cell["outputs"] = rng.choice([[], None, [{"output_type": "stream", "text": "x" * 10_000}]])
    return rng.choice([cell, cell, cell, None, [], "cell"])


def notebook(rng: random.Random, folder: Path) -> Path:
    book: dict[str, Any] = {"cells": [_cell(rng) for _ in range(rng.randrange(8))], "metadata": {}}
    book["nbformat"] = rng.choice([1, 2, 3, 4, 4, 4, 5, 99, None, "4", -1])
    book["nbformat_minor"] = rng.choice([0, 2, 5, 99, None])
    if rng.random() < 0.3:
        book["worksheets"] = [{"cells": [{"cell_type": "code", "input": "x = 1", "language": "python"}]}]
    if rng.random() < 0.2:
        del book["cells"]
    return _write(folder, json.dumps(book), ".ipynb")


def broken_json(rng: random.Random, folder: Path) -> Path:
    whole = json.dumps({"cells": [{"cell_type": "code", "source": "x = 1"}], "nbformat": 4, "nbformat_minor": 5})
    return _write(
        folder,
        rng.choice(
            [
                whole[: rng.randrange(len(whole))],
                "[" * 100_000,
                '{"cells":' * 5_000,
                "null",
                "[]",
                "3",
                '"x"',
                "NaN",
                "{}",
                "",
                "\ufeff" + whole,
                whole + whole,
                whole.replace("4", "1e999"),
                whole.replace('"x = 1"', '"\\ud800"'),
                "<<<<<<< HEAD\n" + whole,
                whole.replace("code", "c\\u0000de"),
                '{"cells": ' + "9" * 10_000 + "}",
            ]
        ),
        ".ipynb",
    )


# -- files that are none -----------------------------------------------------------------------------------------------
def folder_for_file(rng: random.Random, folder: Path) -> Path:
    path = folder / f"{NAME}{rng.choice(['.py', '.ipynb'])}"
    path.mkdir()
    if rng.random() < 0.5:
        (path / "x.py").write_text("x = 1")
    return folder


def link(rng: random.Random, folder: Path) -> Path:
    path = folder / f"{NAME}.py"
    path.symlink_to(
        rng.choice(["/etc/passwd", str(SOLUTION), "nowhere", str(path), "/dev/zero", "/proc/self/mem", "/"])
    )
    return rng.choice([path, folder])


def special_file(rng: random.Random, folder: Path) -> Path:
    path = folder / f"{NAME}.py"
    if rng.random() < 0.5:
        os.mkfifo(path)
    else:
        with socket.socket(socket.AF_UNIX) as server:
            here = os.getcwd()
            os.chdir(folder)  # the path of a socket must be short
            try:
                server.bind(path.name)
            finally:
                os.chdir(here)
    return rng.choice([path, folder])


def archive(rng: random.Random, folder: Path) -> Path:
    path = folder / f"{NAME}.py"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("../../evil.py", "x = 1")
        file.writestr("__main__.py", "x = 1")
    return path


def strange_name(rng: random.Random, folder: Path) -> Path:
    name = rng.choice(
        [
            "ex02 " + "x" * 200 + ".py",
            "ex02\n.py",
            "ex02\x1b[2J.py",
            "ex02\u202eyp.py",
            "EX02.PY",
            "ex02.py.py",
            "ex 02 (1) copy.py",
            "éx02 ex02 作业.py",
            "ex02_$(touch x);.py",
            "::error::ex02.py",
            "<b>ex02<b>.py",
            "-e ex02.py",
        ]
    )
    (folder / name).write_bytes(_solution()[: rng.choice([0, 50, 500])])
    return rng.choice([folder, folder / name])


def undecodable_name(rng: random.Random, folder: Path) -> Path:
    raw = os.fsencode(folder) + b"/ex02_\xff\xfe.py"
    with open(raw, "wb") as file:
        file.write(_solution()[:100])
    return rng.choice([folder, Path(os.fsdecode(raw))])


def empty_folder(rng: random.Random, folder: Path) -> Path:
    for name in rng.sample(["readme.md", "data.csv", ".DS_Store", "__pycache__", "ex03_x.py", "sub"], rng.randrange(4)):
        if "." in name.strip("."):
            (folder / name).write_text("x = 1")
        else:
            (folder / name).mkdir()
    return folder


def unreadable(rng: random.Random, folder: Path) -> Path:
    path = _write(folder, _solution())
    path.chmod(0)
    return rng.choice([path, folder])


def too_large(rng: random.Random, folder: Path) -> Path:
    path = folder / f"{NAME}{rng.choice(['.py', '.ipynb'])}"
    with open(path, "wb") as file:
        file.truncate(rng.choice([3, 64]) * 2**20)
    return path


def several(rng: random.Random, folder: Path) -> Path:
    for name in rng.sample([f"{NAME}.py", f"{NAME}.ipynb", "ex02.py", f"{NAME} (1).py", "EX2.ipynb"], 3):
        (folder / name).write_bytes(rng.choice([b"", b"x = 1", b"{}", _solution()[:300]]))
    return folder


KINDS: tuple[Callable[[random.Random, Path], Path], ...] = (
    random_bytes,
    damaged,
    lines_shuffled,
    encoded,
    line_ends,
    null_bytes,
    other_syntax,
    deeply_nested,
    huge_literal,
    fails_at_import,
    notebook,
    broken_json,
    damaged,
    notebook,
    folder_for_file,
    link,
    special_file,
    archive,
    strange_name,
    undecodable_name,
    empty_folder,
    unreadable,
    too_large,
    several,
)
