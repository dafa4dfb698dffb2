"""One renderer for the terminal, HTML files, notebooks, reports and pages; it draws plain dictionaries.

`picture` decides what is drawn; `terminal`, `svg` and `html` draw it.
"""
