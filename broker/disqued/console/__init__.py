"""The web console: a page on the HTTP port that shows the state of a node in a browser.

`page/` has the static files for the browser. The console reads from the node and changes it with commands, like any
client (`calling`), so the same authentication applies.
"""
