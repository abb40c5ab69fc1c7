"""Which module the visible checks look at: `exercises/exNN_name.py`, or what `--submission` names."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--submission",
        type=Path,
        metavar="PATH",
        help="a file to check, or a folder with files exNN_*.py, instead of the modules in exercises/",
    )


@pytest.fixture(scope="module")
def submission(request: pytest.FixtureRequest) -> ModuleType:
    """The module under test: for `test_ex01_input_embeddings.py` it is `exercises.ex01_input_embeddings`."""
    name = request.module.__name__.rpartition(".")[2].removeprefix("test_")
    path = request.config.getoption("--submission")
    if path is None:
        return importlib.import_module(f"exercises.{name}")
    exercise = name[:4]  # "ex01"
    if path.is_dir():
        found = sorted(path.glob(f"{exercise}_*.py"))
        if len(found) != 1:
            names = ", ".join(file.name for file in found) or "none"
            pytest.fail(f"{path} must hold one file {exercise}_*.py, found: {names}", pytrace=False)
        path = found[0]
    elif not path.is_file():
        pytest.fail(f"--submission {path}: there is no such file or folder", pytrace=False)
    elif path.name.startswith("ex") and path.name[:4] != exercise:
        pytest.skip(f"{path.name} belongs to another exercise")
    return _load(path)


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"submission_{path.stem}", path)
    if spec is None or spec.loader is None:
        pytest.fail(f"{path} is not a Python file", pytrace=False)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
