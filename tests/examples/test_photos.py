"""The example application on three nodes: workers are killed and stopped, a node is killed, the cluster is partitioned.

Each picture must get its thumbnails, its album and its reminder; no reminder may come early; and whatever ran twice
must have been with a worker or a node that failed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from support.photos import Photos, Sent
from support.wires import WiredCluster, Wires

Publish = Callable[[str, object], None]

REMIND_IN_S: Final = 90
"""Longer than all faults take, so that reminders outlive every worker that was there when they were sent."""
PICTURES: Final = 10
"""Sent before each fault, and after the last one."""
CLOCK_S: Final = 0.05
"""The time of a task is computed before it is sent, and rounded."""


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_picture_is_published_and_none_of_its_reminders_is_early(
    tmp_path: Path, record_property: Publish
) -> None:
    with Wires() as wires, WiredCluster(tmp_path, wires, 3, "--appendonly", "yes") as cluster:
        one, two, three = cluster.nodes
        url = f"disque://{','.join(node.address for node in cluster.nodes)}"
        with Photos(tmp_path / "app", url, url, remind_in_s=REMIND_IN_S) as photos:
            sent: list[Sent] = []

            def send() -> None:
                sent.extend(photos.send(len(sent)) for _ in range(PICTURES))

            def all_published() -> bool:
                return all(map(photos.is_published, sent))

            photos.start_worker("first")
            photos.start_worker("killed")
            send()
            photos.wait(lambda: "killed" in photos.account().workers, "both workers run tasks")
            photos.kill_worker("killed")
            photos.start_worker("second")
            send()
            two.kill()
            send()
            two.restart()
            cluster.wait_whole()
            send()
            before = len(photos.account().started)
            wires.halve([one], [two, three])
            send()
            photos.wait(lambda: len(photos.account().started) > before, "tasks run during the partition")
            wires.repair()
            cluster.wait_whole()
            assert photos.stop_worker("first") == 0, "a warm shutdown"
            send()
            photos.wait(all_published, "every picture has its album")
            photos.wait(lambda: all(map(photos.reminded_s, sent)), "every reminder is sent")

            assert all(photos.reminded_s(one_sent) >= one_sent.at_s + REMIND_IN_S - CLOCK_S for one_sent in sent)
            photos.wait(lambda: all(photos.state(one_sent.task) == "SUCCESS" for one_sent in sent), "results are kept")
            account = photos.account()
            late = max(photos.reminded_s(one_sent) - one_sent.at_s - REMIND_IN_S for one_sent in sent)
            record_property("tasks", len(account.started))
            record_property("repeated", {account.names[task]: account.started[task] for task in account.repeated})
            record_property("latest reminder", f"{late:.1f} s after its time")
