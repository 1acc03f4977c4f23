"""Amounts by resource name."""

import pytest

from growth.units import resources
from growth.units.errors import QuantityError


def test_each_resource_is_counted_in_its_own_unit() -> None:
    """Cpu in thousandths, the rest in base units, and back into the words that an object uses."""
    said = {"cpu": "1500m", "memory": "1.5Gi", "pods": "110", "nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi"}
    counted = resources.amounts(said)
    assert counted == {
        "cpu": 1500,
        "memory": 3 * 2**29,
        "pods": 110,
        "nvidia.com/gpu": 2,
        "hugepages-2Mi": 4 * 2**20,
    }
    assert resources.quantities(counted) == said | {"memory": "1536Mi"}


def test_a_bad_quantity_is_reported_with_its_resource() -> None:
    """The message says which resource it was."""
    with pytest.raises(QuantityError, match=r"^memory: '1.5Gb' is not a quantity"):
        resources.amounts({"cpu": "1", "memory": "1.5Gb"})


def test_an_absent_name_counts_as_zero() -> None:
    """Sums, differences and maxima over different names."""
    assert resources.add({"cpu": 1}, {"cpu": 2, "memory": 3}, {}) == {"cpu": 3, "memory": 3}
    assert resources.subtract({"cpu": 1}, {"cpu": 2, "memory": 3}) == {"cpu": -1, "memory": -3}
    assert resources.largest({"cpu": 1, "pods": 1}, {"cpu": 2}) == {"cpu": 2, "pods": 1}


def test_what_is_lacking_is_named() -> None:
    """A need fits when nothing is lacking; a need of zero lacks nothing even where there is less than nothing."""
    node = {"cpu": 1000, "memory": 10, "pods": -1}
    assert resources.fits({"cpu": 1000, "pods": 0}, node)
    assert not resources.fits({"cpu": 1001}, node)
    assert resources.lacking({"cpu": 1500, "memory": 5, "nvidia.com/gpu": 1}, node) == {"cpu": 500, "nvidia.com/gpu": 1}
