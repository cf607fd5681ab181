"""Where toolpick keeps what it can fetch or compute again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder TOOLPICK_CACHE names, else toolpick under XDG_CACHE_HOME, else ~/.cache/toolpick."""
    named = os.environ.get("TOOLPICK_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(named) if named else Path(base) / "toolpick"
