"""The immutable view of the cluster that planning reads. Imports `growth.api` and `growth.units` only."""
