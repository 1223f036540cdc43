"""A TCP proxy to the API server, which a test can cut to simulate a network partition."""

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

POLL_S: Final = 0.2
CHUNK: Final = 1 << 16
HTTPS: Final = 443


class ApiProxy:
    """Forwards connections to the server of a kubeconfig, until it is cut. A context manager.

    `kubeconfig` is the path of a kubeconfig file that uses the proxy.
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
        path = folder / "proxy.kubeconfig"
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
        """Stop forwarding: existing connections hang, and new ones are accepted and hang."""
        self._is_cut.set()

    def restore(self) -> None:
        """Forward again; connections that hang are closed."""
        self._is_cut.clear()

    def _run(self) -> None:
        cut = False
        while not self._ending.is_set():
            if self._is_cut.is_set():
                cut = True
                self._ending.wait(POLL_S)
                continue
            if cut:
                cut = False
                self._close_all()
            for key, _ in self._selector.select(POLL_S):
                self._serve(key.fileobj)
        self._close_all()

    def _serve(self, ready: Any) -> None:
        if ready is self._listener:
            self._accept()
        elif ready in self._ends:
            self._forward(ready)

    def _accept(self) -> None:
        ours, _ = self._listener.accept()
        try:
            theirs = socket.create_connection(self._server, timeout=POLL_S * 10)
        except OSError:
            ours.close()
            return
        theirs.settimeout(None)
        for one, other in ((ours, theirs), (theirs, ours)):
            self._ends[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _forward(self, one: socket.socket) -> None:
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

    def _close_all(self) -> None:
        while self._ends:
            self._close(next(iter(self._ends)))
