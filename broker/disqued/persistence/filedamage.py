"""Damage in the append-only file: what of it the configuration allows, and how the file is used nevertheless.

Allowed are an end that is cut off (`aof-load-truncated`), and damage in a file whose jobs have checksums, because then
only the damaged records are lost. They are skipped, counted and logged with their place, and the file is kept under
another name before anything is written over it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.host import disk
from disqued.core.host.disk import DiskWork
from disqued.persistence.parse import GARBAGE, SKIPPED, TORN, Damage

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState

MAX_LOGGED: Final = 100
"""How many damaged places are logged one by one."""
MAX_HOLE_BYTES: Final = 1 << 20
"""The longest run of zeros that is allowed in a file without checksums."""


class FileDamage:
    """The damage that was found in one file."""

    def __init__(self, state: NodeState, name: str) -> None:
        self._state = state
        self._name = name
        self.places: i64 = 0
        """The number of damaged places that were skipped; a torn end is none of them."""
        self._first: Damage | None = None
        self._torn: Damage | None = None
        """The end that is cut off, if it is."""
        self.ends_badly: bool = False
        """Whether the file ends with garbage, which may hide the records that are appended to it."""
        self.kept: bool = False
        """Whether the file was kept under another name, so that it must be rewritten."""

    def skip(self, damage: Damage) -> None:
        """Note damage, and log it. Whether it is allowed is decided at the end of the file."""
        if damage.kind == TORN:
            self._torn = damage
            return
        self.places += 1
        self.ends_badly = damage.kind == GARBAGE
        if self._first is None:
            self._first = damage
        if self.places <= MAX_LOGGED:
            self._state.host.log(
                "warning",
                f"Damage in the append only file {self._name} from byte {damage.offset} to {damage.end}: {damage.why}",
            )

    def why_refused(self, *, has_sums: bool) -> str:
        """Why the node must not serve with what is left; empty if it may. `has_sums`: the jobs have checksums."""
        damage = self._first
        torn = self._torn
        check = f"disque-check-aof {self._name} shows what is wrong, with --fix it cuts the file off there"
        if damage is not None and not has_sums and not self._is_hole(damage):
            return (
                f"Bad file format reading the append only file {self._name} at byte {damage.offset}: {damage.why}. "
                f"Make a copy of the file first. {check}. Then start again."
            )
        if torn is not None and not self._state.config.aof_load_truncated:
            return (
                f"Unexpected end of the append only file {self._name}: its last record, from byte {torn.offset} on, is "
                f"cut off. Set aof-load-truncated to yes to start without that record; or {check}."
            )
        return ""

    def _is_hole(self, damage: Damage) -> bool:
        """Whether the only damage is a run of zeros, left by a power loss, with records after it."""
        if self.places > 1 or damage.kind != SKIPPED or damage.end - damage.offset > MAX_HOLE_BYTES:
            return False
        work = DiskWork(disk.READ, self._name)
        work.offset = damage.offset
        work.size = damage.end - damage.offset
        self._state.host.disk.perform(work)
        return not work.error and not b"".join(work.data).strip(b"\0")

    def repair(self) -> str:
        """Prepare the file for more records. Returns why the node must not serve; empty if it may.

        A damaged file is kept under another name, because it will be rewritten, and a torn end is cut off. A node whose
        log is off changes no file.
        """
        appendonly = self._state.config.appendonly
        if self.places > 0 and appendonly:
            self.kept = self._keep()
        if self.ends_badly and appendonly and not self.kept:
            return (
                f"Can't keep the damaged file {self._name} under another name, and nothing could be written behind its "
                f"damaged end. Move it away and start again, or mend it: disque-check-aof --fix {self._name}"
            )
        torn = self._torn
        if torn is None:
            return ""
        self._state.host.log(
            "warning",
            f"The end of the append only file {self._name} was cut off: {torn.end - torn.offset} bytes from "
            f"{torn.offset} on are no whole record, and are lost (aof-load-truncated)",
        )
        return self._cut_off(torn.offset) if appendonly else ""

    def _keep(self) -> bool:
        """Keep the file under another name, so that it can be inspected after the rewrite."""
        state = self._state
        work = DiskWork(disk.KEEP, self._name)
        work.other = f"{self._name}.damaged-{state.host.wall_us() // 1_000_000}"
        state.host.disk.perform(work)
        if work.error:
            state.host.log("warning", f"Can't keep the damaged file as {work.other}: {work.error}")
            return False
        state.host.log("warning", f"The damaged file is kept as {work.other}, and is rewritten without the damage")
        return True

    def _cut_off(self, offset: i64) -> str:
        work = DiskWork(disk.TRUNCATE, self._name)
        work.size = offset
        self._state.host.disk.perform(work)
        if not work.error:
            return ""
        return (
            f"Can't cut the append only file {self._name} off at byte {offset}: {work.error}. Nothing could be written "
            "behind its torn end. Make it writable, then start again."
        )

    def sound_bytes(self, size_bytes: i64) -> i64:
        """The size of the file after `repair`, if it had this size before."""
        torn = self._torn
        return torn.offset if torn is not None and self._state.config.appendonly else size_bytes

    def log_end(self) -> None:
        """Log how many places were skipped."""
        if self.places > 0:
            self._state.host.log(
                "warning", f"{self.places} damaged places in {self._name} were left out: jobs may be missing"
            )
