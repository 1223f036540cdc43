"""The error that prevents the server from starting."""


class Fatal(Exception):
    """The server cannot start. The text says what is wrong, where, and what to do. The exit status is 1."""
