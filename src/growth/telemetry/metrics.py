"""Metrics: declared once as constants, counted on a `Metrics` that is passed in, scraped through its registry.

    CREATED = Counter("karpenter_nodeclaims_created_total", "NodeClaims created.", labels=("reason", "nodepool"))

    metrics.add(CREATED, reason="provisioned", nodepool="default")

Names that Karpenter has keep Karpenter's spelling, labels and meaning; ours begin with `growth_`. We keep the numbers
ourselves and let prometheus-client print them: its own metric objects belong to a registry from their construction, so
they could not be constants, and they add `_created` series that Karpenter's users do not expect.

All calls come from the event loop's thread: there is no lock. A scrape of a large cluster is gathered there a few hundred
series at a time (`gathered`); what is gathered is the scrape's own, so that the text can be made on another thread.
"""

import dataclasses
import functools
import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from operator import itemgetter
from typing import Any, Final, cast

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.samples import Sample

from growth.telemetry.logs import logger

_log = logger("metrics")

# Karpenter's bounds for durations, in seconds: dashboards compute quantiles from them.
DURATION_BUCKETS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0),
    *(40.0, 50.0, 60.0, 120.0, 150.0, 300.0, 450.0, 600.0),
)

# Karpenter's quantiles of a summary.
QUANTILES: Final = (0.0, 0.5, 0.9, 0.99, 1.0)
# Over so many of the newest observations; Go's client takes those of the last ten minutes.
SUMMARY_WINDOW: Final = 1000

# So many series are gathered at a stretch: a few milliseconds.
SERIES_A_STEP: Final = 500

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)


@dataclasses.dataclass(frozen=True, slots=True)
class Declaration:
    """What a metric is called and which labels each of its series has; ValueError for a name Prometheus refuses."""

    name: str
    help: str
    labels: tuple[str, ...] = dataclasses.field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        for word in (self.name, *self.labels):
            if not _NAME.fullmatch(word):
                raise ValueError(f"{word!r} is not the name of a metric or label: write lower_case_with_underscores")


@dataclasses.dataclass(frozen=True, slots=True)
class Counter(Declaration):
    """Only ever grows; its name ends in `_total`."""

    def __post_init__(self) -> None:
        Declaration.__post_init__(self)
        if not self.name.endswith("_total"):
            raise ValueError(f"the counter {self.name!r} must end in _total: it would be printed with it anyway")


@dataclasses.dataclass(frozen=True, slots=True)
class Gauge(Declaration):
    """Goes up and down."""


@dataclasses.dataclass(frozen=True, slots=True)
class Histogram(Declaration):
    """Counts observations up to each bucket's bound; the unit is that of the name, mostly seconds."""

    buckets: tuple[float, ...] = dataclasses.field(default=DURATION_BUCKETS, kw_only=True)

    def __post_init__(self) -> None:
        Declaration.__post_init__(self)
        if not self.buckets or list(self.buckets) != sorted(set(self.buckets)):
            raise ValueError(f"the buckets of {self.name!r} must ascend")


@dataclasses.dataclass(frozen=True, slots=True)
class Summary(Declaration):
    """Count, sum and quantiles of the newest observations, for the two metrics of which Karpenter makes summaries."""


Labels = tuple[str, ...]
# What a gauge read at scrape time gives: its series, each with its labels by name. It is gone through in steps, between
# which anything may change: not over a collection that others change, and its labels stay as they are given.
Reading = Iterable[tuple[Mapping[str, str], float]]
Family = Callable[[], Metric]


class _Buckets:
    """What a histogram has seen."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def cumulative(self) -> list[tuple[str, float]]:
        bounds = [*map(repr, self.bounds), "+Inf"]
        return list(zip(bounds, map(float, accumulate(self.counts)), strict=True))


class _Recent:
    """What a summary has seen."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.newest: deque[float] = deque(maxlen=SUMMARY_WINDOW)

    def observe(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.newest.append(value)

    def quantiles(self) -> list[float]:
        """The nearest observations; not numbers before the first."""
        ordered = sorted(self.newest)
        return [ordered[round(share * (len(ordered) - 1))] if ordered else float("nan") for share in QUANTILES]


class Metrics:
    """The numbers of one process, registered with the given registry; two of them never share anything."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._numbers: dict[Counter | Gauge, dict[Labels, float]] = {}
        self._buckets: dict[Histogram, dict[Labels, _Buckets]] = {}
        self._recent: dict[Summary, dict[Labels, _Recent]] = {}
        self._readers: dict[Gauge, Callable[[], Reading]] = {}
        self._preparations: list[Callable[[], Iterator[None]]] = []
        self._declared: dict[str, Declaration] = {}
        registry.register(self)

    def declare(self, *metrics: Declaration) -> None:
        """Shows a metric before its first number: without labels as zero, with labels by its help and type.

        Adding, setting and observing declare too. ValueError where another metric has the name.
        """
        for metric in metrics:
            known = self._declared.setdefault(metric.name, metric)
            if known != metric:
                raise ValueError(f"the metric {metric.name!r} is declared twice, with different labels, help or kind")
            if isinstance(metric, Histogram):
                buckets = self._buckets.setdefault(metric, {})
                if not metric.labels:
                    buckets.setdefault((), _Buckets(metric.buckets))
            elif isinstance(metric, Summary):
                recent = self._recent.setdefault(metric, {})
                if not metric.labels:
                    recent.setdefault((), _Recent())
            elif isinstance(metric, Counter | Gauge):
                numbers = self._numbers.setdefault(metric, {})
                if not metric.labels and metric not in self._readers:
                    numbers.setdefault((), 0.0)

    def add(self, counter: Counter, amount: float = 1.0, **labels: str) -> None:
        """Counts. ValueError for a negative amount."""
        if amount < 0:
            raise ValueError(f"the counter {counter.name!r} cannot go down by {-amount}")
        series = self._series(counter)
        key = _key(counter, labels)
        series[key] = series.get(key, 0.0) + amount

    def set(self, gauge: Gauge, value: float, **labels: str) -> None:
        """Sets the gauge of these labels."""
        self._series(gauge)[_key(gauge, labels)] = float(value)

    def observe(self, metric: Histogram | Summary, value: float, **labels: str) -> None:
        """Counts one observation."""
        self.declare(metric)
        key = _key(metric, labels)
        if isinstance(metric, Histogram):
            self._buckets[metric].setdefault(key, _Buckets(metric.buckets)).observe(value)
        else:
            self._recent[metric].setdefault(key, _Recent()).observe(value)

    def read(self, gauge: Gauge, reader: Callable[[], Reading]) -> None:
        """Asks `reader` at every scrape: series of what is gone vanish by themselves."""
        self._readers[gauge] = reader
        self._numbers.pop(gauge, None)
        self.declare(gauge)

    def prepare(self, steps: Callable[[], Iterator[None]]) -> None:
        """Goes through `steps` before every scrape: what several readers share is made there, a step at a time."""
        self._preparations.append(steps)

    def forget(self, metric: Declaration, **labels: str) -> None:
        """Drops the series that carry these labels (a few of the metric's labels suffice); none is no error."""
        unknown = set(labels) - set(metric.labels)
        if unknown:
            raise ValueError(f"the metric {metric.name!r} has no label {', '.join(sorted(unknown))}")
        places = [(metric.labels.index(name), value) for name, value in labels.items()]
        stores: tuple[Mapping[Any, dict[Labels, Any]], ...] = (self._numbers, self._buckets, self._recent)
        for store in stores:
            series = store.get(metric, {})
            for key in [key for key in series if all(key[place] == value for place, value in places)]:
                del series[key]

    def value(self, metric: Counter | Gauge, **labels: str) -> float:
        """The number as a scrape would show it now; zero where there is none."""
        if isinstance(metric, Gauge) and metric in self._readers:
            for steps in self._preparations:
                deque(steps(), maxlen=0)
            wanted = _key(metric, labels)
            return next((value for given, value in self._readers[metric]() if _key(metric, given) == wanted), 0.0)
        return self._numbers.get(metric, {}).get(_key(metric, labels), 0.0)

    def gathered(self) -> Iterator[Family | None]:
        """A scrape in steps: for each declared metric, by name, what makes its series; None wherever others may have
        their turn. One scrape at a time.
        """
        for steps in self._preparations:
            try:
                yield from steps()
            except Exception:  # noqa: BLE001 - its readers tell what they had before; the others must be told
                _log.exception("a bug in us: a scrape cannot be prepared", what=steps.__qualname__)
        for name in sorted(self._declared):
            metric = self._declared[name]
            if isinstance(metric, Histogram):
                seen = [(key, held.cumulative(), held.total) for key, held in self._buckets[metric].items()]
                yield functools.partial(_histogram, metric, seen)
            elif isinstance(metric, Summary):
                recent = [(key, held.quantiles(), held.count, held.total) for key, held in self._recent[metric].items()]
                yield functools.partial(_summary, metric, recent)
            elif isinstance(metric, Gauge) and metric in self._readers:
                yield from self._reading(metric)
            elif isinstance(metric, Counter | Gauge):
                yield functools.partial(_numbers, metric, dict(self._numbers[metric]))

    def _reading(self, gauge: Gauge) -> Iterator[Family | None]:
        """A gauge that cannot be read is left out: the others are what people look at to find out why."""
        read: dict[Labels, tuple[Mapping[str, str], float]] = {}
        try:
            for number, (labels, value) in enumerate(self._readers[gauge](), start=1):
                read[_key(gauge, labels)] = (labels, value)
                if not number % SERIES_A_STEP:
                    yield None
        except Exception:  # noqa: BLE001 - whatever it is, the other metrics must be told
            _log.exception("a bug in us: a metric cannot be read", metric=gauge.name)
            return
        yield functools.partial(_read, gauge, read)

    def collect(self) -> Iterator[Metric]:
        """For a registry: everything at once, the series of a metric in order of their labels."""
        return (family() for family in self.gathered() if family is not None)

    def _series(self, metric: Counter | Gauge) -> dict[Labels, float]:
        self.declare(metric)
        return self._numbers[metric]


def _numbers(metric: Counter | Gauge, numbers: Mapping[Labels, float]) -> Metric:
    kind = CounterMetricFamily if isinstance(metric, Counter) else GaugeMetricFamily
    family = kind(metric.name, metric.help, labels=metric.labels)
    for key in sorted(numbers):
        family.add_metric(key, numbers[key])
    return family


def _read(metric: Gauge, read: Mapping[Labels, tuple[Mapping[str, str], float]]) -> Metric:
    """Thousands of series at every scrape: the labels are taken as the reader gives them, and not made anew."""
    family = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
    family.samples += [
        Sample(metric.name, cast("dict[str, str]", labels), value)
        for _, (labels, value) in sorted(read.items(), key=itemgetter(0))
    ]
    return family


def _histogram(metric: Histogram, seen: Iterable[tuple[Labels, list[tuple[str, float]], float]]) -> Metric:
    family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
    for key, cumulative, total in sorted(seen, key=itemgetter(0)):
        family.add_metric(key, cumulative, total)
    return family


def _summary(metric: Summary, seen: Iterable[tuple[Labels, list[float], int, float]]) -> Metric:
    family = SummaryMetricFamily(metric.name, metric.help, labels=metric.labels)
    for key, quantiles, count, total in sorted(seen, key=itemgetter(0)):
        labels = dict(zip(metric.labels, key, strict=True))
        for share, value in zip(QUANTILES, quantiles, strict=True):
            family.add_sample(metric.name, {**labels, "quantile": f"{share:g}"}, value)
        family.add_metric(key, count, total)
    return family


def _key(metric: Declaration, labels: Mapping[str, str]) -> Labels:
    try:
        if len(labels) == len(metric.labels):
            return tuple([labels[name] for name in metric.labels])
    except KeyError:
        pass
    wanted = ", ".join(metric.labels) or "none"
    raise ValueError(f"the metric {metric.name!r} has the labels {wanted}; given: {', '.join(labels) or 'none'}")
