"""Shows progress: bars, nodes and workers on a terminal, a few lines of text elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from disqued.demo.report import NodeReport, Report, WorkerReport

DIRECT = "Counting without the broker"
BROKERED = "Counting through the cluster"

LINES = 5
"""The number of progress lines per phase when the output is no terminal."""


class View(Protocol):
    """Shows both phases of the run. Use it as a context manager."""

    def counted(self, files: int) -> None:
        """Show that this many more files were counted directly."""

    def reported(self, report: Report) -> None:
        """Show how far the workers are."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


def view(console: Console, files: int) -> View:
    """Return the view that suits the console."""
    return LiveView(console, files) if console.is_terminal else PlainView(console, files)


class PlainView:
    """Prints a few lines for each phase and one for each event."""

    def __init__(self, console: Console, files: int) -> None:
        self._console = console
        self._files = files
        self._shown = {DIRECT: 0, BROKERED: 0}
        self._counted = 0
        self._printed: set[str] = set()

    def counted(self, files: int) -> None:
        """Print a line whenever another fifth of the files is done."""
        self._counted += files
        self._line(DIRECT, self._counted)

    def reported(self, report: Report) -> None:
        """Print a line for each new event, and whenever another fifth of the jobs is done."""
        for worker in report.workers:
            if worker.killed:
                self._print_once(f"{worker.name} was killed holding {len(worker.held)} jobs")
        for node in report.nodes:
            if node.killed_s is not None:
                self._print_once(f"{node.name} was killed holding {node.held} jobs")
            if node.started_s is not None:
                self._print_once(f"{node.name} was restarted")
            if node.is_back:
                self._print_once(f"{node.name} has rejoined the cluster")
        self._line(BROKERED, len(report.jobs.completed))

    def _print_once(self, line: str) -> None:
        if line not in self._printed:
            self._printed.add(line)
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
    """Updates a bar for each phase and a row for each node and worker in place."""

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

    def reported(self, report: Report) -> None:
        """Move the second bar and update nodes and workers."""
        self._progress.start_task(self._brokered)
        self._progress.update(self._brokered, completed=len(report.jobs.completed))
        self._live.update(Group(self._progress, _nodes(report), _workers(report)))

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.stop()


def _nodes(report: Report) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for node in report.nodes:
        grid.add_row(f"  {node.name}", f"{node.copies} copies", _node_state(node), f"[dim]{node.part}[/]")
    return grid


def _node_state(node: NodeReport) -> str:
    if node.killed_s is None:
        return "[green]up[/]"
    if node.is_back:
        return f"[green]up again[/] [dim](was killed holding {node.held} jobs)[/]"
    if node.started_s is not None:
        return "[yellow]restarted[/]"
    return f"[bold red]killed holding {node.held} jobs[/] [dim](other nodes hold copies)[/]"


def _workers(report: Report) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for worker in report.workers:
        grid.add_row(f"  {worker.name}", f"{worker.acknowledged} done", _state(worker))
    return grid


def _state(worker: WorkerReport) -> str:
    held = len(worker.held)
    if worker.killed:
        return f"[bold red]killed holding {held} jobs[/] [dim](delivered again after their retry time)[/]"
    return "[green]" + "■" * held + "[/]"
