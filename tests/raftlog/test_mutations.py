"""The tests of the log notice a log, an owner or a disk that breaks the rules on purpose."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from disqued.build import FLAVOUR
from disqued.core.host import disk
from disqued.core.host.disk import DiskWork
from disqued.raftlog import rewriter, writer
from disqued.raftlog.appender import Appender
from disqued.raftlog.segments import Segment
from raftlog.stage import Stage
from raftlog.test_crashes import run
from raftlog.test_space import Model

patched = pytest.mark.skipif(FLAVOUR == "compiled", reason="replaces methods, which compiled code does not look up")


def is_noticed(seeds: range, *, power: bool = True) -> bool:
    """Whether a history that stops somewhere is wrong afterwards."""
    for seed in seeds:
        works = 0
        try:
            while run(seed, works, power=power):
                works += 1
        except AssertionError:
            return True
    return False


def test_an_owner_that_releases_too_much_is_noticed() -> None:
    stage = Stage().start()
    model = Model(stage, 1, groups=1, stuck=False)
    for _ in range(200):
        model.turn()
    model.check()
    needed = min(model.needed[1])
    stage.log.release(1, needed)
    model.save(1)
    with pytest.raises(AssertionError):
        model.check()


@patched
def test_a_sync_that_is_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: writer.Writer, now_ms: int) -> None:
        work = DiskWork(disk.SYNC, "none")
        self._sync, self._syncing, self._syncing_offset = work, self.written, self._written_offset
        self.done(work, now_ms)

    monkeypatch.setattr(writer.Writer, "_start_sync", start)
    assert is_noticed(range(2))


@patched
def test_a_segment_that_is_deleted_before_the_snapshot_is_synced_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hasty(rewriter._Removal):
        def __init__(self, segment: Segment, _frame: int) -> None:
            super().__init__(segment, 0)

    monkeypatch.setattr(rewriter, "_Removal", Hasty)
    assert is_noticed(range(6))


@patched
@pytest.mark.parametrize(
    ("owner", "name", "other"),
    [
        (Appender, "add_released", lambda self: self.released.clear()),
        (writer.Writer, "_sync_due", lambda self, _: self.synced < self.written and not self.queue),
    ],
    ids=["releases are not logged", "a segment begins before the last one is synced"],
)
def test_a_step_that_is_left_out_is_noticed(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, other: Callable[..., object]
) -> None:
    monkeypatch.setattr(owner, name, other)
    assert is_noticed(range(6))
