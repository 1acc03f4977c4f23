"""Linode: nodes of LKE pools, standard and enterprise, bought one by one and shared by none; or instances of our own.

May import what `growth.providers` may. From the pure to the thin shell:

    wire        the vendor's JSON, as far as it is read
    failures    what a refusal means
    tags        whose a machine and a pool are, in 50 characters
    offerings   types, prices and the region's availability as a catalogue
    kubelets    what a class says of kubelets: what is left for pods
    classes     what a node class asks for: problems in words, the hash by which drift is seen
    client      calls of the vendor's API, with a budget for each sort of call
    listing     lists that all who ask at the same time share
    booking     reservations, the keyed lock, and what has been missing for how long
    holdings    machines of this cluster, and what this process did to them lately
    finding     whose a machine is, and what contradicts itself
    making      what a pool is made with, and what of it changes when it grows
    pools       pools of LKE by (pool, type), and who is in them: by tier
    naming      whose a machine is where claims and tags disagree: the claim's that names it
    inheriting  what the process before left, which is known before anything is bought
    claiming    how a claim gets its machine: claim or scale
    settling    two machines of one claim: which it keeps
    leaving     the Nodes of machines that nobody claims: pods leave before the machine goes
    many        machines that nobody claims, so many that somebody must confirm their end
    collecting  the end of capacity that nobody claims
    ending      deletion of one node
    owning      whose an instance is by label and tags, also where some were taken off
    direct      the same for instances that are no nodes of LKE
    readiness   what keeps machines of a node class from being made
    provider    `CloudProvider`
    keeper      the node classes' status, tags of machines, orphans
    gauges      what is held back until somebody confirms it, as a metric
    standin     the kubelets of machines that a fake sells

Promises: a machine that a claim names is no other's; `karpenter.sh/nodeclaim:<claim>` stands on one machine of a claim and on
no pool; a pool's count is written only under the lock of its key, after a look, and never below the nodes that it lists;
machines of LKE are never deleted but as nodes of their pool; the token is in no message.
"""
