"""The terminal of `run` and `chat`: rows and wrapping, Markdown, questions, keys and plain output.

Foreign text is cleaned by `dragoman.text` before it gets here.
"""
