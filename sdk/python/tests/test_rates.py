"""Learning rates of global minibatches that change their size."""

import math

import pytest

import elastane


def test_each_rule():
    for rule, rate in (("linear", 0.04), ("sqrt", 0.02), ("constant", 0.01)):
        assert elastane.scaled_rate(0.01, 4, rule) == pytest.approx(rate)
        assert elastane.scaled_rate(0.01, 1, rule) == 0.01, "one worker has its own"
    assert elastane.scaled_rate(0.01, 4) == pytest.approx(0.04)
    # Three ranks with a third, rounded up, of 256 samples each.
    assert elastane.scaled_rate(0.1, 258 / 256) == pytest.approx(0.10078125)


def test_growing_and_shrinking_again_changes_nothing():
    for rule in ("linear", "sqrt"):
        grown = elastane.scaled_rate(0.3, 8, rule)
        assert elastane.scaled_rate(grown, 1 / 8, rule) == pytest.approx(0.3)


@pytest.mark.parametrize("rate, times", [(0, 1), (-1, 1), (0.1, 0), (0.1, math.nan), (math.inf, 1)])
def test_what_is_no_rate(rate, times):
    with pytest.raises(ValueError, match="it is a number above 0"):
        elastane.scaled_rate(rate, times)


def test_a_rule_that_is_not_known():
    with pytest.raises(ValueError, match="no rule 'cubic'; there are linear, sqrt, constant"):
        elastane.scaled_rate(0.1, 2, "cubic")
