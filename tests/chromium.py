"""The Chromium of the browser tests: the one that `scripts/browser` finds or installs."""

import os
import shutil

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""The headless shell first: it needs half the processor time of the whole browser."""


def find_browser():
    """Return the path of Chromium; None where there is none."""
    names = (os.environ.get("CHROMIUM", ""), *NAMES)
    return next((found for name in names if name and (found := shutil.which(name))), None)


def launch_options():
    """Return the options of Playwright to launch it with; root has no sandbox."""
    return {"executable_path": find_browser(), "args": ["--no-sandbox"] if os.geteuid() == 0 else []}
