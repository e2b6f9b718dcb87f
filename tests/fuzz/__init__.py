"""Fuzz targets: coverage-guided if atheris is installed, with a seed corpus that can always be replayed.

`python -m tests.fuzz --seconds 300 [TARGET…]` runs them. Findings and the grown corpus are in `.cache/fuzz`.
"""
