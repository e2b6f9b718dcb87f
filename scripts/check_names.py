"""Check that a public class name means one thing in src/dragoman, and that no class holds more than a dozen attributes.

A name that starts with an underscore is private to its module. The generated types of the protocol count as
definitions, those of the draft of version 2 aside: a word of the protocol is not used for another thing. Instance
attributes are the fields of a class body and the names that its methods assign to on `self`; inherited ones are not
counted.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).resolve().parent.parent / "src" / "dragoman"

MAX_ATTRIBUTES = 12

DRAFT = "protocol.generated.v2"
"""The types of version 2, which have the names of version 1 and are always written with their module: `v2.ToolCall`."""

SHARED_NAMES = {
    "PromptResponse": "the client's takes any stop reason; its name finds the leniency of the schema",
    "Session": "the protocol's word; the agent runs it, the client drives it",
    "Turn": "the protocol's word, seen by the agent that takes it and by the client that waits for it",
}
"""Names that several packages (agent, client …) may define, one definition each, with the reason."""

LARGE_CLASSES: dict[str, tuple[int, str]] = {
    "check.driver.options.AgentOptions": (15, "the options of `dragoman check agent`, frozen, each read by one scene"),
    "check.judge.session.SeenSession": (15, "all that rules may ask about a session, a field for each kind of message"),
    "store.record._Line": (15, "a field for each kind of record: the line of a file is decoded in one pass"),
}
"""Classes above the limit, with the number of attributes that each may have and the reason. The list only shrinks."""


class Class(NamedTuple):
    """A class of the package, with the module that defines it and the names of its instance attributes."""

    module: str
    name: str
    attributes: frozenset[str]

    @property
    def path(self) -> str:
        """Return the name by which an exception names the class, as `agent.session.Session`."""
        return f"{self.module}.{self.name}"

    @property
    def package(self) -> str:
        """Return the top-level package of the class, as `agent`."""
        return self.module.partition(".")[0]


def read_classes(source: Path) -> Iterator[Class]:
    """Yield the classes at the top level of each module below a directory."""
    for file in sorted(source.rglob("*.py")):
        module = ".".join(file.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                yield Class(module, node.name, frozenset(find_attributes(node)))


def find_attributes(node: ast.ClassDef) -> Iterator[str]:
    """Yield the fields of a class body, and the names that its methods assign to on `self`."""
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind) if "ClassVar" not in ast.unparse(kind):
                yield name
            case _:
                pass
    for part in ast.walk(node):
        match part:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name
            case _:
                pass


def find_collisions(classes: list[Class], shared: dict[str, str]) -> Iterator[str]:
    """Yield a sentence for each name with two meanings, and for each exception that is not needed."""
    modules: dict[str, list[Class]] = defaultdict(list)
    for each in classes:
        if not each.name.startswith("_") and each.module != DRAFT:
            modules[each.name].append(each)
    for name, same in sorted(modules.items()):
        packages = {each.package for each in same}
        if len(same) > (len(packages) if name in shared else 1):
            places = ", ".join(each.module for each in same)
            yield f"{name} is defined in {places}: rename all but one, because a name has one meaning"
    for name in sorted(shared):
        if len(modules[name]) < 2:
            yield f"{name} has one definition: delete its entry in SHARED_NAMES"


def find_large(classes: list[Class], large: dict[str, tuple[int, str]]) -> Iterator[str]:
    """Yield a sentence for each class with too many attributes, and for each exception that is not needed."""
    counts: dict[str, int] = {}
    for each in classes:
        counts[each.path] = count = len(each.attributes)
        limit = large[each.path][0] if each.path in large else MAX_ATTRIBUTES
        if count > limit and not each.module.startswith("protocol.generated"):
            yield f"{each.path} has {count} instance attributes, {limit} are allowed: split it by what it guards"
    for path in sorted(large):
        if path not in counts:
            yield f"{path} does not exist: delete its entry in LARGE_CLASSES"
        elif counts[path] <= MAX_ATTRIBUTES:
            yield f"{path} has {counts[path]} instance attributes: delete its entry in LARGE_CLASSES"


def main() -> int:
    """Print the faults and return 1 when there are some."""
    classes = list(read_classes(SOURCE))
    faults = [*find_collisions(classes, SHARED_NAMES), *find_large(classes, LARGE_CLASSES)]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
