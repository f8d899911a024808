import pytest

from pytest_ortbench.core.quantity import Quantity


def test_a_quantity_compares_with_plain_numbers_in_si_units() -> None:
    latency = Quantity(value=0.009, unit="s", low=0.0088, high=0.0093, samples=500)
    assert latency < 0.010
    assert not latency > 0.010
    assert latency <= 0.009
    assert latency >= 0.009
    assert latency == 0.009
    assert float(latency) == 0.009
    assert latency < Quantity(value=0.0091, unit="s")


def test_a_quantity_computes_as_its_value_does() -> None:
    before = Quantity(value=2.0, unit="s", low=1.9, high=2.1)
    after = Quantity(value=1.5, unit="s")
    assert after / before == 0.75
    assert before - after == 0.5
    assert before + after == 3.5
    assert after <= before * 1.05
    assert (1 / before, 3 - before, 1 + before, 2 * before) == (0.5, 1.0, 3.0, 4.0)
    assert sum([before, after]) == 3.5
    assert type(before * 2) is float


def test_equal_quantities_are_equal_in_all_parts() -> None:
    one = Quantity(value=1.0, unit="s", low=0.9, high=1.1, samples=5)
    assert one == Quantity(value=1.0, unit="s", low=0.9, high=1.1, samples=5)
    assert one != Quantity(value=1.0, unit="s", low=0.8, high=1.1, samples=5)
    assert one != Quantity(value=1.0, unit="bytes", low=0.9, high=1.1, samples=5)
    assert one != "1.0 s"
    assert len({one, Quantity(value=1.0, unit="s", low=0.9, high=1.1, samples=5)}) == 1


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        (Quantity(value=0.00321, unit="s"), "3.21 ms"),
        (Quantity(value=0.00321, unit="s", low=0.0032, high=0.0033), "3.21 ms [3.20 ms, 3.30 ms]"),
    ],
)
def test_a_quantity_shows_itself_in_peoples_units(quantity: Quantity, text: str) -> None:
    assert str(quantity) == text
