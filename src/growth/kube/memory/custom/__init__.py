"""Custom kinds: CustomResourceDefinitions are established at once and their objects held to their schemas.

`definitions` reads a CRD into resources, `schema` prunes, defaults and validates by a structural schema, `rules`
evaluates its CEL rules, `strategy` puts them together for the server.
"""
