"""KWOK: a cloud of simulated machines, kept in the cluster that they serve.

May import what `growth.providers` may. Two halves that know of each other only what the machines' ConfigMaps say:

    provider    the client's half: `CloudProvider`. Creates a machine's record, asks for its deletion, looks it up.
    registrar   the cloud's half: brings machines up (their Node after a delay) and takes them down, also after a restart.

`kubelets` plays the kubelets of the Nodes where no kwok controller does. `records` is how a machine is written down,
`faults` what can be made to go wrong. Promises: a machine is one ConfigMap, named by its claim; a claim never gets two;
nothing here reads Growth's own objects but the node class.
"""
