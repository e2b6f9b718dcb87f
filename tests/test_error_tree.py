"""The exception tree at the top of `errors.py` is correct."""

import importlib
import pkgutil
import re
import textwrap

import dragoman
from dragoman import errors
from dragoman.errors import DragomanError

CHILDREN_ONLY = "dragoman.proc.fork_server."  # separate programs with their own import path


def all_errors(parent=DragomanError):
    """Return every public exception below `parent`, from all modules."""
    for module in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
        if not module.name.startswith(CHILDREN_ONLY) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, waiting = [], [parent]
    while waiting:
        below = waiting.pop().__subclasses__()
        waiting += below
        found += [
            each for each in below if each.__module__.startswith("dragoman.") and not each.__name__.startswith("_")
        ]
    return found


def test_tree_has_every_exception_of_the_module_below_its_parent():
    shown, path = {}, []
    for indent, name in re.findall(r"^    ((?:[│├└ ]+── )?)([A-Z]\w+)(?:  .*)?$", errors.__doc__, re.MULTILINE):
        path[len(indent) // 4 :] = [name]
        shown[name] = path[-2] if len(path) > 1 else "Exception"
    real = {each.__name__: each.__base__.__name__ for each in all_errors() if each.__module__ == "dragoman.errors"}
    assert shown == {"DragomanError": "Exception", **real}


def test_table_has_every_exception_of_the_packages():
    names = {}
    for each in sorted(all_errors(), key=lambda each: each.__name__):
        package = each.__module__.split(".")[1]
        if package != "errors":
            parent = "" if each.__base__ is DragomanError else f"({each.__base__.__name__})"
            names.setdefault(package, []).append(f"{each.__name__}{parent}")
    lines = [f"    {package:<9} {', '.join(names[package])}" for package in sorted(names)]
    table = "\n".join(textwrap.fill(line, 119, subsequent_indent=" " * 14) for line in lines)
    assert table in errors.__doc__, f"expected in errors.py:\n{table}"
