"""The clouds: the CloudProvider protocol and its implementations (kwok, hetzner, linode).

May import kube (the KWOK cloud keeps its machines in ConfigMaps), api and ports. A provider never reads the cluster's
state: it is told a claim and answers with a machine or a typed error.

What clouds share stands here, beside them: from an offering's choice (`choice`, `shortages`), the judgement of node classes
(`nodeclasses`, `readiness`, `keeping`) and what their machines hold (`learning`, `sizes`) to errors in our words (`answering`),
user data (`userdata`, `joining`) and the kubelets of a fake's machines (`standin`).
"""
