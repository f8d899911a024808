import string

from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.core.case import Case, Provider, Runtime, escape_part
from pytest_ortbench.core.model import Model, Variant


def make_case(
    *,
    model: str = "resnet50",
    precision: str = "fp16",
    alias: str = "cuda",
    device: str = "",
    batch: int = 8,
    dims: dict[str, int] | None = None,
    knobs: dict[str, str] | None = None,
    runtime: str = "current",
) -> Case:
    return Case(
        model=Model(name=model, path="/m.onnx", source="file", digest="0", size_bytes=1),
        variant=Variant(precision=precision, path="/m.onnx", digest="0", size_bytes=1),
        provider=Provider(alias=alias, name="X", device=device),
        batch=batch,
        dims=dims or {},
        knobs=knobs or {},
        runtime=Runtime(label=runtime),
    )


def test_ids_read_as_documented() -> None:
    assert make_case().case_id == "resnet50/fp16/cuda/b8"
    assert (
        make_case(model="bert", alias="openvino", device="GPU", batch=1, dims={"seq": 128}).case_id
        == "bert/fp16/openvino:GPU/b1/seq:128"
    )
    assert make_case(knobs={"threads": "4"}).case_id == "resnet50/fp16/cuda/b8/threads:4"


def test_the_runtime_is_part_of_the_key_and_not_of_the_id() -> None:
    one, other = make_case(runtime="current"), make_case(runtime="onnxruntime-1.20.1")
    assert one.case_id == other.case_id
    assert one.key != other.key


@given(st.text(max_size=20))
def test_no_id_holds_what_breaks_a_keyword_expression(name: str) -> None:
    assert not set(escape_part(name)) & set("=@|/ \t\n()[]'\"")


_words = st.text(string.ascii_lowercase + string.digits + "_-.", min_size=1, max_size=6)
_cases = st.builds(
    make_case,
    model=_words,
    precision=st.sampled_from(["native", "fp16", "int8-static"]),
    alias=st.sampled_from(["cpu", "cuda", "openvino"]),
    device=st.sampled_from(["", "0", "GPU"]),
    batch=st.integers(1, 4),
    dims=st.dictionaries(st.sampled_from(["seq", "hw"]), st.integers(1, 3), max_size=2),
)


def _asked(case: Case) -> tuple[object, ...]:
    return (
        case.model.name,
        case.variant.precision,
        case.provider.label,
        case.batch,
        tuple(case.dims.items()),
    )


@given(_cases, _cases)
def test_different_cases_have_different_ids(one: Case, other: Case) -> None:
    assert (one.case_id == other.case_id) == (_asked(one) == _asked(other))
