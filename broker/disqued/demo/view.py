"""What is shown while the demonstration runs: bars, nodes and workers on a terminal, a line now and then elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from disqued.demo.tally import NodeTally, Tally, WorkerTally

DIRECT = "Counting without the broker"
BROKERED = "Counting through the cluster"

LINES = 5
"""How many lines of progress each phase has when they are plain."""


class View(Protocol):
    """Follows both phases of the run; used as a context."""

    def counted(self, files: int) -> None:
        """So many more files were counted directly."""

    def reported(self, tally: Tally) -> None:
        """The workers have got so far."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


def view(console: Console, files: int) -> View:
    """The view that suits the console."""
    return LiveView(console, files) if console.is_terminal else PlainView(console, files)


class PlainView:
    """Plain lines, a few for each phase and one for each thing that happens."""

    def __init__(self, console: Console, files: int) -> None:
        self._console = console
        self._files = files
        self._shown = {DIRECT: 0, BROKERED: 0}
        self._counted = 0
        self._told: set[str] = set()

    def counted(self, files: int) -> None:
        """One line whenever another part of the files is done."""
        self._counted += files
        self._line(DIRECT, self._counted)

    def reported(self, tally: Tally) -> None:
        """The same for jobs, and one line for each thing that happened."""
        for worker in tally.workers:
            if worker.killed:
                self._tell(f"{worker.name} was killed holding {len(worker.held)} jobs")
        for node in tally.nodes:
            if node.killed_s is not None:
                self._tell(f"{node.name} was killed holding {node.held} jobs")
            if node.started_s is not None:
                self._tell(f"{node.name} was started again")
            if node.is_back:
                self._tell(f"{node.name} is back in the cluster")
        self._line(BROKERED, len(tally.jobs.completed))

    def _tell(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self._console.print(line)

    def _line(self, phase: str, done: int) -> None:
        part = done * LINES // self._files
        if part > self._shown[phase]:
            self._shown[phase] = part
            self._console.print(f"{phase}: {done} of {self._files} files")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return


class LiveView:
    """A bar for each phase and a row for each node and worker, repainted in place."""

    def __init__(self, console: Console, files: int) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(40),
            MofNCompleteColumn(),
            TextColumn("files"),
            TimeElapsedColumn(),
        )
        self._progress = Progress(*columns, console=console)
        self._direct: TaskID = self._progress.add_task(DIRECT, total=files)
        self._brokered: TaskID = self._progress.add_task(BROKERED, total=files, start=False)
        self._live = Live(self._progress, console=console, refresh_per_second=10)

    def counted(self, files: int) -> None:
        """Move the first bar."""
        self._progress.advance(self._direct, files)

    def reported(self, tally: Tally) -> None:
        """Move the second bar and repaint nodes and workers."""
        self._progress.start_task(self._brokered)
        self._progress.update(self._brokered, completed=len(tally.jobs.completed))
        self._live.update(Group(self._progress, _nodes(tally), _workers(tally)))

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.stop()


def _nodes(tally: Tally) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for node in tally.nodes:
        grid.add_row(f"  {node.name}", f"{node.copies} copies", _node_state(node), f"[dim]{node.part}[/]")
    return grid


def _node_state(node: NodeTally) -> str:
    if node.killed_s is None:
        return "[green]up[/]"
    if node.is_back:
        return f"[green]up again[/] [dim](was killed holding {node.held} jobs)[/]"
    if node.started_s is not None:
        return "[yellow]started again[/]"
    return f"[bold red]killed holding {node.held} jobs[/] [dim](there are copies elsewhere)[/]"


def _workers(tally: Tally) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for worker in tally.workers:
        grid.add_row(f"  {worker.name}", f"{worker.acknowledged} done", _state(worker))
    return grid


def _state(worker: WorkerTally) -> str:
    held = len(worker.held)
    if worker.killed:
        return f"[bold red]killed holding {held} jobs[/] [dim](they come back after their retry time)[/]"
    return "[green]" + "■" * held + "[/]"
