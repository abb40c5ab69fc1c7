"""Properties: Hypothesis chooses their examples once, and every submission is tried on the same ones.

Choosing costs as much as trying, and what is chosen for one submission that passes is chosen for every other.  So a
submission is tried on the examples first.  Only where one fails does Hypothesis take over, to find the simplest.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from types import CodeType
from typing import Any

import hypothesis
from hypothesis.strategies import SearchStrategy

from autograder.examples import settings

Example = dict[str, Any]

#: The examples of every property so far, by its code and its strategies: a property may be defined inside a check.
_chosen: dict[tuple[CodeType, str], list[Example]] = {}


def given(**strategies: SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`hypothesis.given` for a check that depends on nothing but its arguments, and draws from no global generator."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        if not hasattr(test, "_hypothesis_internal_use_settings"):  # else those of whoever imports the check first
            settings()(test)
        search = hypothesis.given(**strategies)(test)

        @functools.wraps(search)
        def check(**fixtures: Any) -> None:
            for example in examples(test, strategies):
                try:
                    test(**fixtures, **copy.deepcopy(example))
                except Exception:
                    search(**fixtures)
                    raise  # it failed once, and once is enough

        return check

    return decorate


def examples(test: Callable[..., None], strategies: dict[str, SearchStrategy[Any]]) -> list[Example]:
    """What Hypothesis tries a submission on that passes: explicit examples first, then its own."""
    key = (test.__code__, repr(strategies))
    if key not in _chosen:
        found: list[Example] = []

        @functools.wraps(test)
        def note(**arguments: Any) -> None:
            found.append({name: copy.deepcopy(arguments[name]) for name in strategies})

        others = [name for name in inspect.signature(test).parameters if name not in strategies]
        hypothesis.given(**strategies)(note)(**dict.fromkeys(others))
        _chosen[key] = found
    return _chosen[key]
