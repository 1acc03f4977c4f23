"""How moves are searched for and weighed, as the settings say."""

import datetime as dt
from collections.abc import Callable

from growth.controllers.settings import ControllerSettings
from growth.planning import solve
from growth.planning.disruption.search import SearchOptions


def search_options(settings: ControllerSettings, stop: Callable[[], bool] | None = None) -> SearchOptions:
    """`stop` ends a search; a move that is weighed needs none."""
    return SearchOptions(
        budget=settings.disruption_steps,
        spot_to_spot=settings.spot_to_spot_consolidation,
        eviction_cost=settings.eviction_cost,
        horizon=dt.timedelta(seconds=settings.eviction_horizon),
        planning=solve.Options(
            respect_preferences=settings.preference_policy != "Ignore",
            strict_min_values=settings.min_values_policy != "BestEffort",
            packer="cost" if settings.packer == "cost" else "first-fit",
            flexibility=settings.max_price_percent,
        ),
        stop=stop,
    )
