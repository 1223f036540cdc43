"""The transfers of one drain that wait for confirmations, within a window (`placing.window`)."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.leaving.transfer import Transfer
from disqued.placing.window import Window


class InFlight:
    """The transfers of one drain that are not confirmed yet."""

    def __init__(self) -> None:
        self.transfers: dict[bytes, Transfer] = {}
        """By job ID, in the order in which nodes were last asked."""
        self._window = Window()

    def has_room(self, *, answering: bool) -> bool:
        """Whether another transfer may begin; only a few may while no node is `answering`."""
        return self._window.has_room(len(self.transfers), answering=answering)

    def add(self, transfer: Transfer) -> None:
        """Begin to wait for the confirmations of a transfer."""
        self.transfers[transfer.job.id] = transfer
        self._window.add(transfer.size_bytes)

    def remove(self, transfer: Transfer) -> None:
        """Stop waiting for a transfer that is over."""
        del self.transfers[transfer.job.id]
        self._window.remove(transfer.size_bytes)

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
        self._window.note_confirmed(transfer.size_bytes, took_ms)
