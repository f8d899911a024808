"""Recipes of the project: read, checked, and what the shipped ones are."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.recipe import BASES
from pytest_ortbench.planning import recipes as module
from pytest_ortbench.planning.recipes import (
    check_precisions,
    products_may_saturate,
    recipes,
    shipped_recipe,
)
from tests.refused import refused


def configure(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return folder


def test_without_configuration_there_are_the_shipped_ones(tmp_path: Path) -> None:
    assert list(recipes(configure(tmp_path, ""))) == list(BASES)


def test_a_recipe_takes_what_it_does_not_set_from_its_base(tmp_path: Path) -> None:
    root = configure(
        tmp_path,
        """
        [tool.ortbench.precisions.int8-heads]
        base = "int8-static"
        nodes_to_exclude = ["/head/MatMul"]
        calibration = "percentile"
        percentile = 99.9
        calibration_data = "data/calibration"
        per_channel = true
        sqnr_floor = 22
        """,
    )
    found = recipes(root)["int8-heads"]
    assert (found.name, found.base) == ("int8-heads", "int8-static")
    assert found.nodes_to_exclude == ("/head/MatMul",)
    assert (found.calibration, found.percentile, found.per_channel) == ("percentile", 99.9, True)
    assert found.calibration_data == str(root / "data/calibration")
    assert found.sqnr_floor_db == 22.0
    assert (found.weight_type, found.activation_type) == (
        "int8",
        shipped_recipe("int8-static").activation_type,
    )


def test_ranges_are_those_that_were_seen_unless_asked_otherwise() -> None:
    recipe = shipped_recipe("int8-static")
    assert (recipe.calibration, recipe.settings()["calibration"]) == ("minmax", "minmax")


def test_a_shipped_precision_can_be_tuned(tmp_path: Path) -> None:
    root = configure(tmp_path, '[tool.ortbench.precisions.int8-dynamic]\nweight_type = "int8"\n')
    assert recipes(root)["int8-dynamic"].weight_type == "int8"


def test_ortbench_toml_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "ortbench.toml").write_text('[precisions.half]\nbase = "fp16"\nblock_list = []\n')
    assert recipes(tmp_path)["half"].block_list == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[tool.ortbench.precisions]\nx = 3", "the entry is 3, not a table"),
        ('[tool.ortbench.precisions]\n"x y" = "bf16"', '"x y" = { base = "bf16" }'),
        ("[tool.ortbench.precisions.x]", "the key 'base' is missing"),
        (
            '[tool.ortbench.precisions.x]\nbase = "int8"',
            "which is not a precision to start from. Did you mean 'int8-dynamic' or 'int8-static'?",
        ),
        (
            '[tool.ortbench.precisions.x]\nbase = "fp16"\nblok_list = []',
            "fp16 has no setting 'blok_list'. Did you mean 'block_list'?",
        ),
        (
            '[tool.ortbench.precisions.x]\nbase = "fp16"\nweight_type = "int8"',
            "fp16 has no setting 'weight_type'",
        ),
        (
            '[tool.ortbench.precisions.native]\nbase = "fp16"',
            "'native' is a built-in name with a fixed meaning",
        ),
        (
            '[tool.ortbench.precisions.fp16]\nbase = "bf16"',
            "'fp16' is a built-in name with a fixed meaning",
        ),
        (
            '[tool.ortbench.precisions.x]\nbase = "int8-dynamic"\nweight_type = "int4"',
            "'int4' is not a value of weight_type. Did you mean 'int8'?",
        ),
        (
            '[tool.ortbench.precisions.x]\nbase = "int8-static"\ncalibration = "kl"',
            "'kl' is not a value of calibration. Choose one of: minmax, entropy, percentile",
        ),
        (
            '[tool.ortbench.precisions.x]\nbase = "int8-static"\npercentile = 0.99',
            "percentile is 0.99, but must be above 50 and at most 100. Write e.g. percentile = 99",
        ),
        (
            '[tool.ortbench.precisions.x]\nbase = "int8-static"\nper_channel = "yes"',
            "per_channel is 'yes', not true or false",
        ),
        (
            '[tool.ortbench.precisions.x]\nbase = "int8-static"\ncalibration_samples = -1',
            "calibration_samples is -1, not a whole number above 0",
        ),
        (
            '[tool.ortbench.precisions.x]\nbase = "int8-static"\ncalibration_samples = 0',
            "calibration_samples is 0, not a whole number above 0",
        ),
        (
            '[tool.ortbench.precisions.x]\nbase = "int8-static"\ncalibration_samples = "64"',
            "Write e.g. calibration_samples = 64",
        ),
        (
            '[tool.ortbench.precisions.x]\nbase = "fp16"\nsqnr_floor = "25"',
            "Write e.g. sqnr_floor = 25",
        ),
        (
            '[tool.ortbench.precisions.x]\nbase = "fp16"\nsqnr_floor = nan',
            "sqnr_floor is nan, not a finite number",
        ),
        (
            '[tool.ortbench.precisions.x]\nbase = "fp16"\nsqnr_floor = -inf',
            "sqnr_floor is -inf, not a finite number",
        ),
        (
            '[tool.ortbench.precisions.x]\nbase = "int8-static"\n'
            'activation_type = "int8"\nweight_type = "uint8"',
            'no kernels for activation_type = "int8" with weight_type = "uint8"',
        ),
        ('[tool.ortbench.precisions.x]\nbase = "int4"\nblock_size = 33', "block_size is 33"),
        ('[tool.ortbench.precisions.x]\nbase = "int4"\naccuracy_level = 5', "accuracy_level is 5"),
        (
            '[tool.ortbench.precisions.x]\nbase = "fp16"\nblock_list = 3',
            'Write e.g. block_list = ["Resize"]',
        ),
        (
            '[tool.ortbench.precisions.x]\nbase = "int8-static"\ncalibration_data = 3',
            'Write e.g. calibration_data = "calibration"',
        ),
        (
            '[tool.ortbench.precisions.x]\nbase = "fp16"\nblock_list = "Resize"',
            "block_list is 'Resize', not a list of names. Write block_list = [\"Resize\"]",
        ),
    ],
)
def test_what_breaks_a_rule_names_place_and_next_step(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        recipes(configure(tmp_path, text))
    assert says in str(caught.value)
    assert str(tmp_path / "pyproject.toml") in str(caught.value)


def test_names_may_be_precisions_recipes_and_own_variants(tmp_path: Path) -> None:
    root = configure(tmp_path, '[tool.ortbench.precisions.half]\nbase = "fp16"')
    names = ("native", "half", "qat")
    check_precisions(
        names, place="--ort-precisions", known=recipes(root), variants=("qat",), root=root
    )


def unknown(name: str, root: Path) -> str:
    with pytest.raises(UsageError) as caught:
        check_precisions(
            (name,), place="--ort-precisions", known=recipes(root), variants=(), root=root
        )
    assert repr(name) in caught.value.message
    return caught.value.hint


def test_an_unknown_name_is_refused_with_the_nearest(tmp_path: Path) -> None:
    assert "'fp16'" in unknown("fp61", tmp_path)
    assert all(f"'{name}'" in unknown("int8", tmp_path) for name in ("int8-dynamic", "int8-static"))


def test_a_precision_is_defined_in_the_file_that_is_read(tmp_path: Path) -> None:
    assert "[tool.ortbench.precisions.mixed] in pyproject.toml" in unknown("mixed", tmp_path)
    (tmp_path / "ortbench.toml").write_text('[precisions.small]\nbase = "int4"')
    assert "[precisions.mixed] in ortbench.toml" in unknown("mixed", tmp_path)
    below = tmp_path / "below"
    below.mkdir()
    assert f"[precisions.mixed] in {tmp_path / 'ortbench.toml'}" in unknown("mixed", below)


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ('base = "int8-dynamic"\nsqnr_floor = "30 dB"', "'30 dB'", "sqnr_floor = 30"),
        ('base = "int8-static"\npercentile = "99.9"', "'99.9'", "percentile = 99.9"),
        ('base = "int4"\nblock_size = "48"', "'48'", "block_size = 32"),
        ('base = "int4"\nblock_size = 0', "0", "block_size = 128"),
        ('base = "fp16"\nblock_list = true', " true,", 'block_list = ["Resize"]'),
        ('base = "int8-dynamic"\ncalibration_data = "a"', "'calibration_data'", '"int8-static"'),
        ('nodes_to_exclude = ["a"]', "'base'", "fp16"),
        ("block_size = 32", "'base'", 'base = "int4"'),
    ],
)
def test_the_next_step_fits_what_was_written(
    tmp_path: Path, text: str, said: str, hint: str
) -> None:
    with refused(UsageError, said, hint=hint):
        recipes(configure(tmp_path, f"[tool.ortbench.precisions.x]\n{text}"))


def test_a_list_of_bases_is_one_base_for_each_precision(tmp_path: Path) -> None:
    text = '[tool.ortbench.precisions]\nx = ["int8-static", "int4"]'
    with refused(UsageError, hint='x = { base = "int8-static" }'):
        recipes(configure(tmp_path, text))


def test_settings_of_the_model_as_it_is_are_removed(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        recipes(configure(tmp_path, "[tool.ortbench.precisions.native]\nsqnr_floor = 30"))
    assert "my-native" not in caught.value.hint


@pytest.mark.parametrize(
    ("machine", "flags", "may"),
    [
        ("x86_64", "fpu avx2", True),
        ("x86_64", "fpu avx2 avx512_vnni", False),
        ("x86_64", "fpu avx2 avx_vnni", False),
        ("x86_64", "fpu amx_int8", False),
        ("aarch64", "asimd", False),
    ],
)
def test_products_of_eight_bits_saturate_without_vnni(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str, flags: str, may: bool
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor : 0\nflags\t\t: {flags}\n")
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert products_may_saturate(cpuinfo) is may


def test_static_weights_get_seven_bits_where_products_may_saturate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    for may in (True, False):
        monkeypatch.setattr(module, "products_may_saturate", lambda may=may: may)
        recipe = shipped_recipe("int8-static")
        assert (recipe.weight_type, recipe.activation_type) == ("int8", "uint8")
        assert recipe.reduce_range is may


def test_static_activations_are_signed_on_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    recipe = shipped_recipe("int8-static")
    assert (recipe.activation_type, recipe.reduce_range) == ("int8", False)


def test_a_graph_is_simplified_by_a_word_alone_or_before_anything_else(tmp_path: Path) -> None:
    found = recipes(
        configure(
            tmp_path,
            """
            [tool.ortbench.precisions.slim]
            simplify = true
            [tool.ortbench.precisions.slim8]
            base = "int8-dynamic"
            simplify = true
            [tool.ortbench.precisions.saved]
            base = "optimized"
            level = "all"
            """,
        )
    )
    assert (found["slim"].base, found["slim"].settings()) == ("simplified", {"base": "simplified"})
    assert found["slim8"].settings()["simplify"] == "true"
    assert found["saved"].settings() == {"base": "optimized", "level": "all"}
    assert "simplify" not in shipped_recipe("int8-dynamic").settings()
    assert shipped_recipe("optimized").settings() == {"base": "optimized", "level": "extended"}


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("simplify = false", "the key 'base' is missing"),
        ('base = "optimized"\nlevel = "disable"', "'disable' is not a value of level"),
        ('base = "simplified"\nlevel = "all"', "simplified has no setting 'level'"),
        ('base = "fp16"\nsimplify = "yes"', "simplify is 'yes', not true or false"),
    ],
)
def test_a_wrong_graph_recipe_is_one_message(tmp_path: Path, entry: str, says: str) -> None:
    with pytest.raises(UsageError) as error:
        recipes(configure(tmp_path, f"[tool.ortbench.precisions.mine]\n{entry}\n"))
    assert says in str(error.value)
