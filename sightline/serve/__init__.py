"""The page and its server: a JSON API over the public verbs, and one page that uses it.

The server neither computes nor draws: it checks what comes in, queues it, calls a verb of `sightline`, and answers.
"""
