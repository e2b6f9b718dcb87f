"""How many files this process may have open: each live session holds one, its lock."""

_MODEST = 10_240
"""What macOS allows, whatever it says."""


def raise_fd_limit() -> int:
    """Raise the soft limit on open files as far as the hard one allows, and say what it is now."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (hard, _MODEST):
        if wanted != resource.RLIM_INFINITY and wanted > soft != resource.RLIM_INFINITY:
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            except (OSError, ValueError):
                continue
            return wanted
    return soft
