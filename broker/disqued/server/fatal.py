"""Why a server can not start."""


class Fatal(Exception):
    """The server can not start; the text says what is wrong, where, and what to do. The exit status is 1."""
