"""A prompt taken apart into steps, at the words and marks that join them."""

import re
from collections.abc import Iterator

from dragoman.assistant.models.guide.literal import TOKEN, Masked, is_token
from dragoman.assistant.models.guide.path import looks_like_path
from dragoman.assistant.models.guide.prompt import LONG, without_courtesy, without_ending
from dragoman.assistant.models.guide.words import vocabulary

MAX_STEPS = 20
"""Steps that one prompt may have: each costs a model request, and a turn has a limit of those."""

_VERBS = vocabulary(
    "read show open view display cat print list ls find search grep look locate write create save add make put replace "
    "change rename edit update run execute exec plan fetch get tell give check what what's which who when where how "
    "help use call remember delete remove move copy append convert set send schedule commit store substitute "
    "inspect examine query ask translate calculate compute count close describe summarize summarise stage"
)
_CONTENT = re.compile(
    r"(?:write|create|make|save|put|add|plan|todo|to-do)\b[^\n]{0,300}?"
    r"(?::(?=\s|\Z)|\b(?:with|containing|saying|that says)\b)",
    re.IGNORECASE,
)
_RUN = re.compile(r"(?:run|execute|exec|\$|!)\s*", re.IGNORECASE)
_SHELL_SYNTAX = re.compile(r"(?:if|for|while|until|case)\s", re.IGNORECASE)
_ITEM = re.compile(r"[ \t]*(?:\d{1,3}[.)]|[-*•])[ \t]+")
_THEN = re.compile(
    r"(?:\s*[,;.]\s*|\s+)(?:and\s+)?(?:then|after(?:wards| that)|finally|next)\b[,:]?\s+|\s*;\s+(?:and\s+)?|\s+&&\s+",
    re.IGNORECASE,
)
_AND = re.compile(r"(?:,\s*|\s+)and\s+(?:also\s+)?|(?<=[^\s\d])[.!?]\s+|,\s+", re.IGNORECASE)
_PREPOSITIONS = vocabulary("in of for from to with by at on into under and or")
_MANY = re.compile(
    rf"(?P<verb>(?:read|cat|open|view|show(?: me)?|list|display|print)\s+)(?P<first>{TOKEN}|\S+?)"
    rf"(?P<rest>(?:\s*,\s*(?:and\s+)?|\s+and\s+)(?:{TOKEN}|\S).*)\Z",
    re.IGNORECASE | re.DOTALL,
)


def split_steps(masked: Masked) -> list[Masked]:
    """Return the steps of a prompt, at most MAX_STEPS; one when nothing joins several."""
    text = masked.text.strip()
    if len(text) > LONG:
        return [masked.part(text)]
    steps = [step for block in _blocks(text) for step in _sentence_steps(block)]
    expanded = [one for step in steps for one in _each_path(step)]
    return [masked.part(step) for step in expanded[:MAX_STEPS] if step]


def opens(text: str) -> bool:
    """Tell whether a text begins as a request does."""
    words = without_courtesy(text).split(None, 1)
    return bool(words) and words[0].lower().rstrip(":,") in _VERBS


def _blocks(text: str) -> list[str]:
    """Split at lines, where a line begins a request of its own."""
    lines = text.split("\n")
    if len(lines) == 1 or _takes_the_rest(lines):
        return [_ITEM.sub("", text, count=1) if _ITEM.match(text) and not text.startswith(("- ", "* ")) else text]
    blocks: list[str] = []
    items = sum(1 for line in lines if _ITEM.match(line))
    for line in lines:
        item = _ITEM.match(line)
        words = line[item.end() :] if item else line
        if not blocks or item or opens(words):
            blocks.append(words.strip())
        else:
            blocks[-1] = f"{blocks[-1]}\n{line}".strip()
    if items and blocks and blocks[0].endswith(":"):
        blocks.pop(0)
    return [block for block in blocks if block]


def _takes_the_rest(lines: list[str]) -> bool:
    """Tell whether the first line announces what the other lines hold."""
    first = without_courtesy(lines[0]).rstrip()
    if not first or _CONTENT.match(first) is None:
        return False
    return first.endswith(":") or not any(opens(_ITEM.sub("", line, count=1)) for line in lines[1:])


def _sentence_steps(text: str) -> Iterator[str]:
    start = without_courtesy(text)
    run = _RUN.match(start)
    if run is not None and _SHELL_SYNTAX.match(start, run.end()):
        yield text
        return
    if _is_plan(start) or ("\n" in start and _takes_the_rest(start.split("\n"))):
        yield text
        return
    position = 0
    for joint in _joints(text):
        left, right = text[position : joint.start()], text[joint.end() :]
        if joint.start() < position or not left.strip() or not _parts(left, joint, right):
            continue
        yield left.strip(" ,;")
        position = joint.end()
    yield text[position:].strip()


def _joints(text: str) -> list[re.Match[str]]:
    found = [*_THEN.finditer(text), *_AND.finditer(text)]
    return sorted(found, key=lambda joint: (joint.start(), -joint.end()))


def _parts(left: str, joint: re.Match[str], right: str) -> bool:
    """Decide whether a joint parts two steps or stands inside one."""
    start = without_courtesy(left)
    is_text = _CONTENT.match(start) is not None
    is_command = _RUN.match(start) is not None and not is_token(without_ending(_RUN.sub("", start, count=1)))
    strong = joint.re is _THEN
    if is_command and joint[0].strip() in (";", "&&"):
        return False
    if strong and not (is_text or is_command):
        return joint[0].strip() not in (";", "&&") or opens(right)
    if not opens(right):
        return False
    if strong and is_command:
        return True
    return has_object(right) and (opens(left) or strong) and not _is_courtesy(left)


def _is_courtesy(text: str) -> bool:
    return without_courtesy(f"{text} x") == "x"


def has_object(text: str) -> bool:
    """Tell whether a request names what it is about in a way that cannot be mistaken for talk."""
    words = without_courtesy(text).split()[1:8]
    if not words or words[0].lower() in _PREPOSITIONS - {"for", "in"}:
        return False
    if [word.lower().rstrip(".!?") for word in words] == ["it"]:
        return True
    verb = without_courtesy(text).split()[0].lower()
    if verb in ("run", "execute", "list", "ls", "what", "what's", "plan:"):
        return True
    return any(
        is_token(word.rstrip(".,;:!?")) or looks_like_path(word) or word.isupper() or "://" in word for word in words
    )


def _is_plan(text: str) -> bool:
    return re.match(r"(?:plan|todo|to-do|make a plan)\s*:", text, re.IGNORECASE) is not None


def _each_path(step: str) -> list[str]:
    """Make a step for each path of `read a.txt, b.txt and c.txt`."""
    found = _MANY.match(step)
    if found is None:
        return [step]
    words = [found["first"], *re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", found["rest"].strip(" ,"))]
    names = [re.sub(r"\A(?:and|also)\s+", "", word.strip()) for word in words]
    names = [name for name in names if name]
    if not all(is_token(name) or looks_like_path(name) for name in names):
        return [step]
    return [f"{found['verb']}{name}" for name in names]
