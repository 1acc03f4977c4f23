"""Access to the Kubernetes API: one protocol and what stands on it.

`api` is the contract (`Api`), `errors` its error tree, `http` the client of a real server (found by
`access`, authenticated by `credentials`, its errors put in a person's words by `describe`), `memory` the server in
process, `informer` the list+watch cache (kept in `store`), `lease` leader election with the write gate, `events` the
event recorder, `queue` the work queue of controllers.
May import `growth.api`, `growth.ports`, `growth.units`. Promises: a write is never repeated when its outcome is
unknown, and nothing is written once the gate is closed.
"""
