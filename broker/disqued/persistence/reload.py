"""DEBUG LOADAOF: drop everything in memory, and load it again from the append-only file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.core.host import disk
from disqued.core.host.disk import DiskWork
from disqued.core.runtime.flush import flush_all
from disqued.persistence.aof import OFF
from disqued.persistence.load import Loader

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.persistence.aof import Aof


def reload(state: NodeState, aof: Aof) -> str:
    """Write and sync all records, drop all jobs and queues, and load the file; wait for the disk.

    Returns the error, empty on success; after an error nothing was dropped. Damage that the configuration does not
    allow ends the node, as at the start.
    """
    error = aof.end(rewrite=False)
    if error:
        return error
    look = DiskWork(disk.READ, aof.name)
    state.host.disk.perform(look)
    if look.error:
        return f"can't read {aof.name}: {look.error}"
    if look.file_bytes == 0:
        return f"{aof.name} is empty"
    state.lifecycle.journal.on = False
    aof.status = OFF  # what is dropped now must stay in the file
    flush_all(state)
    loader = Loader(aof, state, look.file_bytes, None)
    aof.loader = loader
    loader.begin()
    while loader.ready:
        loader.slice()
    return ""
