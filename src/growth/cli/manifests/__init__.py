"""Manifests on their way from files to typed objects, as `growth plan` reads them.

`documents` finds and splits files, `spelling` knows older names, `checks` holds objects to what a server would check,
`workloads` makes pods of templates, `collection` brings everything together. Promises: bad input is a `UsageError` that
names file, document, field and reason; what is skipped is said once.
"""
