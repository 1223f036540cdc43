"""The console: a page on the HTTP port by which a person with only a browser sees what the node does.

`page/` is what the browser gets, as it stands there. What it shows and does is asked of the node by its own commands,
as a client does it (`calling`), so there is one way, with one check of the password.
"""
