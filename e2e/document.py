"""`python e2e/document.py`: puts the times of the last run into `docs/operations/kubernetes.md`, between two marks."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
TIMES: Final = ROOT / "build" / "e2e" / "times.json"
PAGE: Final = ROOT / "docs" / "operations" / "kubernetes.md"
BEGIN: Final = "<!-- times: written by e2e/document.py -->"
END: Final = "<!-- end of times -->"

ROWS: Final = (
    ("new_cluster_of_3_ready_s", "a new cluster of three is Ready", "60 s"),
    ("grown_from_3_to_5_s", "three members become five, under load", ""),
    ("shrunk_from_5_to_3_under_load_s", "five members become three, under load", ""),
    ("shrunk_from_5_to_3_with_100_000_jobs_s", "five members become three, with 100,000 queued jobs", ""),
    ("shrunk_from_3_to_1_with_100_000_jobs_s", "three members become one, with the same jobs", ""),
    ("upgrade_per_pod_s", "an upgrade under load, for each pod", ""),
    ("upgrade_slowest_1_percent_of_adds_ms", "99 % of adds during that upgrade are answered within", "5000 ms"),
    ("password_known_to_all_nodes_s", "a rotated password is set on all brokers", ""),
    ("deleted_pod_back_s", "a deleted pod is ready again", "30 s"),
    ("killed_pod_back_s", "a killed pod is ready again", "30 s"),
    ("all_pods_deleted_cluster_back_s", "all pods deleted, until the cluster is Ready", ""),
    ("all_pods_killed_cluster_back_s", "all pods killed, until the cluster is Ready", ""),
    ("lost_volume_healed_s", "a volume lost, until a new member has joined and the old one is forgotten", ""),
    ("lost_machine_back_cluster_whole_s", "a lost node is back, until the cluster is Ready", ""),
    ("grown_after_api_server_was_away_s", "a new member, after the API server was unreachable for a minute", "60 s"),
    ("grown_after_the_operator_was_killed_s", "a new member, after the acting operator was killed", ""),
    ("hibernated_s", "a cluster of three hibernates", ""),
    ("awake_again_s", "and is Ready again, with all its jobs", ""),
    ("namespace_deleted_s", "a namespace with a draining cluster is deleted", "60 s"),
)
"""Name of a measurement, its description, and the time that the test allows, if there is a limit."""


def table(times: dict[str, float]) -> str:
    """The rows of what was measured, as Markdown."""
    lines = ["| what | measured | limit |", "|---|---:|---:|"]
    for name, what, target in ROWS:
        if name in times:
            lines.append(f"| {what} | {shown(name, times[name])} | {target} |")
    return "\n".join(lines)


def shown(name: str, value: float) -> str:
    """A figure with its unit."""
    return f"{value:.0f} ms" if name.endswith("_ms") else f"{value:.1f} s"


def main() -> int:
    """Renew the page; the exit status."""
    page = PAGE.read_text()
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        sys.stderr.write(f"{PAGE} lacks the marks {BEGIN} and {END}\n")
        return 1
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{table(json.loads(TIMES.read_text()))}\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
