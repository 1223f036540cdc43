"""Progress logs of jobs: what workers write down, where the next worker of the job and others can read it."""

from disqued.core.runtime.subsystem import Subsystem
from disqued.progress import logentry, logjob, showlog
from disqued.progress.counters import COUNTERS
from disqued.progress.kept import NAME
from disqued.progress.record import RECORD
from disqued.progress.room import ProgressRoom

SUBSYSTEM = Subsystem(
    NAME,
    ProgressRoom,
    commands=(logjob.COMMAND, showlog.COMMAND),
    messages=logentry.MESSAGES,
    records=(RECORD,),
    counters=COUNTERS,
)
