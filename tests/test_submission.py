"""Finding what was handed in: which file is which exercise, and nothing that a file can be breaks the grader."""

import codecs
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder import submission
from autograder.notebook import code_cells, plain_python
from autograder.submission import (
    HANDED_OUT_LIMIT,
    NOTEBOOK_LIMIT,
    SIZE_LIMIT,
    STUBS,
    UsageError,
    _untouched,
    exercise_number,
    find,
    look,
)
from autograder.syllabus import EXERCISES


def notebook(*sources, **extra):
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": source} for source in sources]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **extra})


def only(path, wanted=None):
    """The single exercise found at a path, and the notes."""
    founds, notes = look(str(path), wanted)
    (found,) = founds
    return found, notes


def text_of(found):
    assert found.refused is None, found.refused
    return "\n".join(cell.text for cell in found.code)


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("ex02_mlm_loss.py", 2),
        ("ex2.py", 2),
        ("EX 02.PY", 2),
        ("ex-02.ipynb", 2),
        ("ex_2.py", 2),
        ("Ex.02 final.py", 2),
        ("ex02_mlm_loss (1).py", 2),
        ("Copy of ex02_mlm_loss.ipynb", 2),
        ("Exercise 2.ipynb", 2),
        ("my-name_ex2.py", 2),
        ("ＥＸ０２.py", 2),
        ("ex02_ex02.py", 2),
        ("ex10_length.py", 10),
        ("ex02_answer_10.py", 2),
        ("mlm_loss.py", None),
        ("ex1_and_ex2.py", None),
        ("ex2024.py", None),
        ("index2.py", None),
        ("vertex_3.py", None),
        ("example 2.py", None),
        ("", None),
    ],
)
def test_the_number_is_read_from_the_name(name, number):
    assert exercise_number(name) == number


def test_a_module_is_found_by_its_name(tmp_path):
    (tmp_path / "ex02_mlm_loss.py").write_text("x = 1\n")
    submission = find(str(tmp_path / "ex02_mlm_loss.py"), None)
    assert submission.name == str(tmp_path / "ex02_mlm_loss.py")
    (work,) = submission.works
    assert work.exercise is EXERCISES[2]
    assert [(part.name, part.text, part.may_fail) for part in work.parts] == [("ex02_mlm_loss.py", "x = 1\n", False)]
    assert submission.notes == ()


def test_the_path_is_kept_as_it_was_given(tmp_path, monkeypatch):
    (tmp_path / "ex1.py").touch()
    monkeypatch.chdir(tmp_path)
    assert find("./../" + tmp_path.name + "//ex1.py", None).name == "./../" + tmp_path.name + "//ex1.py"


def test_any_name_is_taken_as_the_one_exercise_asked_for(tmp_path):
    (tmp_path / "answer.py").write_text("x = 1\n")
    found, notes = only(tmp_path / "answer.py", {3})
    assert (found.number, text_of(found)) == (3, "x = 1\n")
    assert notes == ["answer.py is taken as exercise 3"]


@pytest.mark.parametrize("wanted", [None, {1, 2}])
def test_a_name_that_tells_nothing_is_a_usage_error(tmp_path, wanted):
    (tmp_path / "answer.py").touch()
    with pytest.raises(UsageError, match=r"answer\.py: the name does not tell .* exactly one -e N"):
        look(str(tmp_path / "answer.py"), wanted)


def test_a_file_of_another_exercise_counts_as_nothing_handed_in(tmp_path):
    (tmp_path / "ex02.py").touch()
    found, _ = only(tmp_path / "ex02.py", {3})
    assert found.verdict == "not_implemented"
    assert "ex02.py is exercise 2 by its name" in found.refused


@pytest.mark.parametrize("name", ["missing.py", "missing/ex01.py", "nul\0byte"])
def test_a_path_without_anything_is_a_usage_error(tmp_path, name):
    with pytest.raises(UsageError, match="there is no such file or folder"):
        look(str(tmp_path / name), {1})


def test_an_exercise_that_does_not_exist_is_a_usage_error(tmp_path):
    (tmp_path / "ex77.py").touch()
    for path, wanted in ((tmp_path / "ex77.py", None), (tmp_path, {77})):
        with pytest.raises(UsageError, match="there is no exercise 77: there are 1, 2"):
            look(str(path), wanted)


# -- folders -----------------------------------------------------------------------------------------------------------


def test_a_folder_gives_what_it_has(tmp_path):
    for name in ("EX 2.py", "ex05.ipynb", "test_ex01.py", "notes.txt", "scratch.py", "ex03.docx"):
        (tmp_path / name).write_text(notebook("x = 1") if name.endswith("ipynb") else "")
    founds, notes = look(str(tmp_path), None)
    assert [found.number for found in founds] == [2, 5]
    assert notes == [
        "exercise 2 is taken from EX 2.py",
        "exercise 5 is taken from ex05.ipynb",
        "ignored, because the name does not tell an exercise or the type is another: ex03.docx, scratch.py, "
        "test_ex01.py",
    ]


def test_what_is_wanted_and_missing_is_not_implemented(tmp_path):
    (tmp_path / "ex02.py").touch()
    founds, _ = look(str(tmp_path), {1, 2})
    assert [found.number for found in founds] == [1, 2]
    assert founds[0].verdict == "not_implemented"
    assert founds[0].refused.startswith("Nothing was handed in for exercise 1 (ex01_input_embeddings.py or ")
    assert founds[1].refused is None


def test_a_folder_without_exercises_is_a_usage_error_unless_some_are_asked_for(tmp_path):
    (tmp_path / "readme.md").touch()
    with pytest.raises(UsageError, match="no exercise found in this folder"):
        look(str(tmp_path), None)
    assert [found.verdict for found in look(str(tmp_path), {1, 4})[0]] == ["not_implemented"] * 2


def test_of_several_files_the_exact_name_is_taken_then_a_module_then_by_name(tmp_path):
    names = ["ex02_mlm_loss.py", "ex02_mlm_loss.ipynb", "ex02.py", "ex2 (1).py", "a ex02.py", "ex2.ipynb"]
    for name in names:
        (tmp_path / name).write_text(notebook("") if name.endswith("ipynb") else "")
    for name in names:
        _, notes = only(tmp_path)
        assert notes[0].startswith(f"exercise 2 is taken from {name}"), notes
        assert all(other in notes[0] for other in names[names.index(name) :])
        (tmp_path / name).unlink()


def test_files_of_exercises_that_nobody_asked_for_are_not_mentioned(tmp_path):
    for name in ("ex01_input_embeddings.py", "ex02_mlm_loss.py"):
        (tmp_path / name).touch()
    assert look(str(tmp_path), {2})[1] == []


# -- odd files ---------------------------------------------------------------------------------------------------------


def outside_link(path):
    (path.parent.parent / "secret.py").write_text("secret = 1\n")
    path.symlink_to(path.parent.parent / "secret.py")


def unix_socket(path):
    server = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(path.parent)  # a socket's path may have no more than 107 bytes
    try:
        server.bind(path.name)
    finally:
        os.chdir(here)
        server.close()


ODD = {
    "null bytes": (lambda p: p.write_bytes(b"x = 1\ny = '\0'\n"), "it holds a null byte (line 2)"),
    "UTF-16": (lambda p: p.write_text("x = 1\n", encoding="utf-16"), "it is saved as UTF-16; save it as UTF-8"),
    "UTF-16 without mark": (lambda p: p.write_text("x = 1\n", encoding="utf-16-le"), "it holds a null byte"),
    "not UTF-8": (lambda p: p.write_bytes(b"# fine\nx = 1\ny = '\xe4'\n"), "line 3 is not valid UTF-8"),
    "not UTF-8 in line 1": (lambda p: p.write_bytes(b"# \xe4\nx = 1\n"), "line 1 is not valid UTF-8"),
    "unknown encoding": (lambda p: p.write_bytes(b"# coding: nonsense\nx = 1\n"), "the encoding that its first lines"),
    "encoding that is none": (lambda p: p.write_bytes(b"# coding: rot13\nk = 1\n"), "save it as UTF-8"),
    "slow encoding": (lambda p: p.write_bytes(b"# coding: punycode\nx = 1\n"), "the encoding punycode"),
    "compressed": (lambda p: p.write_bytes(b"\x1f\x8b\x08\x00\x00"), "save it as a text file"),
    "too large": (lambda p: p.write_bytes(b"#" * (SIZE_LIMIT + 1)), "it is larger than 2 MiB"),
    "folder": (lambda p: p.mkdir(), "it is a folder"),
    "named pipe": (os.mkfifo, "it is not a plain file"),
    "socket": (unix_socket, "it is not a plain file"),
    "link to a device": (lambda p: p.symlink_to("/dev/zero"), "it is a link to a file outside of the submission"),
    "link to the outside": (outside_link, "it is a link to a file outside of the submission"),
}


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_file_is_refused_in_a_sentence(tmp_path, kind):
    make, sentence = ODD[kind]
    folder = tmp_path / "handed in"
    folder.mkdir()
    make(folder / "ex02_mlm_loss.py")
    found, _ = only(folder)
    assert found.code == ()
    assert found.verdict == "crashed"
    assert found.refused.startswith("ex02_mlm_loss.py cannot be read: "), found.refused
    assert sentence in found.refused
    assert found.refused.endswith(".")
    if kind != "folder":
        assert only(folder / "ex02_mlm_loss.py")[0].refused == found.refused


def test_a_dangling_link_in_a_folder_is_refused_for_its_target(tmp_path):
    (tmp_path / "ex02.py").symlink_to("/nowhere/at/all.py")
    assert "a link to a file outside" in only(tmp_path)[0].refused


def test_a_loop_of_links_is_reported(tmp_path):
    (tmp_path / "ex02.py").symlink_to("ex02_.py")
    (tmp_path / "ex02_.py").symlink_to("ex02.py")
    assert only(tmp_path)[0].refused


def test_a_link_inside_the_submission_is_followed(tmp_path):
    (tmp_path / "work.py").write_text("x = 1\n")
    (tmp_path / "ex02.py").symlink_to("work.py")
    assert text_of(only(tmp_path)[0]) == "x = 1\n"


@pytest.mark.parametrize("name", ["ex02.txt", "ex02", "ex02.py.bak", "ex02.zip"])
def test_a_file_of_another_type_is_refused(tmp_path, name):
    (tmp_path / name).touch()
    assert "it is neither a .py module nor a .ipynb notebook" in only(tmp_path / name, {2})[0].refused


def test_a_file_that_the_host_does_not_open_is_the_graders_trouble(tmp_path, monkeypatch):
    (tmp_path / "ex02.py").touch()

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    found, _ = only(tmp_path)
    assert found.verdict == "grader_error"
    assert found.refused == "ex02.py could not be opened by the grader: Permission denied."


@pytest.mark.parametrize(
    "data",
    [
        "x = 'ä中'\n".encode(),
        "x = 'ä中'\n".encode("utf-8-sig"),
        "x = 'ä中'\r\n".encode(),
        "x = 'ä中'\r".encode(),
        "# coding: gbk\nx = 'ä中'\n".encode("gb18030"),
        "# coding: gb18030\r\nx = 'ä中'\r\n".encode("gb18030"),
    ],
    ids=["UTF-8", "BOM", "CRLF", "CR", "GBK", "GB 18030"],
)
def test_text_is_read_as_it_was_meant(tmp_path, data):
    if b"gbk" in data:
        data = "# coding: gbk\nx = '中'\n".encode("gbk")
    (tmp_path / "ex02.py").write_bytes(data)
    text = text_of(only(tmp_path)[0])
    assert text.endswith(("x = 'ä中'\n", "x = '中'\n"))
    assert "\r" not in text
    assert not text.startswith("\ufeff")


def test_latin_1_is_read_by_its_cookie(tmp_path):
    (tmp_path / "ex02.py").write_bytes("# -*- coding: latin-1 -*-\nx = 'ä'\n".encode("latin-1"))
    assert text_of(only(tmp_path)[0]).endswith("x = 'ä'\n")


def test_a_syntax_error_is_left_to_the_worker(tmp_path):
    (tmp_path / "ex02.py").write_text("def f(:\n")
    assert text_of(only(tmp_path)[0]) == "def f(:\n"


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("bytes")
    for name in ("ex02.py", "ex01.ipynb"):
        (folder / name).write_bytes(data)
    for found in look(str(folder), None)[0]:
        assert (found.refused is None) != (found.code == ()) or found.cells


def test_a_name_that_is_no_unicode_is_read(tmp_path):
    with open(os.fsencode(tmp_path) + b"/ex02_\xff.py", "w") as file:
        file.write("x = 1\n")
    found, _ = only(tmp_path)
    assert text_of(found) == "x = 1\n"
    found.code[0].name.encode()


# -- notebooks ---------------------------------------------------------------------------------------------------------


def test_code_cells_are_counted_as_a_person_counts_them(tmp_path):
    cells = json.loads(notebook("a = 1", "", ["b = 2\n", "c = 3"]))
    cells["cells"].insert(1, {"cell_type": "markdown", "metadata": {}, "source": "text"})
    cells["cells"].insert(0, {"cell_type": "raw", "metadata": {}, "source": "raw"})
    (tmp_path / "ex05.ipynb").write_text(json.dumps(cells))
    (work,) = find(str(tmp_path), None).works
    assert [(part.name, part.text) for part in work.parts] == [
        ("cell 1", "a = 1"),
        ("cell 2", ""),
        ("cell 3", "b = 2\nc = 3"),
    ]
    assert all(part.may_fail for part in work.parts)


OLD = {
    1: {"cells": [{"cell_type": "code", "language": "python", "input": "x = 1"}]},
    2: {"nbformat": 2, "worksheets": [{"cells": [{"cell_type": "code", "language": "python", "input": "x = 1"}]}]},
    3: {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {"name": ""},
        "worksheets": [
            {
                "metadata": {},
                "cells": [
                    {"cell_type": "heading", "level": 1, "metadata": {}, "source": ["Title"]},
                    {
                        "cell_type": "code",
                        "language": "python",
                        "collapsed": False,
                        "metadata": {},
                        "input": ["x = 1"],
                        "outputs": [],
                    },
                ],
            }
        ],
    },
    4: {"nbformat": 4, "cells": [{"cell_type": "code", "source": ["x = ", "1"]}]},
}


@pytest.mark.parametrize("version", OLD)
def test_notebooks_of_every_format_are_read(version):
    cells, _ = code_cells(json.dumps({"metadata": {}, **OLD[version]}))
    assert [tuple(cell) for cell in cells] == [("cell 1", "x = 1")]


BROKEN = {
    "no JSON": ("import torch", "not valid JSON"),
    "empty": ("", "not valid JSON"),
    "a list": ("[1]", "no JSON object"),
    "deep": ("[" * 100_000, "not valid JSON"),
    "a number with many digits": ('{"nbformat": ' + "1" * 5000 + "}", "not valid JSON"),
    "no cells": ('{"nbformat": 4}', "it has no list of cells"),
    "cells of another kind": ('{"nbformat": 4, "cells": {"a": 1}}', "it has no list of cells"),
    "source of another kind": (notebook(7), "the source of a cell is not text"),
    "list of another kind": (notebook([7]), "the source of a cell is not text"),
    "a format to come": (notebook("x", nbformat=5), "a notebook of format 5"),
    "no format": (notebook("x", nbformat="4"), "a notebook of format 4"),
    "an old one without its parts": ('{"nbformat": 3, "worksheets": 5}', "it has no list of worksheets"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_notebook_is_refused_in_a_sentence(tmp_path, kind):
    text, sentence = BROKEN[kind]
    (tmp_path / "ex05.ipynb").write_text(text)
    found, _ = only(tmp_path)
    assert found.verdict == "crashed"
    assert found.refused.startswith("ex05.ipynb cannot be read: it ")
    assert sentence in found.refused


def test_cells_that_are_damaged_elsewhere_still_count():
    text = notebook("x = 1")
    cells = json.loads(text)
    cells["cells"] += [None, 3, {"cell_type": "code"}, {"cell_type": "code", "source": "\ud800", "outputs": 7}]
    assert [cell.text for cell in code_cells(json.dumps(cells))[0]] == ["x = 1", "", "\ufffd"]


def test_pictures_do_not_count_as_code(tmp_path):
    picture = {"output_type": "display_data", "data": {"image/png": "A" * (SIZE_LIMIT + 1)}, "metadata": {}}
    cells = json.loads(notebook("x = 1"))
    cells["cells"][0]["outputs"] = [picture]
    (tmp_path / "ex05.ipynb").write_text(json.dumps(cells))
    assert text_of(only(tmp_path)[0]) == "x = 1"
    (tmp_path / "ex05.ipynb").write_text(notebook("#" * (SIZE_LIMIT + 1)))
    assert "its code is longer than 2 MiB" in only(tmp_path)[0].refused
    (tmp_path / "ex05.ipynb").write_bytes(b" " * (NOTEBOOK_LIMIT + 1))
    assert "it is larger than 20 MiB" in only(tmp_path)[0].refused


@pytest.mark.parametrize(
    ("source", "python"),
    [
        ("%matplotlib inline\nx = 1", "# skipped\nx = 1"),
        ("x = 1\n!pip install torch", "x = 1\n# skipped"),
        ("if x:\n    %time f()\n    y = 2", "if x:\n    pass\n    y = 2"),
        ("!pip install a \\\n   b\nx = 1", "# skipped\n# skipped\nx = 1"),
        ("pip install torch\nx = 1", "# skipped\nx = 1"),
        ("files = !ls\nx = 1", "# skipped\nx = 1"),
        ("t = %timeit -o f()\nx = 1", "# skipped\nx = 1"),
        ("torch.sum?\n?len\nlen??", "# skipped\n# skipped\n# skipped"),
        ("%%time\nx = 1", "# %%time\nx = 1"),
        ("\n# note\n%%capture out\n%%time\nx = 1", "\n# note\n# %%capture out\n# %%time\nx = 1"),
        ("%%bash\nrm -rf x\necho", "\n\n"),
        ("%%writefile a.py\nx = 1", "\n"),
        ("%%html\n<b>'</b>", "\n"),
    ],
)
def test_what_only_ipython_understands_is_left_out_line_by_line(source, python):
    text, skipped = plain_python(source)
    assert text == python
    assert skipped
    compile(text.replace("if x:", "if 1:"), "cell", "exec")


@pytest.mark.parametrize(
    "source",
    [
        "x = (7\n     % 3)",
        "x = [\n!= 3\n]",
        "x = 7 \\\n  % 3",
        'x = """\n%matplotlib inline\n!ls\n"""',
        "x = '''a\n''' 'b\\\n%c'",
        "x = 'it''s' # what?\ny = {'a': 1,\n%b}",
        "x = '\\'('\ny = \"#\"\nz = r'\\'",
        'f"""{x}\n? """',
        "x = 7 % 3\ny != 3\nwhy = 'what?'",
        "x %= 3\nx = '%d' % 3",
        "# %%time\nx = 1",
    ],
)
def test_python_is_left_alone(source):
    assert plain_python(source) == (source, [])


@given(st.text(alphabet="ab =%!?'\"()[]\\#\n", max_size=40))
def test_lines_keep_their_numbers_whatever_is_in_a_cell(source):
    text, skipped = plain_python(source)
    assert text.count("\n") == source.count("\n")
    assert all(1 <= line <= source.count("\n") + 1 for line, _ in skipped)


def test_skipped_lines_are_noted_and_not_without_end():
    _, notes = code_cells(notebook("x = 1\n%matplotlib inline", "%%bash\nls"))
    assert notes == ["cell 1, line 2: skipped `%matplotlib inline`", "cell 2, line 1: skipped `%%bash`"]
    _, notes = code_cells(notebook("!ls\n" * 50))
    assert len(notes) == 13
    assert notes[-1] == "… and 38 more lines for IPython or the shell were skipped"


def _tree(folder: Path, *names: str) -> str:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        unwritten = ["raise NotImplementedError()"] * 3 if "unwritten" in name else []
        (folder / name).write_text(f"x = {name!r}\n" if name.endswith(".py") else notebook(f"x = {name!r}", *unwritten))
    return str(folder)


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (["course/exercises/ex02_mlm_loss.py", "course/exercises/tests/test_ex02.py"], ["course/exercises"]),
        (["exercises/ex02_mlm_loss.py", "notebooks/ex02/ex02_mlm_loss.ipynb"], ["exercises"]),
        (["ex01/ex01.ipynb", "ex02/ex02.ipynb", "ex02/.ipynb_checkpoints/ex02.ipynb"], ["ex01", "ex02"]),
        (["mine/ex 1/ex1.py", "mine/ex 2/ex2.py", "other/ex2.py"], ["mine/ex 1", "mine/ex 2"]),
        (["ex01.py", "old/ex01.py", "old/ex02.py"], ["."]),
    ],
)
def test_exercises_below_the_folder_are_found(tmp_path: Path, names: list[str], taken: list[str]) -> None:
    """A student who handed in the folder of the course got nothing."""
    found, notes = look(_tree(tmp_path, *names), None)
    places = [one.code[0].text.split("'")[1].rpartition("/")[0] or "." for one in found]
    assert places == taken
    assert all(any(place in note for note in notes) for place in taken if place != ".")


@pytest.mark.parametrize(
    ("stub", "others", "gives_way"),
    [
        ("exercises/ex02_mlm_loss.py", ["notebooks/ex02_mlm_loss.ipynb"], True),
        ("exercises/ex02_mlm_loss.py", ["mine/ex02.py"], True),
        ("exercises/ex02_mlm_loss.py", [], False),
        ("exercises/ex02_mlm_loss.py", ["notebooks/ex02.ipynb", "old/ex02.ipynb"], False),
        ("exercises/ex02_mlm_loss.py", ["notebooks/ex02.ipynb", "notebooks/zh/ex02 unwritten.ipynb"], True),
        ("ex02_mlm_loss.py", ["ex02_mlm_loss.ipynb"], True),
        ("ex02_mlm_loss.py", ["ex02 final.py"], True),
    ],
)
def test_an_untouched_stub_gives_way_to_work(tmp_path: Path, stub: str, others: list[str], gives_way: bool) -> None:
    """Whoever worked in the notebooks of the course, and handed in all of it, got nothing."""
    path = _tree(tmp_path, "exercises/ex01_input_embeddings.py", *others)
    released = STUBS / "ex02_mlm_loss.py"
    (tmp_path / stub).write_bytes(codecs.BOM_UTF8 + released.read_bytes().replace(b"\n", b"\r\n"))
    _, found = look(path, {1, 2})[0]
    assert found.code[0].text.strip() == (f"x = {others[0]!r}" if gives_way else released.read_text().strip())


def test_what_students_get_is_small_enough_to_be_told() -> None:
    handed_out = [*STUBS.glob("ex*.py"), *(STUBS.parent / "notebooks").rglob("source/**/*.ipynb")]
    assert len(handed_out) >= 30
    assert max(file.stat().st_size for file in handed_out) < HANDED_OUT_LIMIT / 2


def test_a_heap_of_large_files_is_not_read_to_find_the_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0
    whole = submission.code_cells

    def counted(text: str) -> Any:
        nonlocal read
        read += len(text)
        return whole(text)

    monkeypatch.setattr(submission, "code_cells", counted)
    large = notebook("x = 1", "#" * 1024 * 1024)
    for number in range(20):
        (tmp_path / f"ex02 {number}.ipynb").write_text(large)
    look(str(tmp_path), {2})
    assert read <= len(large)


def test_the_stub_in_its_place_is_no_copy_of_itself() -> None:
    """Where students fill it, in the course that was handed out, it is whatever they have made of it."""
    assert [found.cells for found in look(str(STUBS), {2})[0]] == [False]
    assert not _untouched(str(STUBS), "ex02_mlm_loss.py", 2)


@pytest.mark.parametrize(
    "names",
    [
        ["s01/ex02.py", "s02/ex02.py"],
        ["s01/ex01.py", "s02/ex02.py"],
        ["s01/ex01/ex01.py", "s02/ex02/ex02.py"],
        ["s01/exercises/ex02.py", "s02/exercises/ex02.py"],
    ],
)
def test_the_folder_of_a_class_is_no_submission(tmp_path: Path, names: list[str]) -> None:
    path = _tree(tmp_path, *names)
    with pytest.raises(UsageError, match=r"several below it hold some \(s01.*s02.*`autograder batch`"):
        look(path, None)
    founds, _ = look(path, {1, 2})
    assert [(found.code, found.verdict) for found in founds] == [((), "not_implemented")] * 2
    assert all("and only one may be handed in" in str(found.refused) for found in founds)


def test_what_lies_deep_hidden_or_behind_a_link_is_not_searched(tmp_path: Path) -> None:
    outside = _tree(tmp_path / "outside", "ex02.py")
    path = _tree(tmp_path / "in", "1/2/3/4/ex02.py", ".git/ex02.py", "__pycache__/ex02.py", "tests/ex02.py")
    (tmp_path / "in" / "link").symlink_to(outside)
    with pytest.raises(UsageError, match="files are named like"):
        look(path, None)
    for number in range(1100):
        (tmp_path / "in" / f"a{number:04d}").mkdir()
    _tree(tmp_path / "in", "z/ex02.py")
    with pytest.raises(UsageError, match="files are named like"):
        look(path, None)


def test_names_of_folders_stay_on_their_line(tmp_path: Path) -> None:
    path = _tree(tmp_path, "a\x1b[31m\nfull marks/ex02.py", "b/ex02.py")
    (found,), _ = look(path, {2})
    assert "(a\ufffd[31m\ufffdfull marks, b)" in str(found.refused)
