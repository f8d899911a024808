"""Engines that a provider builds once and keeps: built outside the timed region, never by accident.

TensorRT compiles a graph for seconds to minutes, when the session is created or a shape first
appears. Its cache is off by default, so every worker would build again; switched on by hand it
lies in the current folder, where an engine of another model, precision or driver may be found.
Here every case has a folder of its own within the run: the first worker builds (``cold``), the
others load what it built (``warm``), and both times are reported apart.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.case import Case, Provider
from pytest_ortbench.schema.wire import to_plain

#: Options that switch a provider's cache on, ``{}`` standing for its folder, and the option that
#: says where it lies.
_CACHES: dict[str, tuple[dict[str, str], str]] = {
    "TensorrtExecutionProvider": (
        {
            # TensorRT's switches take no 1: "should be 'True' or 'False'".
            "trt_engine_cache_enable": "True",
            "trt_engine_cache_path": "{}",
            "trt_timing_cache_enable": "True",
            "trt_timing_cache_path": "{}",
        },
        "trt_engine_cache_path",
    ),
    "NvTensorRTRTXExecutionProvider": (
        {"nv_runtime_cache_path": "{}"},
        "nv_runtime_cache_path",
    ),
    "MIGraphXExecutionProvider": (
        {"migraphx_model_cache_dir": "{}"},
        "migraphx_model_cache_dir",
    ),
}


def cache_key(case: Case) -> str:
    """Digest over all that decides which engine a case needs.

    The driver and the libraries do not change within a run; the runtime stands for them.
    """
    deciding = {
        "model": case.variant.digest,
        "path": case.variant.path,
        "provider": to_plain(case.provider),
        "session": to_plain(case.session),
        "runtime": case.runtime.label,
        "shapes": [[spec.name, spec.type, list(spec.shape)] for spec in case.inputs],
        "io": case.io,
    }
    text = json.dumps(deciding, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def with_cache(case: Case, root: str) -> tuple[Provider, str]:
    """Switch a provider's cache on, that of each link of a chain, in a folder of the case.

    Args:
        case: What is measured; options that the user has set stay as they are.
        root: Folder of all caches of this run; empty keeps none.

    Returns:
        The provider, and the state of its cache: ``none``, ``cold`` or ``warm``.
    """
    states: list[str] = []

    def cached(link: Provider) -> Provider:
        link, state = _with_cache(case, link, root)
        states.append(state)
        return link

    provider = case.provider.of_links(cached)
    # Of several engines the one that is built decides on the time.
    return provider, next((state for state in ("cold", "warm") if state in states), "none")


def _with_cache(case: Case, provider: Provider, root: str) -> tuple[Provider, str]:
    options, where = _CACHES.get(provider.name, ({}, ""))
    if not options:
        return provider, "none"
    if any(key in provider.options for key in options):
        return provider, _state(provider.options.get(where, ""))
    if not root:
        return provider, "none"
    folder = Path(root) / cache_key(case)
    folder.mkdir(parents=True, exist_ok=True)
    given = {key: value.format(folder) for key, value in options.items()}
    state = _state(str(folder))
    return replace(provider, options={**provider.options, **given}), state


def _state(folder: str) -> str:
    if not folder:
        return "none"
    path = Path(folder)
    return "warm" if path.is_dir() and any(path.iterdir()) else "cold"
