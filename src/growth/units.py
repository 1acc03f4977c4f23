"""Quantities, durations and money, exact."""
