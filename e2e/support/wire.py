"""A way to the API server that a test can cut: a listener on this machine that passes bytes on."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

import yaml

LOOK_S: Final = 0.2
CHUNK: Final = 1 << 16
HTTPS: Final = 443


class Wire:
    """Passes on what a kubeconfig's clients and its server say, until it is cut. Used as a context.

    `kubeconfig` is a file that leads through it.
    """

    def __init__(self, kubeconfig: str, folder: Path) -> None:
        config = yaml.safe_load(Path(kubeconfig).read_text())
        name = next(entry for entry in config["contexts"] if entry["name"] == config["current-context"])
        cluster = next(entry for entry in config["clusters"] if entry["name"] == name["context"]["cluster"])["cluster"]
        server = urlsplit(cluster["server"])
        self._server = (server.hostname or "", server.port or HTTPS)
        self._listener = socket.create_server(("127.0.0.1", 0))
        cluster["tls-server-name"] = self._server[0]
        cluster["server"] = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        path = folder / "wire.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        self.kubeconfig = str(path)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._ends: dict[socket.socket, socket.socket] = {}
        self._is_cut = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()
        self._listener.close()
        self._selector.close()

    def cut(self) -> None:
        """Nothing is passed on any more: connections hang, new ones are taken and hang as well."""
        self._is_cut.set()

    def mend(self) -> None:
        """It is passed on again; what hung breaks off."""
        self._is_cut.clear()

    def _run(self) -> None:
        cut = False
        while not self._ending.is_set():
            if self._is_cut.is_set():
                cut = True
                self._ending.wait(LOOK_S)
                continue
            if cut:
                cut = False
                self._hang_up()
            for key, _ in self._selector.select(LOOK_S):
                self._serve(key.fileobj)
        self._hang_up()

    def _serve(self, ready: Any) -> None:
        if ready is self._listener:
            self._accept()
        elif ready in self._ends:
            self._pass_on(ready)

    def _accept(self) -> None:
        ours, _ = self._listener.accept()
        try:
            theirs = socket.create_connection(self._server, timeout=LOOK_S * 10)
        except OSError:
            ours.close()
            return
        theirs.settimeout(None)
        for one, other in ((ours, theirs), (theirs, ours)):
            self._ends[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _pass_on(self, one: socket.socket) -> None:
        try:
            data = one.recv(CHUNK)
            if data:
                self._ends[one].sendall(data)
                return
        except OSError:
            data = b""
        self._close(one)

    def _close(self, one: socket.socket) -> None:
        for end in (one, self._ends.pop(one)):
            self._ends.pop(end, None)
            with contextlib.suppress(KeyError):
                self._selector.unregister(end)
            end.close()

    def _hang_up(self) -> None:
        while self._ends:
            self._close(next(iter(self._ends)))
