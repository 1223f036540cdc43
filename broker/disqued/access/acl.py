"""ACL: shows and changes the users of this node. Each node has its own users, like its own configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.access.room import load_users, save_users
from disqued.core.access.catalogue import CATEGORIES
from disqued.core.access.rules import MOST_RULES, SECRET_SIGNS, RuleError
from disqued.core.access.users import DEFAULT
from disqued.core.commands.command import Command
from disqued.core.commands.subcommand import ANY, Subcommand, choose
from disqued.core.runtime.audit import always
from disqued.core.runtime.authentication import apply_changes
from disqued.core.runtime.authorization import refusal
from disqued.errors import ReplyError, WrongArity
from disqued.resp.integers import parse_integer, require_integer

if TYPE_CHECKING:
    from disqued.config import Config
    from disqued.core.access.accesslog import Refusal
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState

_SHOWN_ENTRIES: Final = 10
_GENERATED_BITS: Final = 256
_MOST_BITS: Final = 4096


def acl(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Run the subcommand."""
    handler = choose(_SUBCOMMANDS, args)
    if handler is None:
        known = ", ".join(map(bytes.decode, _SUBCOMMANDS))
        raise ReplyError(f"ERR Unknown ACL subcommand or wrong number of arguments. Try {known}.")
    handler(state, session, args)


def _setuser(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Create a user or change its rules, at once for all its sessions; all rules apply or none."""
    try:
        state.users.set(args[2], args[3:])
    except RuleError as error:
        raise ReplyError(f"ERR Error in ACL SETUSER modifier {error}") from error
    apply_changes(state)
    session.reply_ok()


def _getuser(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the rules of a user as a map, or null."""
    user = state.users.by_name.get(args[2])
    if user is None:
        session.reply_null()
        return
    rules = user.rules
    flags = [b"on" if rules.enabled else b"off", *[b"nopass"] * rules.any_password, *[b"allkeys"] * rules.every_queue]
    session.reply_map(6)
    _reply_words(session, b"flags", flags)
    _reply_words(session, b"passwords", list(rules.passwords))
    texts = (
        (b"commands", b" ".join(rules.selectors or [b"-@all"])),
        (b"keys", b" ".join([b"~" + pattern for pattern in rules.patterns])),
    )
    for name, text in texts:
        session.reply_bulk(name)
        session.reply_bulk(text)
    for name, number in ((b"commands-per-second", rules.rate), (b"connections", rules.most_connections)):
        session.reply_bulk(name)
        session.reply_integer(int(number))


def _reply_words(session: Session, name: bytes, words: list[bytes]) -> None:
    session.reply_bulk(name)
    session.reply_array(len(words))
    for word in words:
        session.reply_bulk(word)


def _deluser(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Remove users, end their sessions, and reply with the number of users."""
    names = args[2:]
    if DEFAULT in names:
        raise ReplyError("ERR The 'default' user cannot be removed")
    removed = sum(state.users.remove(name) for name in names)
    apply_changes(state)
    session.reply_integer(removed)


def _list(state: NodeState, session: Session, _args: list[bytes]) -> None:
    """Reply with a line for each user, as in an aclfile."""
    lines = state.users.lines()
    session.reply_array(len(lines))
    for line in lines:
        session.reply_bulk(line)


def _users(state: NodeState, session: Session, _args: list[bytes]) -> None:
    names = sorted(state.users.by_name)
    session.reply_array(len(names))
    for name in names:
        session.reply_bulk(name)


def _whoami(_state: NodeState, session: Session, _args: list[bytes]) -> None:
    user = session.user
    session.reply_bulk(DEFAULT if user is None else user.name)


def _cat(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the categories, or with the commands of one."""
    if len(args) == 2:
        names = [name for name, _ in CATEGORIES]
    else:
        found = state.users.catalogue.listed(args[2].lower())
        if found is None:
            raise ReplyError(f"ERR Unknown category '{args[2].decode('utf-8', 'surrogateescape')}'")
        names = found
    session.reply_array(len(names))
    for name in names:
        session.reply_bulk(name)


def _log(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the latest refusals, or forget them (RESET)."""
    entries = state.users.log.entries
    if len(args) == 3 and args[2].upper() == b"RESET":
        entries.clear()
        session.reply_ok()
        return
    wanted = require_integer(args[2]) if len(args) == 3 else _SHOWN_ENTRIES
    shown = [entry for entry, _ in zip(entries, range(max(wanted, 0)), strict=False)]
    session.reply_array(len(shown))
    for entry in shown:
        _reply_entry(state, session, entry)


def _reply_entry(state: NodeState, session: Session, entry: Refusal) -> None:
    texts = (
        (b"reason", entry.reason),
        (b"context", b"toplevel"),
        (b"object", entry.what),
        (b"username", entry.user),
        (b"age-seconds", b"%.3f" % (max(int(state.now_ms - entry.last_ms), 0) / 1000)),
        (b"client-info", b"addr=" + entry.client),
    )
    numbers = (
        (b"count", entry.count),
        (b"entry-id", entry.number),
        (b"timestamp-created", entry.first_ms),
        (b"timestamp-last-updated", entry.last_ms),
    )
    session.reply_map(len(texts) + len(numbers))
    for name, number in numbers[:1]:
        session.reply_bulk(name)
        session.reply_integer(int(number))
    for name, text in texts:
        session.reply_bulk(name)
        session.reply_bulk(text)
    for name, number in numbers[1:]:
        session.reply_bulk(name)
        session.reply_integer(int(number))


def _genpass(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with random hexadecimal digits that are hard to guess, four bits each."""
    bits = parse_integer(args[2]) if len(args) == 3 else _GENERATED_BITS
    if bits is None or not 1 <= bits <= _MOST_BITS:
        raise ReplyError(
            f"ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to "
            f"{_MOST_BITS}"
        )
    digits = (bits + 3) // 4
    session.reply_bulk(state.host.random_bytes((digits + 1) // 2).hex().encode()[:digits])


def _load(state: NodeState, session: Session, _args: list[bytes]) -> None:
    load_users(state)
    session.reply_ok()


def _save(state: NodeState, session: Session, _args: list[bytes]) -> None:
    save_users(state)
    session.reply_ok()


def _dryrun(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply OK if a user could run a command, otherwise with the reason. Nothing is run."""
    user = state.users.by_name.get(args[2])
    if user is None:
        raise ReplyError(f"ERR User '{args[2].decode('utf-8', 'surrogateescape')}' not found")
    words = args[3:]
    entry = state.commands.get(words[0]) or state.commands.get(words[0].lower())
    if entry is None:
        raise ReplyError(f"ERR Command '{words[0].decode('utf-8', 'surrogateescape')}' not found")
    if not entry.accepts(len(words)):
        raise WrongArity(entry.command.name)
    refused = refusal(state, entry, user, words)
    if refused is None:
        session.reply_ok()
    else:
        session.reply_bulk(refused.text.partition(" ")[2].encode("utf-8", "surrogateescape"))


def _secret_words(_config: Config, args: list[bytes]) -> list[int]:
    """The passwords among the rules of ACL SETUSER, and their hashes; everything that ACL DRYRUN tries.

    Also those of a request without the name of the user or with a mistyped subcommand.
    """
    word = args[1].upper() if len(args) > 1 else b""
    if word == b"DRYRUN":
        return list(range(4, len(args)))
    if word in _SUBCOMMANDS and word != b"SETUSER":
        return []
    return [index for index in range(2, len(args)) if args[index][:1] in SECRET_SIGNS]


def _clears_log(args: list[bytes]) -> bool:
    """Whether an ACL LOG clears the log of refusals instead of showing it."""
    return len(args) > 2 and args[2].upper() == b"RESET"


_EVERYONE: Final = ("connection",)
_SUBCOMMANDS: Final = {
    b"CAT": Subcommand(_cat, 2, 3, _EVERYONE),
    b"DELUSER": Subcommand(_deluser, 3, ANY, audited=always),
    b"DRYRUN": Subcommand(_dryrun, 4, ANY),
    b"GENPASS": Subcommand(_genpass, 2, 3, _EVERYONE),
    b"GETUSER": Subcommand(_getuser, 3, 3),
    b"LIST": Subcommand(_list),
    b"LOAD": Subcommand(_load, audited=always),
    b"LOG": Subcommand(_log, 2, 3, audited=_clears_log),
    b"SAVE": Subcommand(_save, audited=always),
    b"SETUSER": Subcommand(_setuser, 3, ANY, audited=always),
    b"USERS": Subcommand(_users),
    b"WHOAMI": Subcommand(_whoami, categories=_EVERYONE),
}

COMMAND: Final[Command] = Command(
    "acl",
    -2,
    ("admin", "loading"),
    acl,
    "server",
    "Shows and changes the users of this node.",
    "SETUSER user [rule ...] | GETUSER user | DELUSER user [user ...] | LIST | USERS | WHOAMI | CAT [category] | "
    "LOG [count|RESET] | GENPASS [bits] | LOAD | SAVE | DRYRUN user command [arg ...]",
    "O(users)",
    most_words=2 * MOST_RULES,
    secret_words=_secret_words,
    categories=("admin", "dangerous"),
    subcommands=_SUBCOMMANDS,
)
