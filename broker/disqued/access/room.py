"""The access room of one node: takes users and passwords from directives and files, at start and when these change."""

from __future__ import annotations

import posixpath
from typing import Final

from disqued.core.access.rules import RuleError, Rules
from disqued.core.runtime.authentication import apply_changes
from disqued.core.runtime.room import Room
from disqued.core.runtime.state import NodeState
from disqued.errors import ReplyError
from disqued.resp.words import split_words

NAME: Final = "access"
_PASSWORDS: Final = ("requirepass", "requirepass_former")
_OTHER_FILES: Final = (
    *("appendfilename", "cluster_config_file", "cluster_settings_file", "logfile", "aclfile"),
    *("requirepass_file", "cluster_secret_file"),
    *("tls_cert_file", "tls_key_file", "tls_ca_cert_file"),
)
"""The directives whose files the audit log must not be appended to."""
_MAX_PASSWORD_BYTES: Final = 512
_TWO_SOURCES: Final = "ERR both requirepass and requirepass-file are set: remove one of them"


class AccessRoom(Room):
    """Keeps `NodeState.users` as the configuration says."""

    def __init__(self, state: NodeState) -> None:
        """Raises ReplyError when users or passwords cannot be read; the node must not start without them."""
        super().__init__(state)
        config = state.config
        self._gave_passwords: bool = bool(config.requirepass or config.requirepass_file)
        """Whether the passwords of the default user are those of the configuration."""
        if config.user and config.aclfile:
            raise ReplyError("ERR both `user` lines and aclfile are set: move the lines to the file")
        if config.requirepass and config.requirepass_file:
            raise ReplyError(_TWO_SOURCES)
        if config.audit_log_file:
            self._audit_to(config.audit_log_file)
        if config.aclfile:
            load_users(state)
            return
        try:
            found: dict[bytes, Rules] = {}
            for words in config.user:
                state.users.read(list(words), found)
            state.users.replace(found)
        except RuleError as error:
            raise ReplyError(f"ERR in a `user` line: {error}") from error
        self._require(_passwords(state))

    def _audit_to(self, name: str) -> None:
        """Write the audit log to a file. Raises ReplyError."""
        others = [getattr(self.state.config, one) for one in _OTHER_FILES]
        if name and self._place(name) in [self._place(other) for other in others if other]:
            raise ReplyError(f"ERR audit-log-file '{name}' is the name of another file of this node: use another name")
        error = self.state.audit.switch(name)
        if error:
            raise ReplyError(f"ERR cannot open audit-log-file '{name}': {error}")

    def _place(self, name: str) -> str:
        """The absolute name of a file, by which names of the same file are equal unless links lead to it."""
        try:
            directory = self.state.host.working_directory()
        except OSError:
            directory = ""  # it was removed
        return posixpath.normpath(posixpath.join(directory, name))

    def config_changing(self, attribute: str, value: object) -> None:
        """Refuse a password that would have no effect, and a file that cannot be read or written."""
        if attribute in _PASSWORDS and self.state.config.requirepass_file:
            raise ReplyError("ERR passwords come from requirepass-file: change the file, then send SIGHUP")
        if attribute == "requirepass_file" and value:
            if self.state.config.requirepass:
                raise ReplyError(_TWO_SOURCES)
            read_passwords(self.state, str(value))
        if attribute == "audit_log_file":
            self._audit_to(str(value))

    def config_changed(self, attribute: str) -> None:
        """Apply other passwords, and whether certificates name users."""
        state = self.state
        if attribute == "tls_auth_clients_user":
            apply_changes(state)
        if attribute in _PASSWORDS or attribute == "requirepass_file":
            self._require(_passwords(state))
            apply_changes(state)

    def _require(self, passwords: list[bytes]) -> None:
        """Give the default user the passwords of the configuration, or take them away when they are withdrawn there.

        Passwords that it has from ACL SETUSER or a file of users stay while the configuration has none.
        """
        if passwords or self._gave_passwords:
            self.state.users.require(passwords)
        self._gave_passwords = bool(passwords)

    def files_changed(self) -> None:
        """Open the audit log again, and read the password file again; one that cannot be used changes nothing."""
        state = self.state
        if state.audit.file is not None:
            state.audit.file.reopen()
        if not state.config.requirepass_file:
            return
        try:
            self._require(_passwords(state))
        except ReplyError as error:
            state.host.log("warning", f"The passwords are unchanged: {error.text.removeprefix('ERR ')}")
            return
        apply_changes(state)
        state.host.log("notice", f"Passwords read: file={state.config.requirepass_file}")


def _passwords(state: NodeState) -> list[bytes]:
    """The passwords of the default user; a former password alone is none."""
    config = state.config
    if config.requirepass_file:
        return read_passwords(state, config.requirepass_file)
    if not config.requirepass:
        return []
    return [one for one in (config.requirepass, config.requirepass_former) if one]


def read_passwords(state: NodeState, path: str) -> list[bytes]:
    """The password in a file and, in a second line, the former one. Raises ReplyError."""
    try:
        content = state.host.read_secret(path)
    except OSError as error:
        raise ReplyError(f"ERR cannot read requirepass-file '{path}': {error.strerror}") from error
    lines = content.replace(b"\r\n", b"\n").rstrip(b"\n").split(b"\n")
    if not all(lines) or len(lines) > 2 or max(map(len, lines)) > _MAX_PASSWORD_BYTES:
        raise ReplyError(
            f"ERR requirepass-file '{path}' must have one password, or two in two lines, of at most "
            f"{_MAX_PASSWORD_BYTES} bytes"
        )
    return lines


def load_users(state: NodeState) -> None:
    """Replace all users by those of the file, or none if a line is wrong. Raises ReplyError."""
    path = state.config.aclfile
    if not path:
        raise ReplyError("ERR This node has no aclfile: set the directive and restart")
    try:
        text = state.host.read_file(path)
    except OSError as error:
        raise ReplyError(f"ERR cannot read aclfile '{path}': {error.strerror}") from error
    found: dict[bytes, Rules] = {}
    for number, line in enumerate(text.split("\n"), 1):
        words = _words(line)
        if words is None:
            continue
        try:
            if words[:1] != [b"user"]:
                raise RuleError("a line begins with `user`")
            state.users.read(words[1:], found)
        except RuleError as error:
            raise ReplyError(f"ERR aclfile '{path}', line {number}: {error}. No user was changed.") from error
    passwords = _passwords(state)  # before any user is replaced: they may not be readable
    state.users.replace(found)
    if passwords:
        state.users.require(passwords)
    apply_changes(state)


def _words(line: str) -> list[bytes] | None:
    """The words of a line; None for an empty line or a comment, an empty list for unbalanced quotes."""
    stripped = line.strip()
    if not stripped or stripped.startswith("#"):
        return None
    return split_words(stripped.encode("utf-8", "surrogateescape")) or []


def save_users(state: NodeState) -> None:
    """Write all users to the file. Raises ReplyError."""
    path = state.config.aclfile
    if not path:
        raise ReplyError("ERR This node has no aclfile: set the directive and restart")
    text = "".join([line.decode("utf-8", "surrogateescape") + "\n" for line in state.users.lines()])
    try:
        state.host.write_file(path, text)
    except OSError as error:
        raise ReplyError(f"ERR cannot write aclfile '{path}': {error.strerror}") from error
