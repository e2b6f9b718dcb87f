"""Sayings whose words mean something else one by one: each is read as the words that a tool would use for it."""

import re

_NUMBER = r"[+-]?\d[\d.,]*"
_IDIOMS = tuple(
    (re.compile(pattern, re.IGNORECASE), instead)
    for pattern, instead in (
        (r"\bhow late is it\b|\bwhat does the clock say\b|\bwhat o['\u2019]clock is it\b", "time"),
        (r"\bsay\b(?=.{0,200}\bback\b)", "echo"),
        (r"\bnot\s+(?:yet\s+)?(?:been\s+)?([a-z]{3,}ed)\b", r"un\1"),
        (r"\blocal time\b", "current time"),
        (r"\bwhen was\b(?=.{1,200}\b(?:modified|changed|created|edited|updated|written)\b)", "get info"),
        (r"\bhow (?:big|large) is\b", "get info size"),
        (r"\bcheck\s+out\b", "checkout"),
        (r"(?<=\w )changes\b(?!\s+(?:the|a|an|its|it)\b)", "differences"),
        (r"\bcommits\b", "commit log"),
        (r"\A\s*stage\b", "add staging"),
        (r"\A\s*unstage\b", "reset unstaged"),
        (r"\bmkdir\b", "create directory"),
        (r"\b(?:turn|switch)(?=\s.{0,60}\b(?:on|off)\b)", "toggle"),
        (rf"\b(?:add|sum)(?:\s+up)?(?=\s+{_NUMBER}\s*(?:and|to|plus|with|,|&|\+)\s*{_NUMBER})", "sum"),
        (rf"\b(?:compute|calculate|work out)(?=\s+{_NUMBER})", "get"),
        (rf"(?<=[0-9])\s*\+\s*(?={_NUMBER})", " sum "),
        (rf"\bsubtract(?=\s+{_NUMBER})|\bminus(?=\s+{_NUMBER})", "subtract"),
        (rf"\b(?:multiply(?=\s+{_NUMBER})|times(?=\s+{_NUMBER}))", "multiply"),
        (rf"\bdivided?\s+(?:by\s+)?(?={_NUMBER})", "divide "),
    )
)


def plain_words(text: str) -> str:
    """Return a text with its sayings in plain words."""
    for pattern, instead in _IDIOMS:
        text = pattern.sub(instead, text)
    return text
