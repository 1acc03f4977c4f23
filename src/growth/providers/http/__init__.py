"""HTTP to a cloud's REST API, the same for every cloud: what is repeated, how long it may take, how much is asked.

    provider ── Client.call ── RateBudget ── gate ── ports.Transport ──► the cloud
                    │                                  AioTransport, or the simulator's
                    └── Journal

`Client` knows no vendor: a `Dialect` tells it how that cloud writes its errors and its rate headers. Nothing that leaves
here (errors, journal, log lines) holds the token.
"""

from growth.providers.http.aio import AioTransport, EndpointError
from growth.providers.http.budget import RateBudget, RateHeaders
from growth.providers.http.client import Client, ClientSettings, Dialect
from growth.providers.http.errors import BudgetSpent, CallError, NotSent, Problem, Refused, Unanswered
from growth.providers.http.journal import Entry, Journal
from growth.providers.http.secret import KeptSecret, Secret

__all__ = [
    "AioTransport",
    "BudgetSpent",
    "CallError",
    "Client",
    "ClientSettings",
    "Dialect",
    "EndpointError",
    "Entry",
    "Journal",
    "KeptSecret",
    "NotSent",
    "Problem",
    "RateBudget",
    "RateHeaders",
    "Refused",
    "Secret",
    "Unanswered",
]
