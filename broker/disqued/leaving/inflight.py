"""The transfers that wait for confirmations, within a window of jobs and bytes.

The window of bytes starts small. It grows while confirmations arrive fast and shrinks when they are slow, because pings
wait behind the jobs, and a node that answers late is considered down.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.leaving.transfer import Transfer

MAX_TRANSFERS: Final = 1000
MAX_PROBES: Final = 8
"""Transfers in flight while no node answers."""
LEAST_BYTES: Final = 64 << 10
FIRST_BYTES: Final = 256 << 10
MOST_BYTES: Final = 4 << 20
"""Bounds of the window of bytes. A job that is larger than the window is sent alone."""
FAST_MS: Final = 250
SLOW_MS: Final = 1000


class InFlight:
    """The transfers of one drain that are not confirmed yet."""

    def __init__(self) -> None:
        self.transfers: dict[bytes, Transfer] = {}
        """By job ID, in the order in which nodes were last asked."""
        self._bytes: i64 = 0
        self._window_bytes: i64 = FIRST_BYTES

    def has_room(self, *, answering: bool) -> bool:
        """Whether another transfer may begin; only a few may while no node is `answering`."""
        most: i64 = MAX_TRANSFERS if answering else MAX_PROBES
        return len(self.transfers) < most and self._bytes < self._window_bytes

    def add(self, transfer: Transfer) -> None:
        """Begin to wait for the confirmations of a transfer."""
        self.transfers[transfer.job.id] = transfer
        self._bytes += transfer.size_bytes

    def remove(self, transfer: Transfer) -> None:
        """Stop waiting for a transfer that is over."""
        del self.transfers[transfer.job.id]
        self._bytes -= transfer.size_bytes

    def has(self, transfer: Transfer) -> bool:
        """Whether a transfer still waits for confirmations."""
        return self.transfers.get(transfer.job.id) is transfer

    def asked_again(self, transfer: Transfer, now_ms: i64) -> None:
        """Note that nodes were asked again to take a job; the transfer becomes the last one."""
        transfer.asked_ms = now_ms
        transfer.rounds += 1
        del self.transfers[transfer.job.id]
        self.transfers[transfer.job.id] = transfer

    def asked_before(self, before_ms: i64) -> list[Transfer]:
        """The transfers for which no node was asked since that time."""
        found: list[Transfer] = []
        for transfer in self.transfers.values():
            if transfer.asked_ms > before_ms:
                break
            found.append(transfer)
        return found

    def note_confirmed(self, transfer: Transfer, took_ms: i64) -> None:
        """Adapt the window to the time that a confirmation took."""
        if took_ms <= FAST_MS:
            self._window_bytes = min(self._window_bytes + transfer.size_bytes, MOST_BYTES)
        elif took_ms > SLOW_MS:
            self._window_bytes = max(self._window_bytes - transfer.size_bytes, LEAST_BYTES)
