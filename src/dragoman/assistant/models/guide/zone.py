"""Where it is what time: well-known places as IANA time zones."""

import re
from functools import lru_cache
from pathlib import Path

_REGIONS = ("Europe", "America/Argentina", "America", "Asia", "Africa", "Australia", "Pacific", "Atlantic", "Indian")

# Places that have no zone of their own name.
_ALSO = {
    **dict.fromkeys(("utc", "gmt", "zulu", "greenwich"), "UTC"),
    **dict.fromkeys(
        ("san francisco", "seattle", "california", "la", "sf", "las vegas", "portland"), "America/Los_Angeles"
    ),
    **dict.fromkeys(("boston", "washington", "nyc", "miami", "atlanta", "philadelphia"), "America/New_York"),
    **dict.fromkeys(("dallas", "houston", "austin", "texas", "new orleans"), "America/Chicago"),
    **dict.fromkeys(("munich", "hamburg", "frankfurt", "cologne", "germany"), "Europe/Berlin"),
    **dict.fromkeys(("milan", "naples", "venice", "italy"), "Europe/Rome"),
    **dict.fromkeys(("barcelona", "spain"), "Europe/Madrid"),
    **dict.fromkeys(("geneva", "bern", "basel", "switzerland"), "Europe/Zurich"),
    **dict.fromkeys(("lyon", "marseille", "france"), "Europe/Paris"),
    **dict.fromkeys(("manchester", "edinburgh", "uk", "england", "britain"), "Europe/London"),
    **dict.fromkeys(("mumbai", "delhi", "new delhi", "bangalore", "chennai", "india"), "Asia/Kolkata"),
    **dict.fromkeys(("beijing", "shenzhen", "china"), "Asia/Shanghai"),
    **dict.fromkeys(("osaka", "kyoto", "japan"), "Asia/Tokyo"),
    **dict.fromkeys(("rio", "rio de janeiro", "brasilia", "brazil"), "America/Sao_Paulo"),
    **dict.fromkeys(("korea", "south korea"), "Asia/Seoul"),
    **dict.fromkeys(("montreal", "ottawa"), "America/Toronto"),
    "amsterdam": "Europe/Amsterdam",
    "netherlands": "Europe/Amsterdam",
    "tokyo": "Asia/Tokyo",
    "london": "Europe/London",
    "new york": "America/New_York",
    "paris": "Europe/Paris",
    "berlin": "Europe/Berlin",
    "cape town": "Africa/Johannesburg",
    "abu dhabi": "Asia/Dubai",
    "hawaii": "Pacific/Honolulu",
    "kiev": "Europe/Kyiv",
    "saigon": "Asia/Ho_Chi_Minh",
    "turkey": "Europe/Istanbul",
    "russia": "Europe/Moscow",
    "egypt": "Africa/Cairo",
}
_NAME = re.compile(r"[A-Za-z]+(?:[ _-][A-Za-z]+){0,3}\Z")
_ZONE = re.compile(r"(?:[A-Z][A-Za-z]+/[A-Z][A-Za-z_+-]+(?:/[A-Z][A-Za-z_]+)?|Etc/GMT[+-]?\d{0,2}|UTC|GMT)\Z")


@lru_cache(512)
def find_zone(place: str) -> str | None:
    """Return the zone of a place, or the zone itself when it is one."""
    place = place.strip()
    if _ZONE.match(place):
        return place
    if not _NAME.match(place):
        return None
    known = _ALSO.get(place.lower().replace("_", " "))
    return known or _on_disk("_".join(word.capitalize() for word in re.split("[ _]", place)))


def _on_disk(city: str) -> str | None:
    from zoneinfo import TZPATH

    names = (f"{region}/{city}" for region in _REGIONS)
    return next((name for name in names for root in TZPATH if (Path(root) / name).is_file()), None)
