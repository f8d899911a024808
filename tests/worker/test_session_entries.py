"""Session config entries that ONNX Runtime would drop."""

from __future__ import annotations

import onnxruntime
import pytest

from pytest_ortbench.worker.session_entries import EntryUnknown, require_known


@pytest.mark.parametrize(
    "key",
    [
        "session.intra_op.allow_spinning",
        "session.disable_prepacking",
        "session.force_spinning_stop",
        "optimization.enable_gelu_approximation",
        # Of custom operators and providers, whose libraries may be anywhere.
        "acme.speed",
        "ep.acme.speed",
    ],
)
def test_what_it_reads_passes(key: str) -> None:
    require_known([key])


@pytest.mark.parametrize(
    "key", ["session.foo", "session.intra_op", "session.disable_prepackin", "optimization.fast"]
)
def test_what_it_does_not_read_is_refused(key: str) -> None:
    with pytest.raises(EntryUnknown) as caught:
        require_known(["session.disable_prepacking", key])
    assert str(caught.value) == (
        f"ONNX Runtime {onnxruntime.__version__} does not know the session option {key!r}"
    )
