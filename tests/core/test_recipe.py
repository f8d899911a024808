"""What a recipe shows of itself."""

from __future__ import annotations

import pytest

from pytest_ortbench.core.recipe import BASES, Recipe


@pytest.mark.parametrize("base", BASES)
def test_only_settings_of_the_base_are_shown(base: str) -> None:
    recipe = Recipe(name="r", base=base, weight_type="int8", activation_type="uint8")
    shown = list(recipe.settings())
    assert shown[0] == "base"
    assert set(shown[1:]) <= set(BASES[base])


def test_settings_in_order_as_text() -> None:
    recipe = Recipe(
        name="heads",
        base="int8-static",
        weight_type="int8",
        activation_type="uint8",
        per_channel=True,
        nodes_to_exclude=("/head/a", "/head/b"),
        calibration="percentile",
        percentile=99.9,
        calibration_samples=32,
        sqnr_floor_db=20,
    )
    assert recipe.settings() == {
        "base": "int8-static",
        "weight_type": "int8",
        "activation_type": "uint8",
        "per_channel": "true",
        "reduce_range": "false",
        "calibration": "percentile",
        "percentile": "99.9",
        "calibration_samples": "32",
        "nodes_to_exclude": "/head/a, /head/b",
        "preprocess": "true",
        "sqnr_floor_db": "20",
    }


def test_an_empty_block_list_is_not_the_default_one() -> None:
    assert "block_list" not in Recipe(name="a", base="fp16").settings()
    assert Recipe(name="a", base="fp16", block_list=()).settings()["block_list"] == "none"
