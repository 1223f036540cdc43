"""The users of one node."""

from __future__ import annotations

from typing import Final

from disqued.core.access.accesslog import AccessLog
from disqued.core.access.catalogue import Catalogue
from disqued.core.access.failures import LoginFailures
from disqued.core.access.rules import SECRET_SIGNS, RuleError, Rules, changed, digest
from disqued.core.access.user import User

DEFAULT: Final = b"default"
"""The user of connections that did not log in as another one."""
MAX_NAME_BYTES: Final = 256
MOST_USERS: Final = 10_000
_NAME_CHARACTERS: Final = bytes([one for one in range(33, 127) if one not in b"\"'"])
_DEFAULT_RULES: Final = b"on nopass ~* +@all"


class Users:
    """All users by name; there is always a default user."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.log = AccessLog()
        self.failures = LoginFailures()
        self.default = User(DEFAULT, self.default_rules(), catalogue)
        self.by_name: dict[bytes, User] = {DEFAULT: self.default}

    def default_rules(self) -> Rules:
        """The rules of the default user before any are set: everything, without a password."""
        return changed(Rules(), _DEFAULT_RULES.split(), self.catalogue)

    @property
    def open_to_all(self) -> bool:
        """Whether connections may run commands of the default user without a password."""
        rules = self.default.rules
        return rules.enabled and rules.any_password

    def require(self, passwords: list[bytes]) -> None:
        """Give the default user these passwords; none if there are none, so that it needs none."""
        rules = self.default.rules
        words = [b"resetpass", *[b"#" + digest(one) for one in passwords]] if passwords else [b"nopass"]
        self.default.follow(changed(rules, words, self.catalogue), self.catalogue)

    def set(self, name: bytes, words: list[bytes]) -> None:
        """Create a user, or change its rules. Raises RuleError, and then nothing has changed."""
        user = self.by_name.get(name)
        rules = changed(Rules() if user is None else user.rules, words, self.catalogue)
        if user is not None:
            user.follow(rules, self.catalogue)
            return
        if not _can_be_a_name(name):
            raise RuleError(
                f"a user name has 1 to {MAX_NAME_BYTES} printable characters and no blanks, and does not begin as the "
                "rule of a password does"
            )
        if len(self.by_name) >= MOST_USERS:
            raise RuleError(f"a node has at most {MOST_USERS} users")
        self.by_name[name] = User(name, rules, self.catalogue)

    def remove(self, name: bytes) -> bool:
        """Remove a user other than the default one; False if there is none of that name."""
        user = self.by_name.pop(name, None)
        if user is None:
            return False
        user.removed = True
        return True

    def read(self, words: list[bytes], found: dict[bytes, Rules]) -> None:
        """Add the rules of a user to those that were found: the words behind `user` in a line. Raises RuleError."""
        if not words or not _can_be_a_name(words[0]):
            raise RuleError("a line about a user is `user`, a name without blanks, and rules")
        if words[0] in found:
            raise RuleError(f"user '{words[0].decode()}' has more than one line")
        found[words[0]] = changed(Rules(), words[1:], self.catalogue)

    def replace(self, found: dict[bytes, Rules]) -> None:
        """Have exactly these users; those that stay keep their sessions."""
        for name in [name for name in self.by_name if name not in found and name != DEFAULT]:
            self.remove(name)
        self.default.follow(self.default_rules(), self.catalogue)
        for name, rules in found.items():
            user = self.by_name.get(name)
            if user is None:
                self.by_name[name] = User(name, rules, self.catalogue)
            else:
                user.follow(rules, self.catalogue)

    def lines(self) -> list[bytes]:
        """All users, one `user` line each, sorted by name."""
        return [b"user %b %b" % (name, self.by_name[name].rules.describe()) for name in sorted(self.by_name)]


def _can_be_a_name(name: bytes) -> bool:
    """Whether a user can have this name: one word of a line. A word with a password is shown nowhere, a name is."""
    return 0 < len(name) <= MAX_NAME_BYTES and not name.strip(_NAME_CHARACTERS) and name[:1] not in SECRET_SIGNS
