"""ACL: shows and changes users, and loads and saves them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.config import Config, load
from disqued.core.access.catalogue import CATEGORIES
from disqued.core.access.rules import Rules, changed, digest
from disqued.core.access.users import MOST_USERS
from disqued.errors import ReplyError
from disqued.node import ROOMS
from disqued.testing.host import FakeHost
from disqued.testing.local import LocalClient, LocalNode, no_include

FILE = "/etc/users.acl"
HASH = digest(b"secret").decode()


def test_a_node_has_a_default_user_that_may_do_everything(admin: LocalClient) -> None:
    assert admin.call("ACL", "LIST") == [b"user default on nopass ~* +@all"]
    assert admin.call("ACL", "USERS") == [b"default"]
    assert admin.call("ACL", "WHOAMI") == b"default"
    assert admin.raw("ACL", "DELUSER", "default") == b"-ERR The 'default' user cannot be removed\r\n"


def test_a_user_is_shown_with_its_rules(admin: LocalClient) -> None:
    admin.call("ACL", "SETUSER", "mail", "on", ">secret", "~mail:*", "+@producer", "-deljob", "%r=1000", "%c=20")
    line = f"user mail on #{HASH} ~mail:* +@producer -deljob %r=1000 %c=20".encode()
    assert admin.call("ACL", "LIST") == [b"user default on nopass ~* +@all", line]
    shown = admin.call("ACL", "GETUSER", "mail")
    assert shown == [
        *(b"flags", [b"on"], b"passwords", [HASH.encode()], b"commands", b"+@producer -deljob"),
        *(b"keys", b"~mail:*", b"commands-per-second", 1000, b"connections", 20),
    ]
    assert admin.call("ACL", "GETUSER", "nosuch") is None


def test_a_new_user_may_do_nothing(admin: LocalClient) -> None:
    admin.call("ACL", "SETUSER", "mail")
    assert admin.call("ACL", "LIST") == [b"user default on nopass ~* +@all", b"user mail off -@all"]


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("+nosuch", "'+nosuch': Unknown command or category name in ACL"),
        ("+@nosuch", "'+@nosuch': Unknown command or category name in ACL"),
        ("+config|nosuch", "'+config|nosuch': Unknown command or category name in ACL"),
        ("<wrong", "'<(redacted)': The password you are trying to remove from the user does not exist"),
        ("#12", "'#(redacted)': a hash is a SHA-256 of 64 lower-case hexadecimal digits"),
        ("%r=x", "'%r=x': a limit is %r="),
        ("%R~x", "'%R~x': a limit is %r="),
        ("~a b", "'~a b': a pattern has 1 to 1024 bytes and no blanks"),
        ("nonsense", "'nonsense': Syntax error"),
    ],
)
def test_a_wrong_rule_changes_nothing_and_is_named(admin: LocalClient, rule: str, why: str) -> None:
    before = admin.call("ACL", "LIST")
    reply = admin.raw("ACL", "SETUSER", "mail", "on", "+@all", rule)
    assert reply.startswith(f"-ERR Error in ACL SETUSER modifier {why}".encode())
    assert admin.call("ACL", "LIST") == before


def test_rules_patterns_passwords_and_users_are_bounded(admin: LocalClient) -> None:
    many = [f"~q{number}" for number in range(1000)]
    assert b"2001 rules: at most 2000" in admin.raw("ACL", "SETUSER", "a", *many, *many, "on")
    assert admin.raw("ACL", "SETUSER", "a", *many) == b"+OK\r\n"
    assert b"a user has at most 1000 patterns and 100 passwords" in admin.raw("ACL", "SETUSER", "a", "~more")
    assert b"a user has at most" in admin.raw("ACL", "SETUSER", "b", *[f">{number}" for number in range(101)])
    users = admin.local.node.state.users
    line = users.by_name[b"a"].rules.describe().split()
    assert changed(Rules(), line, users.catalogue).describe().split() == line
    for number in range(MOST_USERS - len(users.by_name)):
        users.by_name[b"user%d" % number] = users.default
    assert b"a node has at most 10000 users" in admin.raw("ACL", "SETUSER", "one-more")
    assert admin.raw("ACL", "SETUSER", "a", "on") == b"+OK\r\n"


def test_passwords_of_setuser_are_secret(admin: LocalClient) -> None:
    watching = admin.local.client()
    watching.call("MONITOR")
    admin.call("ACL", "SETUSER", "mail", ">secret", "~mail:*")
    assert watching.received.endswith(b'"ACL" "SETUSER" "mail" "(redacted)" "~mail:*"\r\n')


def test_each_command_has_a_category(admin: LocalClient) -> None:
    names = [name for name, _ in CATEGORIES]
    assert admin.call("ACL", "CAT") == names
    for command in ROOMS.commands:
        for key in command.keys:
            assert command.categories_of(key), key
            assert {one.encode() for one in command.categories_of(key)} <= set(names)
    assert admin.call("ACL", "CAT", "producer") == [b"addjob", b"addto", b"newid", b"result", b"waitjob"]
    assert admin.raw("ACL", "CAT", "nosuch") == b"-ERR Unknown category 'nosuch'\r\n"


def test_generated_passwords_have_as_many_bits_as_wanted(admin: LocalClient) -> None:
    assert len(admin.call("ACL", "GENPASS")) == 64  # type: ignore[arg-type]
    assert len(admin.call("ACL", "GENPASS", 5)) == 2  # type: ignore[arg-type]
    assert admin.raw("ACL", "GENPASS", 0).startswith(b"-ERR ACL GENPASS argument must be")


def test_dryrun_says_what_a_user_could_run(admin: LocalClient) -> None:
    admin.call("ACL", "SETUSER", "mail", "~mail:*", "+@producer")
    assert admin.raw("ACL", "DRYRUN", "mail", "ADDJOB", "mail:x", "b", 0) == b"+OK\r\n"
    assert admin.call("ACL", "DRYRUN", "mail", "addjob", "x", "b", 0) == (
        b"User mail has no permissions to access the queue 'x'"
    )
    assert admin.call("ACL", "DRYRUN", "mail", "info") == b"User mail has no permissions to run the 'info' command"
    assert admin.raw("ACL", "DRYRUN", "nosuch", "info") == b"-ERR User 'nosuch' not found\r\n"
    assert admin.raw("ACL", "DRYRUN", "mail", "nosuch") == b"-ERR Command 'nosuch' not found\r\n"


_SELECTORS = [key.decode() for row in ROOMS.commands for key in row.keys] + [f"@{n.decode()}" for n, _ in CATEGORIES]
_RULES = st.lists(
    st.one_of(
        st.sampled_from(["on", "off", "nopass", "resetpass", "allkeys", "resetkeys", "reset", ">a", ">b", "~x*", "~y"]),
        st.sampled_from(["%r=5", "%r=0", "%c=7", "allcommands", "nocommands"]),
        st.builds(lambda sign, name: sign + name, st.sampled_from("+-"), st.sampled_from(_SELECTORS)),
    )
)


@given(_RULES, _RULES)
def test_described_rules_are_the_same_rules(first: list[str], more: list[str]) -> None:
    catalogue = ROOMS.catalogue
    rules = changed(Rules(), [word.encode() for word in first], catalogue)
    again = changed(Rules(), rules.describe().split(), catalogue)
    assert again.describe() == rules.describe()
    assert (again.commands, again.every_queue) == (rules.commands, rules.every_queue)
    words = [word.encode() for word in more]
    assert changed(again, words, catalogue).commands == changed(rules, words, catalogue).commands
    assert len(rules.selectors) <= len(_SELECTORS)


def with_file(text: str) -> LocalNode:
    """A node with an aclfile."""
    host = FakeHost()
    host.files[FILE] = text
    config = Config()
    config.assign("aclfile", FILE)
    return LocalNode(config, host)


def test_users_are_loaded_and_saved() -> None:
    local = with_file("# users\nuser mail on >secret ~mail:* +@producer\n\nuser ops on nopass ~* +@all\n")
    client = local.client()
    assert client.call("ACL", "USERS") == [b"default", b"mail", b"ops"]
    client.call("ACL", "SETUSER", "web", "on", ">x")
    client.call("ACL", "DELUSER", "ops")
    assert client.raw("ACL", "SAVE") == b"+OK\r\n"
    assert f"user mail on #{HASH} ~mail:* +@producer\n" in local.host.files[FILE]
    again = with_file(local.host.files[FILE])
    assert again.client().call("ACL", "LIST") == client.call("ACL", "LIST")


@pytest.mark.parametrize("pattern", [b"a b", b"a\t+@all", b"a\x0bb", b"a\x0cb", b'"a"', b'"', b"it's", b"a\r", b"a\n"])
def test_a_pattern_that_a_file_would_not_keep_is_refused(pattern: bytes) -> None:
    client = with_file("").client()
    assert b"no blanks or quotes; use ? for them" in client.raw("ACL", "SETUSER", "mail", b"~" + pattern)


def test_a_pattern_of_any_other_bytes_is_kept_in_a_file() -> None:
    local = with_file("")
    client = local.client()
    odd = bytes(set(range(256)) - set(b" \t\n\r\v\f\"'"))
    assert client.raw("ACL", "SETUSER", "mail", b"~" + odd, b"~\xc2\xa0", b"~\x85") == b"+OK\r\n"
    before = client.call("ACL", "GETUSER", "mail")
    assert client.raw("ACL", "SAVE") == b"+OK\r\n"
    assert client.raw("ACL", "LOAD") == b"+OK\r\n"
    assert client.call("ACL", "GETUSER", "mail") == before


def test_a_file_with_a_wrong_line_changes_no_user() -> None:
    local = with_file("user mail on >secret +@all\n")
    client, mail = local.client(), local.client()
    mail.call("AUTH", "mail", "secret")
    before = client.call("ACL", "LIST")
    for text, why in (
        ("user a on\n\nuser b +nosuch\n", "line 3: '+nosuch': Unknown command or category name in ACL"),
        ("usr a on\n", "line 1: a line begins with `user`"),
        ("user a on\nuser a off\n", "line 2: user 'a' has more than one line"),
        ('user a "x\n', "line 1: a line begins with `user`"),
    ):
        local.host.files[FILE] = text
        assert f"-ERR aclfile '{FILE}'".encode() in (reply := client.raw("ACL", "LOAD"))
        assert f"{why}. No user was changed.".encode() in reply
        assert client.call("ACL", "LIST") == before
    assert mail.raw("PING") == b"+PONG\r\n"


def test_a_password_file_that_cannot_be_read_changes_no_user() -> None:
    host = FakeHost()
    host.files[FILE] = "user mail on >secret +@all\n"
    host.secret_files["/run/password"] = b"first"
    config = Config()
    config.assign("aclfile", FILE)
    config.assign("requirepass_file", "/run/password")
    local = LocalNode(config, host)
    client = local.client()
    client.call("AUTH", "first")
    del host.secret_files["/run/password"]
    assert client.raw("ACL", "LOAD").startswith(b"-ERR cannot read requirepass-file")
    assert local.client().raw("PING").startswith(b"-NOAUTH ")


def test_loading_ends_the_sessions_of_users_who_are_gone() -> None:
    local = with_file("user a on >secret +@all\nuser b on >secret +@all\n")
    a, b = local.client(), local.client()
    a.call("AUTH", "a", "secret")
    b.call("AUTH", "b", "secret")
    local.host.files[FILE] = "user b on >secret +@all\n"
    assert local.client().raw("ACL", "LOAD") == b"+OK\r\n"
    assert a.closed
    assert b.raw("PING") == b"+PONG\r\n"


def test_without_a_file_nothing_is_loaded_or_saved(admin: LocalClient) -> None:
    for words in ("LOAD", "SAVE"):
        assert admin.raw("ACL", words) == b"-ERR This node has no aclfile: set the directive and restart\r\n"


def test_users_are_in_the_configuration_file_as_in_redis() -> None:
    config = load("requirepass top\nuser mail on >secret ~mail:* +@producer\n", (), no_include)
    client = LocalNode(config).client()
    assert client.raw("AUTH", "mail", "secret") == b"+OK\r\n"
    assert client.call("ACL", "WHOAMI") == b"mail"
    assert client.raw("AUTH", "top") == b"+OK\r\n"
    assert client.call("ACL", "USERS") == [b"default", b"mail"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("user mail +nosuch", "in a `user` line: '\\+nosuch': Unknown command"),
        ("user a on\nuser a on", "user 'a' has more than one line"),
        ("user a on\naclfile /x", "both `user` lines and aclfile"),
        ("aclfile /x", "cannot read aclfile '/x': No such file"),
        ("requirepass a\nrequirepass-file /x", "both requirepass and requirepass-file"),
        ("requirepass-file /x", "cannot read requirepass-file '/x'"),
    ],
)
def test_a_node_does_not_start_with_wrong_users(text: str, why: str) -> None:
    with pytest.raises(ReplyError, match=why):
        LocalNode(load(text, (), no_include))


def test_config_rewrite_keeps_the_users_of_the_configuration_file() -> None:
    host = FakeHost()
    host.config_text = f"# users\nuser mail on #{HASH} ~mail:* +@producer\n\nuser ops on nopass ~* +@all\ntimeout 5\n"
    local = LocalNode(load(host.config_text, (), no_include), host)
    client = local.client()
    before = client.call("ACL", "LIST")
    client.call("CONFIG", "SET", "timeout", 7)
    client.call("ACL", "SETUSER", "web", "on", ">x")
    assert client.raw("CONFIG", "REWRITE") == b"+OK\r\n"
    assert host.config_text.startswith(
        f"# users\nuser mail on #{HASH} ~mail:* +@producer\n\nuser ops on nopass ~* +@all\n"
    )
    assert "timeout 7\n" in host.config_text
    local.restart()
    assert local.client().call("ACL", "LIST") == before
