"""The fields of the append-only file in INFO: those of the original first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.core.telemetry.fields import Fields
    from disqued.persistence.aof import Aof

_STATUS_NAMES: Final = ("off", "wait-rewrite", "on")


def status_fields(state: NodeState, aof: Aof) -> Fields:
    """Return the fields, whose sizes are in bytes."""
    file = aof.file
    rewrite = aof.rewrite
    fields: Fields = [
        ("loading", int(state.loading)),
        ("aof_enabled", int(file.enabled)),  # 0 while the file is loaded
        ("aof_state", _STATUS_NAMES[file.status]),
        ("aof_rewrite_in_progress", int(rewrite.running)),
        ("aof_rewrite_scheduled", 0),
        ("aof_last_rewrite_time_sec", int(rewrite.last_s)),
        ("aof_current_rewrite_time_sec", rewrite.current_s),
        ("aof_last_bgrewrite_status", "err" if rewrite.failures > 0 else "ok"),
        ("aof_last_write_status", "err" if file.failed else "ok"),
    ]
    if file.enabled:
        fields += [
            ("aof_current_size", int(file.size_bytes)),
            ("aof_base_size", int(rewrite.base_bytes)),
            ("aof_pending_rewrite", 0),
            ("aof_buffer_length", int(file.groups.buffer_bytes)),
            ("aof_rewrite_buffer_length", rewrite.buffer_bytes),
            ("aof_pending_bio_fsync", int(file.sync.work is not None)),
            ("aof_delayed_fsync", int(file.sync.delayed)),
            ("aof_format", int(state.lifecycle.journal.file_format)),
            ("aof_damaged_records", int(aof.damaged_places)),
            ("aof_last_fsync_ms", int(file.sync.last_ms)),
            ("aof_unsynced_bytes", int(file.unsynced_bytes)),
            ("aof_refusing", file.refusal.why),
        ]
    if aof.loader is not None:
        fields += aof.loader.progress.fields()
    return fields
