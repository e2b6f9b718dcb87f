"""Diffs: the whole text before and after in version 1, file changes with a Git patch in version 2.

Our patches have three lines of context, like Git's. The two texts are carried along, because a patch does not contain
the lines outside its hunks. When a patch is read, each hunk becomes its own diff, because only the lines of the hunk
are known. A change without a hunk (a binary file, a directory, a move) becomes a sentence.
"""

import difflib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from dragoman.protocol.translate.envelope import (
    OF_V1,
    OF_V2,
    Object,
    as_object,
    carry,
    objects_in,
    restore,
    split_carried,
    without,
)

CONTEXT_LINES = 3
MAX_COMPARED_LINES = 2_000
"""Longer texts are first split at lines that are unique in both, because the time to compare grows with the square."""
_NO_NEWLINE = "\\ No newline at end of file"
_HUNK = re.compile(r"^@@ -\d+(?:,(?P<old>\d+))? \+\d+(?:,(?P<new>\d+))? @@")
_VERBS = {"add": "added", "delete": "deleted", "modify": "modified", "move": "moved", "copy": "copied"}
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_UNUSUAL = re.compile(r'[\x00-\x1f"\\\x7f]')


_OpCode = tuple[str, int, int, int, int]


class _Hunk(NamedTuple):
    path: str
    old_text: str | None
    new_text: str


def diff_to_v2(diff: Object) -> Object:
    """Return a version 1 diff as a version 2 diff."""
    bare, carried = split_carried(diff, OF_V2)
    if "diff" in carried:
        return as_object(carried["diff"])
    path, old, new = str(bare.get("path", "")), bare.get("oldText"), str(bare.get("newText", ""))
    change = {"operation": "modify" if isinstance(old, str) else "add", "path": path, "fileType": "text"}
    rest = without(bare, "path", "oldText", "newText")
    translated = {**rest, "changes": [change]}
    if text := make_patch(path, old if isinstance(old, str) else None, new):
        translated["patch"] = {"format": "git_patch", "text": text}
    texts = {name: bare[name] for name in ("path", "oldText", "newText") if name in bare}
    return carry(translated, OF_V1, {"diff": texts})


def diff_to_v1(diff: Object) -> list[Object]:
    """Return a version 2 diff as version 1 content. The first item carries the whole diff, the others are its parts."""
    bare, carried = split_carried(diff, OF_V1)
    if "diff" in carried:
        return [{**without(bare, "changes", "patch"), **as_object(carried["diff"])}]
    whole = restore(diff, OF_V1)
    hunks = _hunks_of(whole)
    items: list[Object] = []
    for change in objects_in(whole.get("changes")):
        found = [each for each in hunks if each.path == change.get("path")]
        items += [_item_of(each) for each in found] or [_sentence(change)]
    first, *rest = items or [_sentence({})]
    return [carry(first, OF_V2, {"diff": whole}), *(carry(each, OF_V2, {"part": True}) for each in rest)]


def is_part(item: Object) -> bool:
    """Return whether an item of content is a part of a diff that another item carries."""
    return as_object(as_object(item.get("_meta")).get(OF_V2)).get("part") is True


def make_patch(path: str, old: str | None, new: str) -> str:
    """Return the Git patch between two texts. `old` is None for a new file. Empty if the texts are the same."""
    if old == new:
        return ""
    name = _quote(path)
    head = f"diff --git {name} {name}\n"
    if old is None:
        head += "new file mode 100644\n"
    before, after = _lines(old or ""), _lines(new)
    hunks = list(_make_hunks(before, after))
    if hunks:
        head += f"--- {'/dev/null' if old is None else name}\n+++ {name}\n"
    return head + "".join(hunks)


def _lines(text: str) -> list[str]:
    """Return the lines of a text with their line ends. As in Git, only a newline ends a line."""
    return [line + "\n" for line in text.split("\n")[:-1]] + ([last] if (last := text.rpartition("\n")[2]) else [])


def _make_hunks(before: list[str], after: list[str]) -> Iterator[str]:
    for group in _groups(before, after):
        first, last = group[0], group[-1]
        old, new = _range(first[1], last[2]), _range(first[3], last[4])
        yield f"@@ -{old} +{new} @@\n"
        for tag, low, high, new_low, new_high in group:
            if tag == "equal":
                yield from (_line(" ", line) for line in before[low:high])
                continue
            yield from (_line("-", line) for line in before[low:high])
            yield from (_line("+", line) for line in after[new_low:new_high])


def _groups(before: list[str], after: list[str]) -> Iterator[list[_OpCode]]:
    """Yield hunks grouped by `difflib`. Equal lines at both ends are removed before the comparison."""
    start = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    most = min(len(before), len(after)) - start
    end = next((i for i in range(most) if before[-1 - i] != after[-1 - i]), most)
    old_end, new_end = len(before) - end, len(after) - end
    middle = _compare(before[start:old_end], after[start:new_end])
    codes = [(tag, low + start, high + start, new + start, to + start) for tag, low, high, new, to in middle]
    lead, tail = min(start, CONTEXT_LINES), min(end, CONTEXT_LINES)
    if lead:
        codes.insert(0, ("equal", start - lead, start, start - lead, start))
    if tail:
        codes.append(("equal", old_end, old_end + tail, new_end, new_end + tail))
    matcher = difflib.SequenceMatcher(None, "", "")
    matcher.opcodes = codes  # pyright: ignore[reportAttributeAccessIssue] -- the cache that get_opcodes returns
    yield from matcher.get_grouped_opcodes(CONTEXT_LINES)


def _compare(before: list[str], after: list[str]) -> list[_OpCode]:
    if len(before) + len(after) <= MAX_COMPARED_LINES:
        return list(difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes())
    codes: list[_OpCode] = []
    left = MAX_COMPARED_LINES**2
    x = y = 0
    for next_x, next_y in [*_anchors(before, after), (len(before), len(after))]:
        size = next_x - x + next_y - y
        if size**2 <= left:
            left -= size**2
            matcher = difflib.SequenceMatcher(None, before[x:next_x], after[y:next_y], autojunk=False)
            gap = [(tag, low + x, high + x, new + y, to + y) for tag, low, high, new, to in matcher.get_opcodes()]
        else:
            gap = [("replace", x, next_x, y, next_y)]
        for code in [*gap, ("equal", next_x, min(next_x + 1, len(before)), next_y, min(next_y + 1, len(after)))]:
            if codes and code[0] == codes[-1][0] == "equal":
                codes[-1] = ("equal", codes[-1][1], code[2], codes[-1][3], code[4])
            elif code[1] < code[2] or code[3] < code[4]:
                codes.append(code)
        x, y = next_x + 1, next_y + 1
    return codes


def _anchors(before: list[str], after: list[str]) -> list[tuple[int, int]]:
    """Return the longest series of lines that both texts have exactly once, in the same order ("patience diff")."""
    counts, new_counts = Counter(before), Counter(after)
    places = {line: y for y, line in enumerate(after) if new_counts[line] == 1}
    unique = [(x, places[line]) for x, line in enumerate(before) if counts[line] == 1 and line in places]
    ends: list[int] = []  # for each length, the smallest last y of an increasing series of that length
    lasts: list[int] = []  # for each length, the number of the pair with that y
    earlier: list[int] = []  # for each pair, the pair before it in its series, or -1
    for number, (_, y) in enumerate(unique):
        length = bisect_left(ends, y)
        earlier.append(lasts[length - 1] if length else -1)
        ends[length : length + 1] = [y]
        lasts[length : length + 1] = [number]
    series: list[tuple[int, int]] = []
    number = lasts[-1] if lasts else -1
    while number >= 0:
        series.append(unique[number])
        number = earlier[number]
    return series[::-1]


def _range(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _line(mark: str, line: str) -> str:
    return mark + line if line.endswith("\n") else f"{mark}{line}\n{_NO_NEWLINE}\n"


def _hunks_of(diff: Object) -> list[_Hunk]:
    patch = as_object(diff.get("patch"))
    return list(read_patch(str(patch.get("text", "")))) if patch.get("format") == "git_patch" else []


def read_patch(text: str) -> Iterator[_Hunk]:
    """Yield the hunks of a Git patch. Skip sections without hunks and lines outside of hunks."""
    old_path = new_path = ""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line, at = lines[at], at + 1
        if line.startswith("--- "):
            old_path = _unquote(line[4:])
        elif line.startswith("+++ "):
            new_path = _unquote(line[4:])
        elif found := _HUNK.match(line):
            old_size, new_size = (1 if found[side] is None else int(found[side]) for side in ("old", "new"))
            at, old, new = _read_hunk(lines, at, old_size, new_size)
            path = old_path if new_path == "/dev/null" else new_path
            yield _Hunk(path, None if old_path == "/dev/null" else old, new)


def _read_hunk(lines: list[str], at: int, old_left: int, new_left: int) -> tuple[int, str, str]:
    """Return the line after a hunk, and its text before and after. The sizes in its header determine its end."""
    texts: dict[str, list[str]] = {"-": [], "+": []}
    sides = ""
    while at < len(lines):
        line = lines[at]
        if line.startswith("\\"):
            for side in sides:
                texts[side][-1] = texts[side][-1].removesuffix("\n")
        elif old_left <= 0 and new_left <= 0:
            break
        else:
            sides = {"-": "-", "+": "+"}.get(line[:1], "-+")
            for side in sides:
                texts[side].append(line[1:] + "\n")
            old_left -= "-" in sides
            new_left -= "+" in sides
        at += 1
    return at, "".join(texts["-"]), "".join(texts["+"])


def _quote(path: str) -> str:
    if not _UNUSUAL.search(path):
        return path
    return '"' + _UNUSUAL.sub(lambda found: _ESCAPES.get(found[0], f"\\{ord(found[0]):03o}"), path) + '"'


def _unquote(name: str) -> str:
    name = name.split("\t", 1)[0]
    if not (len(name) > 1 and name.startswith('"') and name.endswith('"')):
        return name
    back = {written[1:]: plain for plain, written in _ESCAPES.items()}
    raw = re.sub(
        r'\\([0-7]{3}|["\\tnr])',
        lambda found: back.get(found[1]) or chr(int(found[1], 8)),
        name[1:-1],
    )
    try:
        return raw.encode("latin-1").decode()  # Git writes each non-ASCII byte as three octal digits
    except UnicodeError:
        return raw


def _item_of(hunk: _Hunk) -> Object:
    old = {} if hunk.old_text is None else {"oldText": hunk.old_text}
    return {"type": "diff", "path": hunk.path, **old, "newText": hunk.new_text}


def _sentence(change: Object) -> Object:
    operation = str(change.get("operation", "modify"))
    path, old = change.get("path", "A file"), change.get("oldPath")
    verb = _VERBS.get(operation, f"changed ({operation})")
    kind = f" ({change['fileType']})" if change.get("fileType") else ""
    sentence = f"{old} was {verb} to {path}{kind}" if old else f"{path} was {verb}{kind}"
    return {"type": "content", "content": {"type": "text", "text": sentence}}
