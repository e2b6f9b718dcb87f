"""Fuzz targets: coverage-guided where atheris is there, a seed corpus that replays anywhere.

`python -m tests.fuzz --seconds 300 [TARGET…]` runs them; what they find and learn goes to `.cache/fuzz`.
"""
