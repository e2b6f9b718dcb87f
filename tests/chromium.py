"""The Chromium of the browser tests, which `scripts/browser` finds or installs."""

import os
import shutil

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""The headless shell comes first, because it needs half the CPU time of the full browser."""


def find_browser():
    """Return the path of Chromium, or None if there is none."""
    names = (os.environ.get("CHROMIUM", ""), *NAMES)
    return next((found for name in names if name and (found := shutil.which(name))), None)


def launch_options():
    """Return Playwright's launch options for it. Root has no sandbox."""
    return {"executable_path": find_browser(), "args": ["--no-sandbox"] if os.geteuid() == 0 else []}
