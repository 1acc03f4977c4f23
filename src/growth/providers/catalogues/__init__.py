"""What clouds sell, without asking them: built-in lists, and files in the format of Karpenter's KWOK provider.

Used where no account is: by `growth plan`, the KWOK provider and the demo. The providers of real clouds read types, prices
and stock from the cloud. Each list is of one date, which its module names, together with the figures that are derived.
"""

from typing import Final

from growth.api.instance_types import Catalogue
from growth.providers.catalogues import hetzner, kwok, linode
from growth.units.money import HOURS_PER_MONTH, Hours

CLOUDS: Final = (kwok.CLOUD, hetzner.CLOUD, linode.CLOUD)

_HOURS_BILLED: Final[dict[str, Hours]] = {hetzner.CLOUD: hetzner.HOURS_BILLED, linode.CLOUD: linode.HOURS_BILLED}


def builtin(cloud: str, *, dedicated: bool = False) -> Catalogue:
    """The built-in list of a cloud. `dedicated` adds machines that can be owned but not ordered by API (Hetzner's)."""
    match cloud:
        case kwok.CLOUD:
            return kwok.catalogue()
        case hetzner.CLOUD:
            return hetzner.catalogue(dedicated=dedicated)
        case linode.CLOUD:
            return linode.catalogue()
        case _:
            raise ValueError(f"there is no built-in catalogue of {cloud}: choose one of {', '.join(CLOUDS)}")


def currency_of(cloud: str) -> str:
    """The currency in which a cloud's prices are."""
    return hetzner.CURRENCY if cloud == hetzner.CLOUD else linode.CURRENCY


def hours_of_month(cloud: str) -> Hours:
    """How many hours of a month are paid for: a cloud may bill fewer than there are."""
    return _HOURS_BILLED.get(cloud, HOURS_PER_MONTH)
