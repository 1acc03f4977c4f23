"""From pending pods to NodeClaims: collect demand, plan, reserve, create, tell.

`provisioner` is the shell that acts; `demand`, `passes`, `claims`, `booking` and `story` decide and are pure.
"""
