"""The file with the password of a server process."""

from __future__ import annotations

import signal
from pathlib import Path

from disqued.client import Client, ResponseError
from disqued.testing.processes import ServerProcess


def admits(server: ServerProcess, password: str) -> bool:
    """Whether a client can log in."""
    with Client([f"127.0.0.1:{server.port}"], password=password, discover=False) as client:
        try:
            return client.ping() == "PONG"
        except ResponseError:
            return False


def test_a_server_reads_the_password_file_again_on_sighup_and_warns_if_all_users_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text("first\n")
    path.chmod(0o644)
    with ServerProcess(tmp_path, "--requirepass-file", "password") as server:
        assert admits(server, "first")
        assert "All users of this machine can read password" in server.output
        path.write_text("second\n")
        server.process.send_signal(signal.SIGHUP)
        server.wait_until(lambda: admits(server, "second"), "the new password is read")
        assert not admits(server, "first")
