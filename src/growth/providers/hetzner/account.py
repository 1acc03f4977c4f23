"""What the account holds that machines are made with: images, networks, firewalls, SSH keys, places. Read rarely.

Names become numbers here. What a class names and the account lacks is told in words, each with what to do.
"""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any, Final

from growth.api.nodeclasses import HetznerImage, HetznerNodeClassSpec, NumberOrName
from growth.ports import Clock
from growth.providers.hetzner.classes import DEFAULT_IMAGE
from growth.providers.hetzner.client import HetznerApi
from growth.providers.hetzner.offerings import ARCHITECTURES, vendors_word
from growth.providers.hetzner.wire import Image, Location, Named, Network, Pricing, ServerType
from growth.providers.nodeclasses import Problem
from growth.providers.numbered import number_in

# People make images and networks by hand; what they made is seen after so long at the latest.
KEPT_SECONDS: Final = 300.0

# Subnets of dedicated machines: the cloud's get no address there.
VSWITCH: Final = "vswitch"

NOT_FOUND: Final = "NotFoundAtHetzner"


class Missing(Exception):
    """Something that a class names is not there; the message is for people."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a machine is made with, by number."""

    ssh_keys: tuple[int, ...] = ()
    networks: tuple[int, ...] = ()
    firewalls: tuple[int, ...] = ()


class Account:
    """Answers are kept for a while; `forget` after a refusal that says that one of them is no longer true."""

    def __init__(self, cloud: HetznerApi, *, clock: Clock) -> None:
        self._cloud = cloud
        self._clock = clock
        self._kept: dict[object, tuple[float, Any]] = {}
        self._locks: dict[object, asyncio.Lock] = {}

    def forget(self) -> None:
        self._kept.clear()

    async def server_types(self) -> Sequence[ServerType]:
        found: Sequence[ServerType] = await self._once("types", self._cloud.server_types)
        return found

    async def pricing(self) -> Pricing:
        found: Pricing = await self._once("pricing", self._cloud.pricing)
        return found

    async def places(self) -> frozenset[str]:
        return frozenset(each.name for each in await self._locations())

    async def reached(self, spec: HetznerNodeClassSpec) -> frozenset[str]:
        """The places where a machine can join all networks of the class. `Missing` names the first that is not there.

        A network gives addresses where it has a subnet in the place's zone. Whether one is free only an order tells.
        """
        found = await self._locations()
        for network in await self._networks(spec):
            zones = {each.network_zone for each in network.subnets if each.type != VSWITCH}
            found = [each for each in found if not each.network_zone or each.network_zone in zones]
        return frozenset(each.name for each in found)

    async def parts(self, spec: HetznerNodeClassSpec) -> Parts:
        """By number. `Missing` names the first that is not there."""
        return Parts(
            ssh_keys=await self._numbers("sshKeys", "SSH key", spec.ssh_keys, self._cloud.ssh_keys),
            networks=await self._numbers("networks", "network", spec.networks, self._cloud.networks),
            firewalls=await self._numbers("firewalls", "firewall", spec.firewalls, self._cloud.firewalls),
        )

    async def image(self, asked: HetznerImage | None, architecture: str) -> Image:
        """The image for machines of the architecture (amd64, arm64). `Missing` where there is none."""
        word = vendors_word(architecture)
        image = asked or HetznerImage(name=DEFAULT_IMAGE)
        query = [("architecture", word), ("status", "available"), ("sort", "created:desc")]
        query += [("name", image.name)] if image.name else [("label_selector", image.selector or "")]

        async def read() -> Sequence[Image]:
            return await self._cloud.images(query)

        found: Sequence[Image] = await self._once(("image", image.name, image.selector, word), read)
        usable = [
            each
            for each in found
            if each.architecture == word and each.status == "available" and (not image.name or each.name == image.name)
        ]
        if not usable:
            sought = f"image {image.name}" if image.name else f"image with the labels {image.selector}"
            raise Missing(
                f"spec.image: the account has no {sought} for {architecture}: make it, or name another in spec.image"
            )
        return max(usable, key=lambda each: (each.created.timestamp() if each.created else 0.0, each.id))

    async def problems(self, spec: HetznerNodeClassSpec, architectures: Iterable[str]) -> list[Problem]:
        """What the class names and the account lacks. An image for one of the architectures is enough."""
        told: list[str] = []
        places = await self.places()
        told += [
            f"spec.locations: Hetzner has no location {place}: use {', '.join(sorted(places))}"
            for place in spec.locations
            if place not in places
        ]
        try:
            await self.parts(spec)
            if spec.networks:
                known = [place for place in spec.locations if place in places]
                await self._within_reach(spec, known or sorted(places))
        except Missing as error:
            told.append(str(error))
        lacking: list[str] = []
        wanted = sorted(set(architectures)) or sorted(ARCHITECTURES.values())
        for architecture in wanted:
            try:
                await self.image(spec.image, architecture)
            except Missing as error:
                lacking.append(str(error))
        if len(lacking) == len(wanted):
            told.append(lacking[0])
        return [Problem(NOT_FOUND, each) for each in told]

    async def _within_reach(self, spec: HetznerNodeClassSpec, wanted: Collection[str]) -> None:
        """`Missing` where the networks keep machines from all of the places."""
        reached = await self.reached(spec)
        if reached.intersection(wanted):
            return
        named = ", ".join(each.name or str(each.id) for each in await self._networks(spec))
        raise Missing(
            f"spec.networks: {named}: there is no subnet for machines in the network zones of {', '.join(wanted)}: add one"
            " there, or name locations that the network reaches in spec.locations"
        )

    async def _locations(self) -> Sequence[Location]:
        found: Sequence[Location] = await self._once("locations", self._cloud.locations)
        return found

    async def _networks(self, spec: HetznerNodeClassSpec) -> Sequence[Network]:
        """Those that the class names."""
        numbers = await self._numbers("networks", "network", spec.networks, self._cloud.networks)
        if not numbers:
            return ()
        found: Sequence[Network] = await self._once("networks", self._cloud.networks)
        return [each for each in found if each.id in numbers]

    async def _numbers(
        self,
        field: str,
        sort: str,
        wanted: Sequence[NumberOrName],
        read: Callable[[], Awaitable[Sequence[Named]]],
    ) -> tuple[int, ...]:
        if not wanted:
            return ()
        found: Sequence[Named] = await self._once(field, read)
        numbers = {each.id for each in found}
        by_name = {each.name: each.id for each in found}
        result: list[int] = []
        for each in wanted:
            number = each if isinstance(each, int) else by_name.get(each, number_in(each))
            if number is None or number not in numbers:
                raise Missing(f"spec.{field}: the account has no {sort} {each}: make it, or take it off the list")
            if number not in result:
                result.append(number)
        return tuple(result)

    async def _once(self, key: object, read: Callable[[], Awaitable[Any]]) -> Any:
        """Read by the first who asks, for all."""
        known = self._kept.get(key)
        if known is not None and self._clock.monotonic() - known[0] < KEPT_SECONDS:
            return known[1]
        async with self._locks.setdefault(key, asyncio.Lock()):
            known = self._kept.get(key)
            if known is None or self._clock.monotonic() - known[0] >= KEPT_SECONDS:
                began = self._clock.monotonic()
                known = self._kept[key] = (began, await read())
            return known[1]
