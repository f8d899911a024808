"""Log lines of libraries that work for us: they say nothing to the user of a benchmark."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

#: Loggers of what the host's side uses, directly or below it.
_LOGGERS = (
    *("PIL", "asyncio", "filelock", "fontTools", "httpcore", "httpx", "huggingface_hub"),
    *("matplotlib", "onnx_ir", "onnxscript", "onnxslim", "requests", "urllib3"),
)


@contextmanager
def without_foreign_logs() -> Iterator[None]:
    """Keep these libraries from logging while we work, whatever level the user shows.

    Their loggers are as they were afterwards: the user's own tests may want them.
    """
    levels = {name: logging.getLogger(name).level for name in _LOGGERS}
    for name in levels:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
