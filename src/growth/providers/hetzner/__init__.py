"""Hetzner Cloud: machines that are bought by the hour.

May import what `growth.providers` may. From the pure to the thin shell:

    wire        the vendor's JSON, as far as it is read
    failures    what a code of the vendor means, at once or in an action that fails late
    offerings   server types, prices and places as a catalogue; what a node class makes of them
    classes     what a node class asks for: problems in words, the hash by which drift is seen
    client      calls of the vendor's API, page by page and in batches
    account     what the account holds beside machines: images, networks, firewalls, keys, resolved and remembered
    readiness   what keeps machines of a node class from being made
    groups      placement groups, counted, ten machines each
    machines    machines of this cluster, listed once for all who ask
    buying      how a claim gets its machine; inventory: dedicated machines that people own; owned: what they are
    provider    `CloudProvider`; gauges: what the vendor flags as available
    keeper      the node classes' status, and placement groups
    standin     the kubelets of machines that a fake sells

Promises: a machine is named by its claim and labelled with cluster, claim and its UID; only machines with our cluster's
label are shown or touched; the token is in no message.
"""
