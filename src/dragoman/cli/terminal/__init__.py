"""The terminal, for `run` and `chat`: rows and their wrapping, Markdown, questions, keys, and what a pipe gets.

Foreign text goes through `dragoman.text` before it gets here.
"""
