"""The clouds: the CloudProvider protocol and its implementations (kwok, hetzner, linode).

May import kube (the KWOK cloud keeps its machines in ConfigMaps), api and ports. A provider never reads the cluster's
state: it is told a claim and answers with a machine or a typed error.
"""
