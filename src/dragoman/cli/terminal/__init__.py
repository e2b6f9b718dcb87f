"""The terminal, for `run` and `chat`: rows and their wrapping, Markdown, questions, keys, and the output of a pipe.

Foreign text goes through `dragoman.text` before it gets here.
"""
