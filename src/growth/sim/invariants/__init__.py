"""What must never happen in a simulated world, and what must happen in the end; judged by those who do not act.

`books` keeps what there is, change by change; `safety`, `pods`, `moves` and `counts` hold every change against the promises, and
`facts` says what a change means; `liveness` looks at what is left when all is calm; `auditor` puts them together and derives the books
anew every fifty steps. Nothing here knows the controllers: raw objects in, sentences out. Every invariant has a sabotage in
`growth.sim.chaos.sabotage` that it catches.
"""
