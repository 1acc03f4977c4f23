"""Typed objects and their names: what Growth reads and writes of Kubernetes, Karpenter and itself.

Frozen msgspec structs, one module a group of kinds; `kinds` ties a struct to its place in the API; `names` holds every
label, annotation, taint, finalizer, condition and reason; `schema` is what an API server is to check of a field, and
`crds` makes the CustomResourceDefinitions from it; `decoding` reads what servers send; `edits` changes raw objects, which
hold fields that the structs lack. May import `growth.units` only. Values, no behaviour that touches the outside.
"""
