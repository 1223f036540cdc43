"""Generates pages and pictures of the documentation. `python -m docs.generate` writes the pages.

Each page has a module with a function `page` that returns its text. The modules `*_picture` and `*_pictures` start
brokers and take pictures of them; run those by hand with `python -m docs.generate.<module>` and look at the result.
"""
