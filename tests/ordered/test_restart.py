"""A restart of all nodes with many queues."""

from __future__ import annotations

from disqued.core.host import disk
from ordered.story import Story


def test_the_replicas_of_many_queues_read_the_log_together_after_a_restart() -> None:
    story = Story()
    queues = [f"q{number}" for number in range(30)]
    for queue in queues:
        story.new(queue)
    for number in range(20):
        for queue in queues:
            story.add(story.nodes[0], f"{number} ".ljust(1000, "."), queue=queue)
    for node in story.nodes:
        node.crash()
    for node in story.nodes:
        node.restart()
        node.host.disk.delay_ms = {disk.READ: 2}
    for queue in queues:
        story.settle(queue)
        assert story.stat(story.nodes[0], queue)[b"len"] == 20
    for node in story.nodes:
        log = story.room(node).hosting.log
        assert log is not None
        assert log.reads < 20  # about eighty if each queue reads by itself
