"""What goes wrong in a simulated world: faults at its seams, each with a rate, counted when they could matter.

`rates` names every kind; `network`, `clouds`, `joins`, `processes` and `hands` make them happen; `injector` puts them together.
`sabotage` breaks the product on purpose, one promise at a time, so that no check is vacuous. Nothing here judges.
"""
