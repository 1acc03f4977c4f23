"""What happens in a simulated world: objects, workloads that come and go, faults, and events at their time.

`model` is the scenario's form, `files` reads it from YAML and says what is wrong with it, `generate` makes one from a
seed, `trace` reads recorded workloads, `load` plays all of it to a world.
"""
