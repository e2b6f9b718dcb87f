"""What was found wrong with a log while reading it."""

import msgspec


class Damage(msgspec.Struct, frozen=True):
    """What a log has lost: its torn end, or everything from a damaged place on."""

    torn: bool
    """True when only the last write was incomplete, as after a crash; False for damage inside."""
    after: int
    """The last record that was kept; 0 when none was."""
    at_byte: int
    """Where in the file the part begins that was not kept."""
    lost_bytes: int
    kept_as: str | None = None
    """The file that holds the damaged original, once it was set aside."""

    def __str__(self) -> str:
        kept = f"everything up to record {self.after} is kept" if self.after else "nothing before it was recorded"
        if self.torn:
            dropped = f" and {self.lost_bytes} bytes of an unfinished record were dropped" if self.lost_bytes else ""
            return f"the last write to this session was cut short, as a crash does it{dropped}; {kept}"
        original = f"; the damaged original is {self.kept_as}" if self.kept_as else ""
        return (
            f"the log of this session is damaged at byte {self.at_byte}: the {self.lost_bytes} bytes from there on "
            f"cannot be trusted and were left out; {kept}{original}"
        )
