"""The rules of a user, in the language of Redis: `on >secret ~mail:* +@producer -deljob %r=1000`.

| rule | meaning |
|---|---|
| `on`, `off` | whether the user can log in |
| `>password`, `<password` | add or remove a password; `#hash` and `!hash` do the same with its SHA-256 in hexadecimal |
| `nopass`, `resetpass` | any password is right; no password is right |
| `~pattern`, `allkeys`, `resetkeys` | allow queues whose names match; allow all; allow none |
| `+name`, `-name` | allow or forbid a command, a subcommand (`config|get`) or a category (`@inspect`) |
| `allcommands`, `nocommands` | the same as `+@all` and `-@all` |
| `%r=number` | commands per second on this node, 0 for no limit; logins do not count |
| `%c=number` | connections at a time to this node, 0 for no limit |
| `reset` | back to a new user: off, without passwords, queues and commands |

Rules apply from left to right. A value of `Rules` never changes: `changed` returns a new one.
"""

from __future__ import annotations

from hashlib import sha256
from hmac import compare_digest
from typing import Final

from mypy_extensions import i64

from disqued.config.glob import Glob
from disqued.config.option import REDACTED
from disqued.core.access.catalogue import ALL, Catalogue
from disqued.resp.integers import parse_integer
from disqued.resp.words import split_words

_EVERY_QUEUE: Final = b"*"
_HASH_DIGITS: Final = 64
_SPECIAL: Final = frozenset(b"*?[\\")
_KEPT_NAMES: Final = 1000
"""For how many names of queues the answer is kept."""
MOST_NAME_BYTES: Final = 1024
"""The longest name of a queue that a pattern matches. A client chooses the names that it sends, and no other limit
bounds the time to match them or the memory of those that are kept."""
_MOST: Final = 1_000_000_000
MOST_RULES: Final = 2000
"""How many rules can be set at once; each is compared with the ones before."""
MOST_PATTERNS: Final = 1000
MOST_PASSWORDS: Final = 100
SECRET_SIGNS: Final = (b">", b"<", b"#", b"!")
"""What rules with a password or its hash begin with."""


class RuleError(ValueError):
    """A rule is invalid; the text says why, with the rule but without a password."""


def digest(password: bytes) -> bytes:
    """The SHA-256 of a password in hexadecimal, which is what is kept of it."""
    return sha256(password).hexdigest().encode()


class Rules:
    """What a user may do."""

    def __init__(self) -> None:
        self.enabled: bool = False
        self.any_password: bool = False
        self.passwords: tuple[bytes, ...] = ()
        """Digests of the passwords."""
        self.selectors: tuple[bytes, ...] = ()
        """The rules about commands, each with its sign, without those that a later one makes void."""
        self.commands: frozenset[bytes] = frozenset()
        """What `selectors` allow, as named in the catalogue."""
        self.patterns: tuple[bytes, ...] = ()
        self.every_queue: bool = False
        self.rate: i64 = 0
        """Commands per second; 0 for no limit."""
        self.most_connections: i64 = 0
        """Connections at a time; 0 for no limit."""
        self._globs: list[Glob] = []
        self._known: dict[bytes, bool] = {}

    def accepts(self, password_digest: bytes) -> bool:
        """Whether a user can log in with this password. Takes the same time whichever password matches."""
        right = self.any_password
        for one in self.passwords:
            right |= compare_digest(one, password_digest)
        return right and self.enabled

    def allows_queue(self, name: bytes) -> bool:
        """Whether a pattern matches the name of a queue."""
        if self.every_queue:
            return True
        if len(name) > MOST_NAME_BYTES:
            return False
        known = self._known.get(name)
        if known is None:
            known = self._matches(name)
            if len(self._known) >= _KEPT_NAMES:
                self._known.clear()
            self._known[name] = known
        return known

    def allows_pattern(self, wanted: bytes) -> bool:
        """Whether the patterns allow every queue that another pattern matches.

        Only what is certain counts: the same pattern, or one that ends with its only special character, a `*`, and
        begins like the other one. So no user sets what holds for queues of others.
        """
        if self.every_queue or wanted in self.patterns:
            return True
        for pattern in self.patterns:
            beginning = pattern[:-1]
            if pattern[-1:] == b"*" and not _SPECIAL.intersection(beginning) and wanted.startswith(beginning):
                return True
        return False

    def _matches(self, name: bytes) -> bool:
        return any(glob.matches(name) for glob in self._globs)

    def complete(self, catalogue: Catalogue) -> None:
        """Compute what follows from the selectors and patterns."""
        allowed: frozenset[bytes] = frozenset()
        for one in self.selectors:
            members = catalogue.members(one[1:])
            if one[:1] == b"+":
                allowed |= catalogue.granted(one[1:])
            elif members is not None:
                allowed -= members
        self.commands = allowed
        self.every_queue = _EVERY_QUEUE in self.patterns
        self._globs = [Glob(pattern) for pattern in self.patterns]

    def allows_everything(self, catalogue: Catalogue) -> bool:
        """Whether no request needs a check."""
        return self.every_queue and self.rate == 0 and self.commands == catalogue.all

    def describe(self) -> bytes:
        """The rules in one line, from which `changed` makes the same ones."""
        words = [b"on" if self.enabled else b"off"]
        if self.any_password:
            words.append(b"nopass")
        words += [b"#" + one for one in self.passwords]
        words += [b"~" + pattern for pattern in self.patterns]
        words += self.selectors or [b"-@all"]
        if self.rate > 0:
            words.append(b"%%r=%d" % self.rate)
        if self.most_connections > 0:
            words.append(b"%%c=%d" % self.most_connections)
        return b" ".join(words)

    def copy(self) -> Rules:
        """The same rules as a value that is still being made."""
        new = Rules()
        new.enabled, new.any_password, new.passwords = self.enabled, self.any_password, self.passwords
        new.selectors, new.patterns = self.selectors, self.patterns
        new.rate, new.most_connections = self.rate, self.most_connections
        return new


def changed(rules: Rules, words: list[bytes], catalogue: Catalogue) -> Rules:
    """The rules after applying more of them. Raises RuleError."""
    if len(words) > MOST_RULES:
        raise RuleError(f"{len(words)} rules: at most {MOST_RULES} are possible at once")
    new = rules.copy()
    for word in words:
        if word.lower() == b"reset":
            new = Rules()
            continue
        why = _apply(new, word, catalogue)
        if why:
            raise RuleError(f"'{_shown(word)}': {why}")
    if len(new.patterns) > MOST_PATTERNS or len(new.passwords) > MOST_PASSWORDS:
        raise RuleError(f"a user has at most {MOST_PATTERNS} patterns and {MOST_PASSWORDS} passwords")
    new.complete(catalogue)
    return new


def _shown(word: bytes) -> str:
    """A rule as an error shows it."""
    if word[:1] in SECRET_SIGNS:
        return word[:1].decode() + REDACTED
    return word[:100].decode("utf-8", "replace")


def _apply(rules: Rules, word: bytes, catalogue: Catalogue) -> str:
    """Apply one rule; returns why it is invalid, or an empty text."""
    name = word.lower()
    if name in _WORDS:
        _apply_word(rules, name)
        return ""
    sign, rest = word[:1], word[1:]
    if sign == b"%":
        return _apply_limit(rules, name)
    if sign in {b"+", b"-"}:
        return _select(rules, sign, rest.lower(), catalogue)
    if sign == b"~":
        if not 0 < len(rest) <= MOST_NAME_BYTES or split_words(rest) != [rest]:
            return "a pattern has 1 to 1024 bytes and no blanks or quotes; use ? for them"
        rules.patterns = (*[pattern for pattern in rules.patterns if pattern != rest], rest)
        return ""
    return _apply_password(rules, sign, rest)


_WORDS: Final = frozenset(
    (b"on", b"off", b"nopass", b"resetpass", b"allkeys", b"resetkeys", b"allcommands", b"nocommands")
)


def _apply_word(rules: Rules, name: bytes) -> None:
    if name in {b"on", b"off"}:
        rules.enabled = name == b"on"
    elif name in {b"nopass", b"resetpass"}:
        rules.any_password = name == b"nopass"
        rules.passwords = ()
    elif name in {b"allkeys", b"resetkeys"}:
        rules.patterns = (_EVERY_QUEUE,) if name == b"allkeys" else ()
    elif name == b"allcommands":
        rules.selectors = (b"+" + ALL,)
    elif name == b"nocommands":
        rules.selectors = ()


def _apply_limit(rules: Rules, name: bytes) -> str:
    """`%r=` and `%c=`."""
    value = parse_integer(name[3:])
    if name[:3] not in {b"%r=", b"%c="} or value is None or not 0 <= value <= _MOST:
        return f"a limit is %r= (commands per second) or %c= (connections) and a number from 0 to {_MOST}"
    if name[1:2] == b"r":
        rules.rate = value
    else:
        rules.most_connections = value
    return ""


def _apply_password(rules: Rules, sign: bytes, rest: bytes) -> str:
    """The rules that begin with `>`, `<`, `#` and `!`."""
    if sign in {b"#", b"!"}:
        if len(rest) != _HASH_DIGITS or rest.strip(b"0123456789abcdef"):
            return f"a hash is a SHA-256 of {_HASH_DIGITS} lower-case hexadecimal digits"
        hashed = rest
    elif sign in {b">", b"<"}:
        hashed = digest(rest)
    else:
        return "Syntax error"
    others = tuple([one for one in rules.passwords if one != hashed])
    if sign in {b">", b"#"}:
        rules.passwords = (*others, hashed)
        rules.any_password = False
    elif len(others) == len(rules.passwords):
        return "The password you are trying to remove from the user does not exist"
    else:
        rules.passwords = others
    return ""


def _select(rules: Rules, sign: bytes, selector: bytes, catalogue: Catalogue) -> str:
    """Add a rule about commands, and drop those before it that it makes void."""
    members = catalogue.members(selector)
    if members is None:
        return "Unknown command or category name in ACL"
    if selector == ALL:
        rules.selectors = () if sign == b"-" else (sign + ALL,)
        return ""
    below = selector + b"|"
    kept = [one for one in rules.selectors if one[1:] != selector and not one[1:].startswith(below)]
    rules.selectors = (*kept, sign + selector)
    return ""
