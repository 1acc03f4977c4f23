"""What can be done to a server that is there: `POST /servers/{id}/actions/{word}`."""

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any

from growth.api.kinds import Json
from growth.ports import Random
from growth.sim.clouds.hetzner.market import BACKUP_SHARE, LOCATIONS
from growth.sim.clouds.hetzner.objects import Action, Network, Server
from growth.sim.clouds.hetzner.project import Project, free_address
from growth.sim.clouds.hetzner.wire import Refusal, invalid, not_found


class Doings:
    """Each takes `seconds`, uniformly, and locks the server meanwhile."""

    def __init__(self, project: Project, *, random: Random, seconds: tuple[float, float]) -> None:
        self._project = project
        self._random = random
        self._seconds = seconds

    def perform(self, server: Server, word: str, body: Json) -> Action:
        doing = self._doings().get(word)
        if doing is None:
            raise Refusal(404, "not_found", f"no such action: {word}")
        unlocked(self._project, server)
        return doing(server, body)

    def _doings(self) -> Mapping[str, Callable[[Server, Json], Action]]:
        return {
            "poweron": lambda server, _: self._power(server, "start_server", on=True),
            "poweroff": lambda server, _: self._power(server, "stop_server", on=False),
            "shutdown": lambda server, _: self._power(server, "shutdown_server", on=False),
            "reboot": lambda server, _: self._power(server, "reboot_server", on=True),
            "reset": lambda server, _: self._power(server, "reset_server", on=True),
            "attach_to_network": self._attach,
            "detach_from_network": self._detach,
            "add_to_placement_group": self._join,
            "remove_from_placement_group": self._leave,
            "change_protection": self._protect,
            "enable_backup": lambda server, _: self._backup(server, on=True),
            "disable_backup": lambda server, _: self._backup(server, on=False),
        }

    def _do(self, server: Server, command: str, then: Callable[[dt.datetime], None], *more: tuple[str, int]) -> Action:
        def done(at: dt.datetime) -> None:
            server.busy = None
            then(at)

        action = self._project.act(
            command, [("server", server.id), *more], seconds=self._random.uniform(*self._seconds), then=done
        )
        server.busy = action.id
        return action

    def _power(self, server: Server, command: str, *, on: bool) -> Action:
        def done(at: dt.datetime) -> None:
            server.status = "running" if on else "off"
            server.running_since = at if on else None

        server.status = "starting" if on else "stopping"
        return self._do(server, command, done)

    def _attach(self, server: Server, body: Json) -> Action:
        network = known("network", self._project.networks, body.get("network"))
        if network.id in server.networks:
            raise Refusal(409, "server_already_attached", "server is already attached to network")
        return self._do(server, "attach_to_network", attaches(self._project, server, network), ("network", network.id))

    def _detach(self, server: Server, body: Json) -> Action:
        network = known("network", self._project.networks, body.get("network"))
        if network.id not in server.networks:
            raise not_found("network", network.id)

        def done(_: dt.datetime) -> None:
            server.networks.pop(network.id, None)
            network.members.pop(server.id, None)

        return self._do(server, "detach_from_network", done, ("network", network.id))

    def _join(self, server: Server, body: Json) -> Action:
        group = known("placement group", self._project.placement_groups, body.get("placement_group"))
        if server.group is not None:
            raise Refusal(409, "conflict", "server is already in a placement group")
        if server.status != "off":
            raise Refusal(422, "server_not_stopped", "server must be stopped")
        if group.full:
            raise Refusal(422, "placement_error", "the placement group is full")
        server.group = group
        group.servers.append(server.id)
        return self._do(server, "add_to_placement_group", lambda _: None, ("placement_group", group.id))

    def _leave(self, server: Server, _: Json) -> Action:
        if server.group is None:
            raise Refusal(422, "invalid_input", "server is in no placement group")
        group, server.group = server.group, None
        group.servers.remove(server.id)
        return self._do(server, "remove_from_placement_group", lambda _: None, ("placement_group", group.id))

    def _protect(self, server: Server, body: Json) -> Action:
        delete, rebuild = body.get("delete", server.delete_protected), body.get("rebuild", server.rebuild_protected)
        if delete != rebuild:
            raise invalid("rebuild", "delete and rebuild protection must be the same")
        server.delete_protected, server.rebuild_protected = bool(delete), bool(rebuild)
        return self._do(server, "change_protection", lambda _: None)

    def _backup(self, server: Server, *, on: bool) -> Action:
        if server.backups != on:
            share = 1 + BACKUP_SHARE if on else 1 / (1 + BACKUP_SHARE)
            server.backups = on
            server.hourly, server.monthly = server.hourly * share, server.monthly * share
            self._project.ledger.repriced(server.id, hourly=server.hourly, monthly=server.monthly)
        return self._do(server, "enable_backup" if on else "disable_backup", lambda _: None)


def attaches(project: Project, server: Server, network: Network) -> Callable[[dt.datetime], None]:
    """The server has an address in the network from now on, and shows it once the action has ended."""
    network.members[server.id] = address = free_address(network, network_zone=LOCATIONS[server.location][5])

    def attach(_: dt.datetime) -> None:
        if server.id in project.servers and server.status != "deleting":
            server.networks[network.id] = address

    return attach


def unlocked(project: Project, server: Server) -> None:
    """Refuses while an action holds the server."""
    action = project.actions.get(server.busy) if server.busy is not None else None
    if action is not None and action.running:
        raise Refusal(423, "locked", f"server is locked: action {action.command} is running")


def known(what: str, among: Mapping[int, Any], key: Any) -> Any:
    """The thing of that number, or a refusal."""
    if not isinstance(key, int) or key not in among:
        raise Refusal(404, "not_found", f"{what} {key} not found")
    return among[key]
