"""`growth demo`: what there is to see so far."""


def demo() -> None:
    """See Growth at work; needs no account and no cluster.

    The simulated cluster is not built yet. This says what can be tried today.
    """
    print(
        "Growth is being built: there is no simulated cluster to show yet. What works today: `growth plan`"
        " shows which machines would be bought for which pods, `growth crds` prints the kinds, `make test` runs every check against a real control plane."
    )
