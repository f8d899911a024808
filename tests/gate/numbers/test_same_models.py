"""Which model of one run is which model of another."""

from __future__ import annotations

import pytest

from pytest_ortbench.core.model import Model
from pytest_ortbench.gate.numbers.same_models import later_names, twins


def at(place: str, digest: str = "d", *, root: str = "/ci/proj", name: str = "") -> Model:
    """A file of a document of now."""
    return Model(
        name=name or place.removesuffix(".onnx"),
        path=f"{root}/{place}",
        source="file",
        digest=digest,
        size_bytes=1,
        place=place,
    )


def old(name: str, path: str, digest: str = "d") -> Model:
    """A file of a document that calls files by their last part only."""
    return Model(name=name, path=path, source="file", digest=digest, size_bytes=1)


def shipped(name: str, source: str, digest: str = "d") -> Model:
    return Model(name=name, path="/cache/x.onnx", source=source, digest=digest, size_bytes=1)


def relation(earlier: Model | list[Model], later: Model) -> tuple[str, str] | None:
    """Path of what a model was, and how the two are related."""
    before = earlier if isinstance(earlier, list) else [earlier]
    twin = twins(before, [later]).earlier.get(later.name)
    return None if twin is None else (twin.model.path, twin.relation)


def test_a_file_at_the_same_place_is_the_same_model_wherever_the_project_lies() -> None:
    before = at("a/model.onnx", "1", root="/ci")
    assert relation(before, at("a/model.onnx", "1", root="/home/me")) == (before.path, "same")
    assert relation(before, at("a/model.onnx", "2", root="/home/me")) == (before.path, "changed")


def test_a_file_at_another_place_is_another_model_though_its_content_is_the_same() -> None:
    found = twins([at("a/model.onnx")], [at("b/model.onnx")])
    assert found.earlier == {}
    assert found.moved_from == {"b/model": "a/model"}
    assert found.moved_to("a/model") == "b/model"


def test_a_copy_beside_the_original_was_not_moved() -> None:
    found = twins([at("a/model.onnx")], [at("a/model.onnx"), at("b/model.onnx")])
    assert list(found.earlier) == ["a/model"]
    assert found.moved_from == {}


def test_another_content_was_not_moved() -> None:
    assert twins([at("a/model.onnx", "1")], [at("b/model.onnx", "2")]).moved_from == {}


def test_one_file_seen_from_two_roots_is_one_model() -> None:
    before = at("nets/model.onnx", "1", root="/w")
    later = at("model.onnx", "2", root="/w/nets")
    assert relation([at("model.onnx", "3", root="/w"), before], later) == (before.path, "changed")


def test_a_configured_name_counts_wherever_its_file_lies() -> None:
    before, later = at("v1/x.onnx", "1", name="det"), at("v2/x.onnx", "2", name="det")
    assert relation(before, later) == (before.path, "changed")
    # A file of that name is another model.
    assert relation(before, at("det.onnx", "2")) is None
    # The file is the same, whether it was configured already or not.
    assert relation(at("v2/x.onnx", "1"), later) == ("/ci/proj/v2/x.onnx", "changed")


@pytest.mark.parametrize(
    "other",
    [at("linear.onnx"), shipped("linear", "zoo:linear"), shipped("linear", "project:linear")],
)
def test_a_model_that_ships_is_no_other_model_of_its_name(other: Model) -> None:
    linear = shipped("linear", "builtin:linear")
    assert relation(linear, linear) == (linear.path, "same")
    assert relation(linear, other) is None
    assert relation(other, linear) is None


# Documents of versions that called files by their last part only.


def test_an_old_document_pairs_by_the_path_that_it_recorded() -> None:
    before = [
        old("model", "/ci/proj/b/model.onnx", "1"),
        old("a-model", "/ci/proj/a/model.onnx", "2"),
    ]
    assert relation(before, at("a/model.onnx", "3")) == ("/ci/proj/a/model.onnx", "changed")
    assert relation(before, at("b/model.onnx", "3")) == ("/ci/proj/b/model.onnx", "changed")


def test_an_old_document_of_another_checkout_pairs_by_the_end_of_the_path_and_says_so() -> None:
    before = [old("model", "/ci/p/b/model.onnx", "1"), old("a-model", "/ci/p/a/model.onnx", "2")]
    later = at("a/model.onnx", "3", root="/home/me")
    assert relation(before, later) == ("/ci/p/a/model.onnx", "unproven")
    same = at("a/model.onnx", "2", root="/home/me")
    assert relation(before, same) == ("/ci/p/a/model.onnx", "same")


def test_an_old_document_never_pairs_with_a_file_of_another_folder() -> None:
    found = twins([old("model", "/ci/p/b/model.onnx", "1")], [at("a/model.onnx", "2")])
    assert found.earlier == {}
    assert "/ci/p/b/model.onnx" in found.doubtful["a/model"]


def test_an_old_document_pairs_by_content_if_only_one_file_has_it() -> None:
    before = [old("net", "/x/net.onnx", "1"), old("other", "/x/other.onnx", "2")]
    assert relation(before, at("models/renamed.onnx", "1")) == ("/x/net.onnx", "same")


def test_copies_in_an_old_document_are_told_apart_by_their_folders_or_not_at_all() -> None:
    copies = [old("a-model", "/x/a/model.onnx"), old("b-model", "/x/b/model.onnx")]
    assert relation(copies, at("b/model.onnx")) == ("/x/b/model.onnx", "same")
    found = twins(copies, [at("c/model.onnx")])
    assert found.earlier == {}
    assert "could both be that model" in found.doubtful["c/model"]


def test_a_file_in_the_root_needs_more_than_its_name() -> None:
    before = old("model", "/ci/proj/model.onnx", "1")
    assert relation(before, at("model.onnx", "2", root="/home/proj")) == (before.path, "unproven")
    assert relation(before, at("model.onnx", "2", root="/home/elsewhere")) is None


def test_two_old_documents_pair_by_path_or_content() -> None:
    one = old("net", "/x/net.onnx", "1")
    assert relation(one, old("net", "/x/net.onnx", "2")) == ("/x/net.onnx", "changed")
    assert relation(one, old("net", "/y/net.onnx", "1")) == ("/x/net.onnx", "same")
    assert relation(one, old("net", "/y/net.onnx", "2")) is None


def test_a_windows_path_ends_like_any_other() -> None:
    before = old("model", "C:\\ci\\a\\model.onnx", "1")
    assert relation(before, at("a/model.onnx", "2")) == (before.path, "unproven")


def test_older_runs_call_their_models_as_the_newest_one_does() -> None:
    newest = {model.name: model for model in (at("a/model.onnx"), at("b/model.onnx", "2"))}
    before = [old("model", "/ci/proj/b/model.onnx", "1"), old("gone", "/ci/proj/gone.onnx", "9")]
    names = later_names({model.name: model for model in before}, newest)
    assert names == {"model": "b/model", "gone": "gone"}


def test_two_models_of_a_run_never_get_one_name() -> None:
    before = [old("model", "/ci/p/b/model.onnx", "1"), old("p-model", "/ci/p/model.onnx", "2")]
    newest = {"model": at("model.onnx", "2", root="/home/me")}
    names = later_names({model.name: model for model in before}, newest)
    assert names == {"model": "/ci/p/b/model.onnx", "p-model": "model"}
