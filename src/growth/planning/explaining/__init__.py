"""Why things are as they are, and what would change them: pure functions from a `Scene` to an `Explanation`. As all of
planning they read values only.

scene      a cluster's objects at one moment, with the plan and the decision that follow from them
facts      what the objects tell of nodes that a watcher would know
lowering   what pools have too many of, and what is bought for its pods; renewing: what static pools replace;
           refilling: what they lack
reaching   what the cluster could cost with the same pods, and by which moves
remedies   changes that somebody could make, in words and as values; applying: the scene after them
verdicts   what each node has against a pod
pods       why a pod has no node; mending: what would give it one
nodes      why a node is kept; releasing: what would let it go
claims     how far a claim has come, and what it waits for
pools      whether a pool can buy, and what keeps it
whatif     the same cluster with something changed, side by side

A remedy is never a guess: it is applied to the scene, and the plan or the decision is made again. What did not help is
not told. Remedies that only time or people outside the cluster can bring about say so.
"""
