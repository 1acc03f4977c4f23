"""Calls of a cloud's API: what is repeated, how long it takes, what the account allows, and that the token stays ours."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from growth.kube.errors import GateClosed
from growth.ports import NothingSent, Response, TransportError
from growth.providers.http import (
    BudgetSpent,
    CallError,
    Client,
    ClientSettings,
    Dialect,
    KeptSecret,
    NotSent,
    Problem,
    RateBudget,
    RateHeaders,
    Refused,
    Secret,
    Unanswered,
)
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.ports import EPOCH, Answer, SimClock, SimRandom

R = TypeVar("R")

TOKEN = "jEheVytlAoFl7F8MqUQ7jAo2hOXASztX"
ENDPOINT = "https://cloud.test/v1"


def problem(body: bytes) -> Problem | None:
    error = json.loads(body)["error"]
    return Problem(code=error["code"], message=error["message"], details=error.get("details") or {})


DIALECT = Dialect(name="a cloud", problem=problem)


def refusal(status: int, code: str, message: str = "no", **headers: str) -> Answer:
    return Answer(status, headers, json.dumps({"error": {"code": code, "message": message}}).encode())


def good(value: Any = None, **headers: str) -> Answer:
    return Answer(200, headers, json.dumps(value or {}).encode())


Turn = Answer | Exception | float


class Cloud:
    """A transport that answers by a list: an answer, an error, or seconds of silence. The last one is for ever."""

    def __init__(self, *turns: Turn) -> None:
        self.turns = list(turns)
        self.asked: list[tuple[float, str, str]] = []
        self.authorization: set[str] = set()

    async def request(
        self, method: str, url: str, *, headers: Any, body: bytes | None, timeout_seconds: float
    ) -> Response:
        loop = asyncio.get_running_loop()
        self.asked.append((loop.time(), method, url.removeprefix(ENDPOINT)))
        self.authorization.add(headers["Authorization"])
        turn = self.turns.pop(0) if len(self.turns) > 1 else self.turns[0]
        if isinstance(turn, float):
            await asyncio.sleep(min(turn, timeout_seconds))
            raise TransportError("no answer in the time allowed")
        if isinstance(turn, Exception):
            raise turn
        return turn


class Closed:
    def check(self) -> None:
        raise GateClosed("the lease is too old")


def client(kernel: Kernel, cloud: Cloud, **options: Any) -> Client:
    return Client(
        options.pop("dialect", DIALECT),
        endpoint=ENDPOINT,
        token=options.pop("token", Secret(TOKEN)),
        transport=cloud,
        clock=SimClock(kernel),
        random=SimRandom(kernel.seed, "client"),
        **options,
    )


def run(main: Callable[[Kernel], Awaitable[R]]) -> R:
    async def body(kernel: Kernel) -> R:
        return await main(kernel)

    return sim.run(body, seed=1).value


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize(
    "failure",
    [refusal(503, "unavailable"), refusal(429, "rate_limit_exceeded"), 40.0, NothingSent("connection refused")],
)
def test_what_is_idempotent_is_repeated(method: str, failure: Turn) -> None:
    """A call whose repeat changes nothing more survives a failure that passes."""

    async def main(kernel: Kernel) -> None:
        cloud = Cloud(failure, good({"a": 1}))
        assert await client(kernel, cloud).call(method, "/servers/1", dict) == {"a": 1}
        assert len(cloud.asked) == 2
        assert cloud.asked[1][0] > cloud.asked[0][0]

    run(main)


@pytest.mark.parametrize("failure", [refusal(503, "unavailable"), refusal(429, "rate_limit_exceeded"), 40.0])
def test_a_purchase_is_not_repeated_unasked(failure: Turn) -> None:
    """A POST goes out once, whatever comes back, unless the caller says that a repeat is harmless."""

    async def main(kernel: Kernel) -> None:
        cloud = Cloud(failure, good())
        with pytest.raises(CallError):
            await client(kernel, cloud).call("POST", "/servers", dict, body={})
        assert len(cloud.asked) == 1
        cloud = Cloud(failure, good())
        await client(kernel, cloud).call("POST", "/servers", dict, body={}, repeatable=True)
        assert len(cloud.asked) == 2

    run(main)


def test_a_purchase_that_never_left_is_sent() -> None:
    """Where no connection was made nothing was asked for, so sending it is no repeat."""

    async def main(kernel: Kernel) -> None:
        cloud = Cloud(NothingSent("connection refused"), good())
        await client(kernel, cloud).call("POST", "/servers", dict, body={})
        assert len(cloud.asked) == 2

    run(main)


def test_a_refusal_that_stays_is_not_repeated() -> None:
    """What the dialect does not call transient is told at once, with the cloud's own words."""

    async def main(kernel: Kernel) -> None:
        cloud = Cloud(
            Answer(
                422,
                {"x-correlation-id": "abc"},
                b'{"error":{"code":"invalid_input","message":"bad name","details":{"fields":[{"name":"name"}]}}}',
            )
        )
        with pytest.raises(Refused) as caught:
            await client(kernel, cloud).call("GET", "/servers", dict)
        error = caught.value
        assert (error.status, error.code, error.message) == (422, "invalid_input", "bad name")
        assert error.details == {"fields": [{"name": "name"}]}
        assert (error.request_id, error.attempts, error.unsure) == ("abc", 1, False)
        assert str(error) == "GET /servers was answered 422, invalid_input: bad name"

    run(main)


def test_the_dialect_says_what_passes() -> None:
    """By code and not by status: one 412 is transient, another is not."""
    dialect = Dialect(name="a cloud", problem=problem, transient=lambda refused: refused.code == "locked")

    async def main(kernel: Kernel) -> None:
        cloud = Cloud(refusal(423, "locked"), refusal(503, "unavailable"))
        with pytest.raises(Refused, match="unavailable"):
            await client(kernel, cloud, dialect=dialect).call("GET", "/servers", dict)
        assert len(cloud.asked) == 2

    run(main)


def test_no_call_outlives_its_deadline() -> None:
    """A silent cloud is asked a few times, each for a while, and never longer than the caller allows in all."""

    async def main(kernel: Kernel) -> None:
        cloud = Cloud(1000.0)
        with pytest.raises(Unanswered):
            await client(kernel, cloud).call("GET", "/servers", dict, deadline_seconds=45)
        assert kernel.time() <= 45
        assert len(cloud.asked) == 2

    run(main)


def test_attempts_have_a_bound() -> None:
    """A cloud that refuses at once is not asked for the whole deadline."""

    async def main(kernel: Kernel) -> None:
        cloud = Cloud(refusal(500, "server_error"))
        with pytest.raises(Refused):
            await client(kernel, cloud).call("GET", "/servers", dict, deadline_seconds=3600)
        waits = [after[0] - before[0] for before, after in zip(cloud.asked, cloud.asked[1:], strict=False)]
        assert len(cloud.asked) == 5
        assert waits == sorted(waits)
        assert all(0.5 * 2**number <= wait <= 2**number for number, wait in enumerate(waits))

    run(main)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "17"}, 17.0),
        ({"retry-after": "Mon, 07 Jan 2030 09:00:20 GMT", "date": "Mon, 07 Jan 2030 09:00:00 GMT"}, 20.0),
        (
            {
                "ratelimit-limit": "3600",
                "ratelimit-remaining": "0",
                "ratelimit-reset": str(3600 + int(EPOCH.timestamp())),
            },
            1,
        ),
    ],
)
def test_a_wait_that_the_cloud_asks_for_is_kept(headers: dict[str, str], seconds: float) -> None:
    """In seconds, as a date by the cloud's own clock, or as the moment when the account has recovered."""

    async def main(kernel: Kernel) -> None:
        cloud = Cloud(refusal(429, "rate_limit_exceeded", **headers), good())
        await client(kernel, cloud).call("GET", "/servers", dict)
        assert seconds <= cloud.asked[1][0] <= seconds + 1.1

    run(main)


def test_one_refusal_holds_back_every_call_of_the_account() -> None:
    """«Too many» is said to one call and heeded by all that share the budget."""

    async def main(kernel: Kernel) -> None:
        cloud = Cloud(refusal(429, "rate_limit_exceeded", **{"retry-after": "10"}), good())
        one = client(kernel, cloud)
        other = client(kernel, cloud, budget=one.budget)
        calls = [asyncio.create_task(one.call("GET", "/a", dict))]
        await asyncio.sleep(0.1)
        calls.append(asyncio.create_task(other.call("GET", "/b", dict)))
        await asyncio.gather(*calls)
        assert [asked[0] >= 10 for asked in cloud.asked] == [False, True, True]

    run(main)


def test_a_spent_account_is_not_pressed() -> None:
    """With nothing left, calls go at the pace at which the account recovers, in the order in which they came."""

    async def main(kernel: Kernel) -> None:
        empty = {"ratelimit-limit": "3600", "ratelimit-remaining": "0"}
        cloud = Cloud(good(None, **empty))
        caller = client(kernel, cloud)
        await caller.call("GET", "/first", dict)
        await asyncio.gather(*(caller.call("GET", f"/{number}", dict) for number in range(10)))
        assert [path for _, _, path in cloud.asked] == ["/first", *(f"/{number}" for number in range(10))]
        assert [round(at) for at, _, _ in cloud.asked] == list(range(11))

    run(main)


def test_a_call_that_cannot_be_paid_for_in_time_is_told_at_once() -> None:
    """Where the account recovers after the caller's deadline nothing is sent and nobody waits."""

    async def main(kernel: Kernel) -> None:
        cloud = Cloud(refusal(429, "rate_limit_exceeded", **{"retry-after": "600"}), good())
        caller = client(kernel, cloud)
        with pytest.raises(Refused):
            await caller.call("POST", "/servers", dict, body={})
        with pytest.raises(BudgetSpent) as caught:
            await caller.call("GET", "/servers", dict)
        assert caught.value.retry_after_seconds == pytest.approx(600)
        assert (kernel.time(), len(cloud.asked)) == (0.0, 1)

    run(main)


def test_others_keep_their_share_of_the_account() -> None:
    """Before the account is empty we slow down to what it recovers, so that others can go on at once."""

    async def main(kernel: Kernel) -> None:
        low = {"ratelimit-limit": "3600", "ratelimit-remaining": "100"}
        cloud = Cloud(good(None, **low))
        caller = client(kernel, cloud)
        for _ in range(5):
            await caller.call("GET", "/servers", dict)
        assert [round(at) for at, _, _ in cloud.asked] == [0, 1, 2, 3, 4]

    run(main)


def test_a_window_opens_at_its_reset() -> None:
    """Where an account is whole again at one moment, a spent one waits for that moment."""

    async def main(kernel: Kernel) -> None:
        reset = {"x-limit": "100", "x-remaining": "0", "x-reset": str(30 + int(EPOCH.timestamp()))}
        cloud = Cloud(good(None, **reset), good())
        headers = RateHeaders(limit="x-limit", remaining="x-remaining", reset="x-reset", steady=False)
        caller = client(kernel, cloud, budget=RateBudget(SimClock(kernel), headers))
        for _ in range(3):
            await caller.call("GET", "/servers", dict)
        assert [round(at) for at, _, _ in cloud.asked] == [0, 30, 30]

    run(main)


def test_an_overtaken_answer_gives_nothing_back() -> None:
    """An answer that was long on its way does not raise the budget that a later call reported."""

    async def main(kernel: Kernel) -> None:
        budget = RateBudget(SimClock(kernel), RateHeaders(), spare_percent=0)
        first, second = await budget.take(until=1), await budget.take(until=1)
        budget.heard(second, {"ratelimit-limit": "100", "ratelimit-remaining": "0"})
        budget.ended()
        budget.heard(first, {"ratelimit-limit": "100", "ratelimit-remaining": "50"})
        budget.ended()
        assert budget.statistics().remaining == 0

    run(main)


def test_a_call_that_is_given_up_returns_its_turn() -> None:
    """Cancelling a call ends it at once, and the budget does not count it for ever."""

    async def main(kernel: Kernel) -> None:
        cloud = Cloud(500.0)
        caller = client(kernel, cloud)
        task = asyncio.create_task(caller.call("GET", "/servers", dict))
        await asyncio.sleep(3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert kernel.time() == 3
        assert [entry.outcome for entry in caller.journal.entries()] == ["cancelled"]
        assert caller.budget._under_way == 0

    run(main)


def test_a_closed_gate_lets_reads_pass() -> None:
    """A process that may no longer write sends no write and spends nothing on it."""

    async def main(kernel: Kernel) -> None:
        cloud = Cloud(good())
        caller = client(kernel, cloud, gate=Closed())
        await caller.call("GET", "/servers", dict)
        for method in ("POST", "PUT", "DELETE"):
            with pytest.raises(GateClosed):
                await caller.call(method, "/servers", dict)
        assert [method for _, method, _ in cloud.asked] == ["GET"]

    run(main)


def test_doubt_is_not_lost_with_a_later_attempt() -> None:
    """What the last attempt says does not undo what an earlier one may have done."""

    async def main(kernel: Kernel) -> None:
        cloud = Cloud(35.0, refusal(409, "uniqueness_error"))
        with pytest.raises(Refused) as refused:
            await client(kernel, cloud).call("POST", "/servers", dict, body={}, repeatable=True)
        assert refused.value.unsure
        cloud = Cloud(35.0, NothingSent("connection refused"))
        with pytest.raises(Unanswered) as unanswered:
            await client(kernel, cloud).call("POST", "/servers", dict, body={}, repeatable=True)
        assert not isinstance(unanswered.value, NotSent)

    run(main)


def test_an_answer_that_cannot_be_read_is_no_answer() -> None:
    """A body that is not what was asked for leaves the outcome open; for a read it is asked again."""

    async def main(kernel: Kernel) -> None:
        cloud = Cloud(Answer(200, {}, b"<html>"), good({"x": 1}))
        assert await client(kernel, cloud).call("GET", "/servers", dict) == {"x": 1}
        cloud = Cloud(Answer(201, {}, b"<html>"), good())
        with pytest.raises(Unanswered, match="cannot be read"):
            await client(kernel, cloud).call("POST", "/servers", dict, body={})

    run(main)


def test_a_stranger_s_refusal_has_no_code() -> None:
    """A proxy's page is not the cloud's word: its 404 must not mean that a machine is gone."""

    async def main(kernel: Kernel) -> None:
        cloud = Cloud(Answer(404, {}, b"<html>not here</html>"))
        with pytest.raises(Refused) as caught:
            await client(kernel, cloud).call("GET", "/servers/1", dict)
        assert (caught.value.status, caught.value.code) == (404, "")

    run(main)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_token_that_was_exchanged_is_read_again_when_it_is_refused(method: str) -> None:
    """The call is made once more with the new one, whatever it is: nothing was done. Neither is told; one that was not
    exchanged, and what is no token, changes nothing.
    """
    newer = "b0sWm4Zk7QpXc2RtYv9LnHd5GsF3uEaJ"

    async def main(kernel: Kernel) -> None:
        told = f"token {TOKEN[:16]} is not known"
        kept: list[str | None] = [TOKEN, None, "two words", newer]
        cloud = Cloud(*[refusal(401, "unauthorized", told) for _ in kept], good(), refusal(403, "forbidden", newer))
        caller = client(kernel, cloud, token=KeptSecret(TOKEN, read=lambda: kept.pop(0) if kept else newer))
        for _ in range(3):
            with pytest.raises(Refused):
                await caller.call(method, "/servers", dict)
        await caller.call(method, "/servers", dict)
        assert len(cloud.asked) == 5
        assert cloud.authorization == {f"Bearer {TOKEN}", f"Bearer {newer}"}
        with pytest.raises(Refused) as refused:
            await caller.call(method, f"/servers/{TOKEN}", dict)
        assert len(cloud.asked) == 6
        shown = [str(refused.value), repr(caller._token), *map(str, caller.journal.entries())]
        for token in (TOKEN, newer):
            assert not any(token[at : at + 8] in text for text in shown for at in range(len(token) - 8))

    run(main)


def test_the_token_is_nowhere_but_in_its_header() -> None:
    """Not in errors, their details, the journal or a repr, not even the half that a cloud quotes."""

    async def main(kernel: Kernel) -> None:
        body = {
            "error": {
                "code": "unauthorized",
                "message": f"token {TOKEN[:16]}… is not known",
                "details": {TOKEN: [f"Bearer {TOKEN}"]},
            }
        }
        cloud = Cloud(Answer(401, {"x-correlation-id": TOKEN}, json.dumps(body).encode()))
        caller = client(kernel, cloud)
        with pytest.raises(Refused) as caught:
            await caller.call("GET", f"/servers/{TOKEN}", dict, query=[("name", TOKEN)])
        error = caught.value
        shown = [str(error), repr(error), error.message, str(error.details), error.request_id, repr(caller._token)]
        shown += [str(entry) for entry in caller.journal.entries()]
        assert not any(TOKEN[at : at + 8] in text for text in shown for at in range(len(TOKEN) - 8))
        assert cloud.authorization == {f"Bearer {TOKEN}"}

    run(main)


def test_the_journal_tells_every_attempt() -> None:
    """What was asked, how it ended and what was left, oldest first, and no more than is kept."""

    async def main(kernel: Kernel) -> None:
        left = {"ratelimit-limit": "3600", "ratelimit-remaining": "3000"}
        cloud = Cloud(refusal(503, "unavailable"), 40.0, good(None, **left))
        caller = client(kernel, cloud)
        await caller.call("GET", "/servers", dict, query=[("page", "2")])
        await caller.call("DELETE", "/servers/1", dict)
        told = [(each.method, each.path, each.attempt, each.outcome, each.code) for each in caller.journal.entries()]
        assert told == [
            ("GET", "/servers?page=2", 1, "503", "unavailable"),
            ("GET", "/servers?page=2", 2, "lost", ""),
            ("GET", "/servers?page=2", 3, "200", ""),
            ("DELETE", "/servers/1", 1, "200", ""),
        ]
        assert caller.journal.entries()[-1].remaining == 3000
        assert caller.journal.total == 4
        for _ in range(600):
            await caller.call("GET", "/servers", dict)
        assert (len(caller.journal.entries()), caller.journal.total) == (500, 604)

    run(main)


def test_settings_bound_one_exchange() -> None:
    """An attempt is given up after its own time, so that there is time for another."""

    async def main(kernel: Kernel) -> None:
        cloud = Cloud(100.0, good())
        await client(kernel, cloud, settings=ClientSettings(attempt_seconds=4)).call("GET", "/servers", dict)
        assert 4.5 <= cloud.asked[1][0] <= 5

    run(main)
