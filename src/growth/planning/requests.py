"""What a pod takes of a node; the counting itself is `growth.api.requests`, which the cluster's view shares."""

from growth.api.requests import PODS, Port, host_ports_of, ports_conflict, requests_of

__all__ = ["PODS", "Port", "host_ports_of", "ports_conflict", "requests_of"]
