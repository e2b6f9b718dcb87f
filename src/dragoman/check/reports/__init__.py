"""What was found, in the forms that people and programs read."""

from dragoman.check.reports.formats import FORMATS, Format, render

__all__ = ["FORMATS", "Format", "render"]
