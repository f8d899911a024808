"""Where fetched and built models are kept."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_ortbench.core.home_folder import in_home

#: Environment variable that names another cache folder.
CACHE_VARIABLE = "ORTBENCH_CACHE"


def cache_folder() -> Path:
    """Return the cache folder: ``$ORTBENCH_CACHE``, else the user's own cache folder.

    It is not made here: whoever writes into it makes it.
    """
    chosen = os.environ.get(CACHE_VARIABLE, "").strip()
    if chosen:
        return in_home(chosen).absolute()
    import platformdirs  # not needed by a project that merely has the plugin installed

    return Path(platformdirs.user_cache_path("ortbench"))
