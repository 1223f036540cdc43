"""What commands do with ordered queues: one row for each command that takes queues or jobs."""

from __future__ import annotations

from typing import Final

from disqued.ordered import ackjob, addjob, getjob, listing, movejob, purging, questions, redrive
from disqued.ordered.room import Alternative

ALTERNATIVES: Final[dict[bytes, Alternative]] = {
    b"addjob": addjob.addjob,
    b"getjob": getjob.getjob,
    b"ackjob": ackjob.ackjob,
    b"fastack": ackjob.fastack,
    b"deljob": ackjob.deljob,
    b"nack": ackjob.nack,
    b"enqueue": ackjob.enqueue,
    b"dequeue": ackjob.dequeue,
    b"working": ackjob.working,
    b"qscan": listing.qscan,
    b"qlen": questions.about_queue,
    b"qstat": questions.about_queue,
    b"qpeek": questions.qpeek,
    b"show": questions.show,
    b"pause": questions.pause,
    b"qpurge": purging.qpurge,
    b"qcount": purging.qcount,
    b"movejob": movejob.movejob,
    b"redrive": redrive.redrive,
}
