"""The prompt on a terminal: line editing, history, completion and hints, with `prompt_toolkit`.

Completions come from the command table. Names of queues come from the server, which is asked once per line. Lines that
contain a password are not written to the history file, which only its owner can read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory
from prompt_toolkit.layout.processors import AfterInput
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style as Colours

from disqued.cli.manual import BUILT_IN, command_table, groups
from disqued.cli.render import text
from disqued.cli.syntax import continuations, literals
from disqued.resp.words import split_words

HISTORY = Path("~/.disque_history")
SECRET_WORDS = {"auth", "requirepass", "requirepass-former", "setuser"}
COLOURS = Colours.from_dict({"hint": "ansibrightblack", "prompt": "ansicyan"})


def typed_lines(prompt: Callable[[], str], queue_names: Callable[[], list[str]]) -> Iterator[str]:
    """Yield the lines that the user types, until Ctrl-D; Ctrl-C discards a line.

    `prompt` returns the text before the cursor, `queue_names` the names that can be completed; it is called at most
    once per line.
    """
    command_table()  # a missing package is reported here, not in the middle of a line
    completer = CommandCompleter(queue_names)
    session: PromptSession[str] = PromptSession(
        history=PasswordFreeHistory(HISTORY.expanduser()),
        completer=completer,
        complete_while_typing=True,
        input_processors=[AfterInput(_hint_of_app, style="class:hint")],
        style=COLOURS,
        color_depth=ColorDepth.MONOCHROME if os.environ.get("NO_COLOR") else None,
        enable_history_search=False,
    )
    while True:
        completer.forget_queues()
        try:
            yield session.prompt([("class:prompt", prompt())])
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


class PasswordFreeHistory(FileHistory):
    """A history file without passwords."""

    def __init__(self, path: Path) -> None:
        path.touch(mode=0o600)
        super().__init__(path)

    def store_string(self, string: str) -> None:
        """Write the line to the file unless it contains a password."""
        if SECRET_WORDS.isdisjoint(string.lower().split()):
            super().store_string(string)


class CommandCompleter(Completer):
    """Completes names of commands, options, help topics and names of queues."""

    def __init__(self, queue_names: Callable[[], list[str]]) -> None:
        self._ask_queue_names = queue_names
        self._queue_names: list[str] | None = None

    def forget_queues(self) -> None:
        """Ask for the names of queues again at the next completion."""
        self._queue_names = None

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield the words that can follow at the cursor; called by the line editor."""
        del complete_event
        typed = _typed_words(document.text_before_cursor)
        if typed is None:
            return
        *words, prefix = typed
        for word, meaning in self._candidates(words).items():
            if word.lower().startswith(prefix.lower()):
                shown = word.lower() if prefix.islower() and word.isupper() else word
                yield Completion(shown, -len(prefix), display_meta=meaning)

    def _candidates(self, words: list[str]) -> dict[str, str]:
        """Return the words that can follow `words`, with a description of each."""
        table = command_table()
        if not words:
            names = {name: row.summary for name, row in table.items()}
            return {**names, **{name: meaning for name, meaning in BUILT_IN.items() if name.isalpha()}}
        name = words[0].lower()
        if name in {"help", "?"}:
            return {
                **{row.name: row.summary for row in table.values()},
                **{f"@{group}": "group of commands" for group in groups()},
            }
        if name not in table:
            return {}
        found: dict[str, str] = {}
        for rest in continuations(table[name].syntax, words[1:]):
            for word, follows in rest.next_words().items():
                found |= dict.fromkeys(self._queues(), "queue") if word == "queue" else {}
                found |= dict.fromkeys(literals(word), follows)
        return found

    def _queues(self) -> list[str]:
        if self._queue_names is None:
            self._queue_names = self._ask_queue_names()
        return self._queue_names


def hint(line: str) -> str:
    """Return the arguments that the command on `line` still accepts, as a hint after the cursor."""
    typed = _typed_words(line)
    if typed is None:
        return ""
    *words, last = typed
    name, *complete = [*words, last] if last or not words else words
    row = command_table().get(name.lower())
    if row is None:
        return ""
    rests = " | ".join(filter(None, map(str, continuations(row.syntax, complete))))
    return f" {rests}" if last and rests else rests


def _hint_of_app() -> str:
    app = get_app()
    document = app.current_buffer.document
    # An entered line stays on the screen without its hint.
    return hint(document.text) if document.is_cursor_at_the_end and not app.is_done else ""


def _typed_words(line: str) -> list[str] | None:
    """Return the words up to the cursor, without a leading count; the last one is incomplete. None within quotes."""
    split = split_words(os.fsencode(line))
    if split is None:
        return None
    words = [text(word) for word in split]
    if not line or line[-1].isspace():
        words.append("")
    if len(words) > 1 and words[0].isascii() and words[0].isdigit():
        del words[0]
    return words
