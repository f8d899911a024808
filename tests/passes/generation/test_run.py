"""The generation pass on real sessions: an honest int4, and one whose scales are damaged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.case import Case, InputSpec
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.model import ValueHint, Variant
from pytest_ortbench.execution.means import Means
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.models.graph import read_model
from pytest_ortbench.passes.generation.run import NEW_TOKENS, PROMPT_TOKENS, measure
from tests.launch.cases import case_of
from tests.passes.generation.generated import make_generated, make_generating_case, make_request
from tests.passes.generation.graphs import (
    HEADS_OF_CACHE,
    LAYERS,
    SIZE,
    VOCABULARY,
    tiny_decoder,
)

pytestmark = pytest.mark.live

BATCH, PROMPT, NEW = 2, 16, 40


def int4_case(folder: Path, *, damage: float = 1.0) -> Case:
    """A case of an int4 variant of a decoder in fp32."""
    source, path = tiny_decoder(folder / "m.onnx"), folder / "int4.onnx"
    tiny_decoder(path, bits=4, damage=damage)
    asked = make_generating_case(prompt=PROMPT, new=NEW).generation
    hint = ValueHint(kind="integers", low=0, high=VOCABULARY - 1)
    ids = InputSpec(name="input_ids", type="tensor(int64)", shape=(BATCH, PROMPT), hint=hint)
    return replace(
        case_of(path, inputs=(ids,)),
        model=read_model(source, name="m", source="file"),
        variant=Variant(
            precision="int4",
            path=str(path),
            digest=file_digest(path),
            size_bytes=path.stat().st_size,
            recipe={"base": "int4"},
        ),
        batch=BATCH,
        generation=asked,
    )


@pytest.mark.parametrize(("damage", "is_wrong"), [(1.0, False), (4.0, True)])
def test_an_int4_with_damaged_scales_is_inaccurate(
    tmp_path: Path, launcher: ProcessLauncher, damage: float, is_wrong: bool
) -> None:
    result = make_generated(
        [[make_request((9, 2, 2))] * 3], case=int4_case(tmp_path, damage=damage)
    )
    check = measure(result, Means(launcher=launcher))
    assert check.reason == check.reference_reason == ""
    assert check.after[0] == PROMPT_TOKENS
    # The same file on both sides, damaged or not.
    assert min(check.consistent_db) > 100
    assert check.likeness is not None
    assert (check.likeness.sequences, check.likeness.tokens) == (BATCH, NEW_TOKENS)
    flags = {flag.name for flag in flags_of(replace(result, generation=check))}
    assert ("INACCURATE" in flags) is is_wrong
    # Keys and values of each layer, for all tokens but the last, which nobody reads.
    tokens = PROMPT + NEW - 1
    assert check.cache_tokens == tokens
    assert check.cache_bytes == 2 * LAYERS * HEADS_OF_CACHE * SIZE * tokens * 4 * BATCH
    assert check.cache_computed_bytes == check.cache_bytes
