"""`python e2e/document.py`: writes the measurements of the last run to `docs/operations/kubernetes.md`."""

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
    ("new_cluster_of_3_ready_s", "a new cluster of three becomes Ready", "60 s"),
    ("scaled_out_from_3_to_5_s", "scaling from three to five members, under load", ""),
    ("scaled_in_from_5_to_3_under_load_s", "scaling from five to three members, under load", ""),
    ("scaled_in_from_5_to_3_with_100_000_jobs_s", "scaling from five to three members, with 100,000 queued jobs", ""),
    ("scaled_in_from_3_to_1_with_100_000_jobs_s", "scaling from three members to one, with the same jobs", ""),
    ("ordered_scaled_in_from_5_to_3_under_load_s", "scaling from five to three members, with an ordered queue", ""),
    ("ordered_lost_volume_healed_s", "an ordered queue has all replicas after a volume was lost", ""),
    ("ordered_upgrade_slowest_1_percent_of_adds_ms", "99th percentile of ADDJOB to an ordered queue in an upgrade", ""),
    ("upgrade_per_pod_s", "an upgrade under load, per pod", ""),
    ("upgrade_slowest_1_percent_of_adds_ms", "99th percentile of ADDJOB during that upgrade", "5000 ms"),
    ("password_rotated_on_all_nodes_s", "a rotated password is accepted by all nodes", ""),
    ("deleted_pod_back_s", "a deleted pod is ready again", "30 s"),
    ("killed_pod_back_s", "a killed pod is ready again", "30 s"),
    ("all_pods_deleted_cluster_back_s", "the cluster recovers after all pods were deleted", ""),
    ("all_pods_killed_cluster_back_s", "the cluster recovers after all pods were killed", ""),
    ("lost_volume_healed_s", "a member with a lost volume is replaced", ""),
    ("lost_node_cluster_recovered_s", "the cluster recovers after a lost Kubernetes node came back", ""),
    ("scaled_out_after_api_server_outage_s", "a member is added after the API server was down for a minute", "60 s"),
    ("scaled_out_after_operator_was_killed_s", "a member is added after the leading operator was killed", ""),
    ("hibernated_s", "a cluster of three is hibernated", ""),
    ("woken_s", "the hibernated cluster runs again, with all its jobs", ""),
    ("namespace_deleted_s", "a namespace with a draining cluster is deleted", "60 s"),
)
"""The name of each measurement, its description, and the time that the test allows, if there is a limit."""


def table(times: dict[str, float]) -> str:
    """Return the measurements as a Markdown table."""
    lines = ["| operation | duration | limit |", "|---|---:|---:|"]
    for name, what, limit in ROWS:
        if name in times:
            lines.append(f"| {what} | {shown(name, times[name])} | {limit} |")
    return "\n".join(lines)


def shown(name: str, value: float) -> str:
    """Return a value with its unit."""
    return f"{value:.0f} ms" if name.endswith("_ms") else f"{value:.1f} s"


def main() -> int:
    """Update the page and return the exit status."""
    page = PAGE.read_text()
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        sys.stderr.write(f"{PAGE} must contain {BEGIN} and {END} once\n")
        return 1
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{table(json.loads(TIMES.read_text()))}\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
