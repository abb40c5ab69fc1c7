"""How Hypothesis makes up inputs while grading: the same ones, wherever it is done and whatever was graded before."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import hypothesis
from hypothesis.internal.conjecture import providers

hypothesis.settings.register_profile(
    "grading",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=25,
    report_multiple_bugs=False,
    print_blob=False,
    phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate, hypothesis.Phase.shrink),
    suppress_health_check=list(hypothesis.HealthCheck),
)


def settings(**changes: Any) -> hypothesis.settings:
    """`hypothesis.settings` for a check: what it does not name is as in grading, wherever the check is imported."""
    return hypothesis.settings(hypothesis.settings.get_profile("grading"), **changes)


@contextlib.contextmanager
def reproducible() -> Iterator[None]:
    """Examples depend on the property alone.

    Hypothesis mixes constants into them that it finds in the modules loaded from outside of site-packages: other ones
    with every exercise that is graded, and none where this package is installed.
    """
    before = hypothesis.settings.get_current_profile_name()
    none = providers.Constants()
    providers.CONSTANTS_CACHE.cache.clear()
    hypothesis.settings.load_profile("grading")
    try:
        with patch.object(providers, "_get_local_constants", lambda: none):
            yield
    finally:
        hypothesis.settings.load_profile(before)
        providers.CONSTANTS_CACHE.cache.clear()
