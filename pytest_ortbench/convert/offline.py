"""The graph as ONNX Runtime optimises it, saved: what applications do to start faster."""

from __future__ import annotations

from pathlib import Path

from pytest_ortbench.convert.external import inlined
from pytest_ortbench.convert.graph import INLINE_LIMIT, Draft, count_types
from pytest_ortbench.convert.simplify import count_nodes
from pytest_ortbench.core.case import Provider, SessionConfig
from pytest_ortbench.core.cpus import allowance
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.core.recipe import TIED_LEVELS, Conversion
from pytest_ortbench.worker.session import create, session_options

#: Smaller weights stay in the model file itself where the large ones lie beside it.
_LEAST_EXTERNAL = 1024


def optimise(source: Path, target: Path, conversion: Conversion, scratch: Path) -> Draft:
    """Have ONNX Runtime optimise a model for the CPU provider, and save what it made.

    Args:
        source: The model.
        target: Where the result goes; the weights of a large one go into a file beside it.
        conversion: With base ``optimized``.
        scratch: Folder for what is written on the way.

    Raises:
        Exception: what ONNX Runtime raises.
    """
    import onnx

    level = conversion.recipe.level
    original = onnx.load(str(source), load_external_data=False)
    config = SessionConfig(graph_optimization_level=level, custom_ops=conversion.custom_ops)
    large = conversion.size_bytes >= INLINE_LIMIT
    if not large:
        # What is saved would go on pointing at weights in a folder where they are not.
        source = inlined(source, scratch)
    save_optimised(source, target, config, beside=large)
    made = onnx.load(str(target), load_external_data=False)
    tied = "; its layout is for hardware like this machine's" if level in TIED_LEVELS else ""
    return Draft(
        before=count_types(original),
        facts={"nodes": f"{count_nodes(original)} → {count_nodes(made)}"},
        notes=(f"optimised for the CPU provider at level {level}{tied}",),
    )


def save_optimised(source: Path, target: Path, config: SessionConfig, *, beside: bool) -> None:
    """Have ONNX Runtime save the graph that it makes for the CPU provider.

    Args:
        source: The model.
        target: Where the result goes.
        config: With the level of optimisation.
        beside: Whether its weights go into a file beside it.

    Raises:
        Exception: what ONNX Runtime raises.
    """
    options = session_options(config, threads=allowance().threads)
    options.optimized_model_filepath = str(target)
    if beside:
        entry = "session.optimized_model_external_initializers_"
        options.add_session_config_entry(f"{entry}file_name", f"{target.name}.data")
        options.add_session_config_entry(f"{entry}min_size_in_bytes", str(_LEAST_EXTERNAL))
    create(str(source), Provider(alias="cpu", name=CPU), options)
