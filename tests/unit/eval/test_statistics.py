"""The statistics of reports against values computed by hand."""

from __future__ import annotations

import pytest

from eval.statistics import mean, median, percentile, slope, wilson


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        # z^2 = 3.8415; 0 of 10: centre 0.19207/1.38415, half 1.96 sqrt(0.0096036)/1.38415
        (0, 10, 0.0, 0.27753),
        (10, 10, 0.72247, 1.0),
        (5, 10, 0.23659, 0.76341),
        (81, 263, 0.25529, 0.36622),
    ],
)
def test_wilson_by_hand(successes: int, trials: int, low: float, high: float) -> None:
    """Wilson's interval is the textbook's, also at 0 and at n of n."""
    assert wilson(successes, trials) == pytest.approx((low, high), abs=2e-5)


def test_wilson_of_no_trials_says_nothing() -> None:
    """No trials give no interval instead of a division by zero."""
    assert wilson(0, 0) is None


def test_wilson_refuses_more_successes_than_trials() -> None:
    """A count that cannot be is an error, not a number."""
    with pytest.raises(ValueError, match="successes"):
        wilson(3, 2)


@pytest.mark.parametrize(("q", "value"), [(0, 1.0), (50, 2.5), (95, 3.85), (100, 4.0)])
def test_percentile_by_hand(q: float, value: float) -> None:
    """Between two order statistics a percentile is interpolated, whatever the order given."""
    assert percentile([4.0, 1.0, 3.0, 2.0], q) == pytest.approx(value)


def test_median_of_one_value_is_that_value() -> None:
    """One value is its own median and its own extreme."""
    assert median([7.0]) == percentile([7.0], 99) == 7.0


def test_nothing_measured_is_none() -> None:
    """No values have no mean, median or percentile, and no NaN."""
    assert (mean([]), median([]), percentile([], 95)) == (None, None, None)


def test_percentile_refuses_what_is_no_percentage() -> None:
    """A percentile over 100 is an error."""
    with pytest.raises(ValueError, match="between 0 and 100"):
        percentile([1.0], 101)


def test_slope_by_hand() -> None:
    """Points (0,1) (1,3) (2,2): covariance sum 1, spread 2, slope one half."""
    assert slope([0, 1, 2], [1, 3, 2]) == pytest.approx(0.5)


def test_slope_of_one_place_is_none() -> None:
    """Without two different places there is no slope."""
    assert slope([3, 3], [1, 2]) is None
