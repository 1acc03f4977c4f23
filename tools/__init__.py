"""Developer tools: what tests and benchmarks need and the product does not ship."""
