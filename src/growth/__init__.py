"""Growth: a node autoscaler for Kubernetes. `docs/architecture.md` says how the packages fit together."""
