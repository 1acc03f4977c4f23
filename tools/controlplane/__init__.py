"""A real control plane on loopback, for tests and benchmarks: etcd, kube-apiserver, kube-scheduler,
kube-controller-manager and kwok (and helm beside them), built from Go modules.

`go.mod` pins the versions; `programs` says what is built and where it is kept; `build` builds it once; `plane` starts and
stops it; `python -m tools.controlplane` is the command. Whoever holds a `Plane` owns it: when that process ends, even
by `kill -9`, every program of the plane ends too.
"""
