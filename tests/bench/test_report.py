"""A part of the benchmark that is measured again replaces that part of the report, which says when the others were."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent.parent.parent / "bench"


def report(date: str, commit: str, **parts: object) -> dict[str, Any]:
    """The results of a run."""
    return {"date": date, "machine": {"commit": commit}, "sizes": {"rounds": 1}, "elapsed_s": 60.0, **parts}


def together(newer: dict[str, Any], older: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The results of both runs, and the facts of the report."""
    code = (
        "import json, sys, report; newer, older = json.load(sys.stdin); found = report.with_earlier(newer, older); "
        "print(json.dumps([found, report.facts(found)]))"
    )
    given = json.dumps([newer, older])
    done = subprocess.run(
        [sys.executable, "-c", code], input=given, cwd=BENCH, capture_output=True, text=True, check=True
    )
    found, facts = json.loads(done.stdout)
    return found, facts


def test_parts_that_were_not_measured_again_keep_their_date_and_commit() -> None:
    first = report("2026-01-01", "aaaaaaa", memory={"disqued": 400.0}, pauses_ms=[5.0], idle={"1": 6.5})
    second, _ = together(report("2026-02-02", "bbbbbbb", memory={"disqued": 390.0}), first)
    assert second["memory"] == {"disqued": 390.0}
    assert second["pauses_ms"] == [5.0]
    _, facts = together(report("2026-03-03", "ccccccc", pauses_ms=[4.0]), second)
    assert "measured earlier (2026-02-02, commit bbbbbbb, 1 rounds): memory" in facts
    assert "measured earlier (2026-01-01, commit aaaaaaa, 1 rounds): idle" in facts
    assert not any("pauses_ms" in fact for fact in facts)
