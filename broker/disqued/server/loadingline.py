"""The progress of loading, as a line on the terminal that started the server."""

from __future__ import annotations

import os
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from disqued.persistence.room import aof_of

if TYPE_CHECKING:
    from disqued.node import Node
    from disqued.server.shell import Shell

_STANDARD_ERROR: Final = 2
_PAUSE_S: Final = 0.2
_ERASE: Final = "\r\x1b[K"


class LoadingLine:
    """Shows the line while the context lasts, if `shown` and standard error is a terminal."""

    def __init__(self, node: Node, shell: Shell, *, shown: bool) -> None:
        self._node = node
        self._shell = shell
        self._shown = shown and os.isatty(_STANDARD_ERROR)
        self._written = False

    def __enter__(self) -> Self:
        if self._shown:
            self._shell.call_later(_PAUSE_S, self._show)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._shown = False
        if self._written:
            os.write(_STANDARD_ERROR, _ERASE.encode())

    def _show(self) -> None:
        loader = aof_of(self._node.state).loader
        if self._shown and loader is not None:
            self._written = True
            os.write(_STANDARD_ERROR, f"{_ERASE}{loader.progress.line()}\r".encode())  # a log line overwrites it
            self._shell.call_later(_PAUSE_S, self._show)
