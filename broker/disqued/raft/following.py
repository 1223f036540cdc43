"""The follower's part: entries and snapshots of the leader.

An append fits if the log has its preceding entry. Entries that are there already, with the same term, stay: the append
may be an old one. The first entry with another term and all after it are replaced. Committed entries are never
replaced, so what an append has at or below the commit index is skipped.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.raft.core import Core
from disqued.raft.entry import Entry
from disqued.raft.log import Log
from disqued.raft.message import APPEND_REPLY, Message


class Following:
    """What a replica does with the appends and snapshots of its leader."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def append(self, message: Message) -> None:
        """Store the entries of an append if they fit, and learn the commit index."""
        core = self._core
        log = core.log
        entries = message.entries
        last: i64 = message.index + len(entries)
        if message.index < core.committed:
            if last <= core.committed:
                self.confirm(message, core.committed)
                return
            entries = entries[core.committed - message.index :]
        elif log.term_at(message.index) != message.log_term:
            self._refuse(message)
            return
        self._store(log, entries)
        commit: i64 = min(message.commit, last)
        if commit > core.committed:
            core.commit(commit)
        self.confirm(message, last)

    def _store(self, log: Log, entries: list[Entry]) -> None:
        for entry in entries:
            if entry.index <= log.last:
                if log.term_at(entry.index) == entry.term:
                    continue
                assert entry.index > self._core.committed
                log.cut(entry.index)
            log.append(entry)

    def confirm(self, message: Message, index: i64) -> None:
        """Tell the leader, when it is synced, that the logs are equal up to an index."""
        reply = self._core.message(APPEND_REPLY, message.sender)
        reply.index = index
        reply.commit = self._core.committed
        self._core.send_synced(reply, index)

    def _refuse(self, message: Message) -> None:
        """Tell the leader where the logs may be equal: not after the end, not at a term above that of the append."""
        core = self._core
        reply = core.message(APPEND_REPLY, message.sender)
        reply.flag = True
        reply.index = message.index
        reply.commit = core.committed
        equal: i64 = max(core.log.equal_up_to(message.index, message.log_term), core.log.snapshot.index)
        reply.hint = equal
        reply.log_term = core.log.term_at(equal)
        core.send(reply)

    def snapshot(self, message: Message) -> None:
        """Replace the log by a snapshot that the driver has received completely, if it is ahead of this replica."""
        core = self._core
        meta = message.snapshot
        if meta is None:
            return
        if meta.index <= core.committed:
            self.confirm(message, core.committed)
            return
        if core.log.term_at(meta.index) == meta.term:
            core.commit(meta.index)
        else:
            core.log.replace(meta)
            core.commit(meta.index)
        self.confirm(message, meta.index)
