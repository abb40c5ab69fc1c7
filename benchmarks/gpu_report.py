"""What benchmarks/gpu.sh says of the machine and of the grades: Markdown, and status 1 unless all have full points.

python -m benchmarks.gpu_report GRADES --device cuda    # GRADES: what `autograder grade --format json` printed
python -m benchmarks.gpu_report --machine
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

Report = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.gpu_report", description=__doc__.split("\n")[0])
    parser.add_argument("grades", type=Path, nargs="?")
    parser.add_argument("--device", default="cuda", help="where every submission must have been graded")
    parser.add_argument("--machine", action="store_true")
    given = parser.parse_args(arguments)
    if given.machine:
        print(machine())
    if given.grades is None:
        return 0
    reports = [json.loads(line) for line in given.grades.read_text(encoding="utf-8").splitlines()]
    wrong = shortfalls(reports, given.device)
    print("\n".join([*table(reports), "", *(wrong or ["All have full points."])]))
    return 1 if wrong or not reports else 0


def machine() -> str:
    """The device and the versions, in a sentence or two."""
    import torch

    device = "No CUDA device: everything on the CPU"
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        device = f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB, CUDA {torch.version.cuda}"
    return (
        f"{device}. {os.cpu_count()} cores, Python {platform.python_version()}, torch {torch.__version__}, "
        f"transformers {version('transformers')}."
    )


def table(reports: Sequence[Report]) -> list[str]:
    """One line for each exercise."""
    lines = [
        "| exercise | submissions | with full points | device | seconds in checks |",
        "| --- | ---: | ---: | --- | ---: |",
    ]
    for exercise in sorted({exercise["id"] for report in reports for exercise in report["exercises"]}):
        mine = [(r, e) for r in reports for e in r["exercises"] if e["id"] == exercise]
        full = sum(e["points"] == e["max_points"] for _, e in mine)
        devices = ", ".join(sorted({report["device"] for report, _ in mine}))
        seconds = sum(check["seconds"] for _, e in mine for f in e["functions"] for check in f["checks"])
        lines.append(f"| {exercise} | {len(mine)} | {full} | {devices} | {seconds:.1f} |")
    return lines


def shortfalls(reports: Sequence[Report], device: str) -> list[str]:
    """A line for each submission that lacks points or was graded elsewhere, with its first failed check."""
    lines = []
    if not reports:
        lines.append("- nothing was graded")
    for report in reports:
        where = report["submission"]
        if report["device"] != device:
            lines.append(f"- {where}: graded on {report['device']}, not on {device}")
        for exercise in report["exercises"]:
            checks = [check for function in exercise["functions"] for check in function["checks"]]
            bad = [check for check in checks if check["verdict"] != "passed"]
            if exercise["points"] < exercise["max_points"]:
                verdicts = ", ".join(f"{n} {verdict}" for verdict, n in Counter(c["verdict"] for c in bad).items())
                message = " ".join(str(bad[0]["message"] or "").split())[:200] if bad else ""
                lines.append(
                    f"- {where}, {exercise['id']}: {exercise['points']:g} of {exercise['max_points']:g} points "
                    f"({verdicts}); {bad[0]['id'] if bad else '?'}: {message}"
                )
    return lines


if __name__ == "__main__":
    sys.exit(main())
