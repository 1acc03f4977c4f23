"""From pending pods to NodeClaims: collect demand, plan, reserve, create, tell.

`provisioner` and `purchases` are the shell that acts; `demand`, `passes`, `claims`, `booking` and `story` decide and are
pure. `reserving` keeps the books that limits and caps hold by.
"""
