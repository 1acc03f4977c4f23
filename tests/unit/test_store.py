"""The informer's store: which changes follow from which news."""

from growth.kube.store import Added, Changed, Deleted, Entry, Index, Key, Store, identity

KEY: Key = ("default", "web")


def entry(value: str, *, uid: str = "u1", revision: str = "1") -> Entry[str]:
    return Entry(uid, revision, value)


def letters(value: str) -> list[str]:
    return sorted(set(value))


def test_news_of_an_unknown_object_is_an_addition() -> None:
    """An object that was not there is added, whatever the server called the event."""
    assert Store[str]().put(KEY, entry("a")) == (Added(KEY, "a"),)


def test_news_of_a_known_object_is_a_change_with_both_states() -> None:
    """A change carries the state before and after; the same revision again is no news."""
    store = Store[str]()
    store.put(KEY, entry("a"))
    assert store.put(KEY, entry("b", revision="2")) == (Changed(KEY, "a", "b"),)
    assert store.put(KEY, entry("b", revision="2")) == ()


def test_another_incarnation_is_a_deletion_and_an_addition() -> None:
    """An object deleted unseen and made again under its name is told as deleted first."""
    store = Store[str]()
    store.put(KEY, entry("a"))
    assert store.put(KEY, entry("b", uid="u2", revision="9")) == (Deleted(KEY, "a", final=False), Added(KEY, "b"))


def test_a_deletion_carries_the_final_state() -> None:
    """A deletion seen in the stream tells the object's last state, and only once."""
    store = Store[str]()
    store.put(KEY, entry("a"))
    assert store.drop(KEY, entry("z", revision="3")) == (Deleted(KEY, "z", final=True),)
    assert store.drop(KEY, entry("z", revision="3")) == ()


def test_the_deletion_of_an_incarnation_never_seen_ends_the_one_that_was() -> None:
    """If the stream tells the end of a later incarnation, ours is gone too, in the last state that was seen."""
    store = Store[str]()
    store.put(KEY, entry("a"))
    assert store.drop(KEY, entry("z", uid="u2", revision="9")) == (Deleted(KEY, "a", final=False),)
    assert len(store) == 0


def test_a_fresh_list_tells_what_is_missing_first() -> None:
    """Of a whole list the missing are deleted, then the rest is added or changed, and equal revisions are silent."""
    store = Store[str]()
    for name in ("gone", "same", "changed", "remade"):
        store.put(("default", name), entry(name))
    changes = store.replace(
        {
            ("default", "changed"): entry("changed!", revision="2"),
            ("default", "same"): entry("same"),
            ("default", "remade"): entry("remade!", uid="u2", revision="3"),
            ("default", "new"): entry("new", revision="4"),
        }
    )
    assert changes == [
        Deleted(("default", "gone"), "gone", final=False),
        Changed(("default", "changed"), "changed", "changed!"),
        Deleted(("default", "remade"), "remade", final=False),
        Added(("default", "remade"), "remade!"),
        Added(("default", "new"), "new"),
    ]


def test_indexes_follow_every_change() -> None:
    """After additions, changes, deletions and lists an index finds what its function says, and nothing else."""
    index: Index[str] = letters
    store = Store[str]({"letters": index})
    store.put(KEY, entry("ab"))
    store.put(("default", "db"), entry("bc"))
    assert store.find("letters", "b") == ("ab", "bc")
    assert store.count("letters", "b") == 2
    store.put(KEY, entry("xy", revision="2"))
    assert store.find("letters", "b") == ("bc",)
    assert store.find("letters", "x") == ("xy",)
    store.replace({("default", "db"): entry("bq", revision="3")})
    assert store.values_of("letters") == ("b", "q")
    store.validate()
    store.drop(("default", "db"), entry("bq", revision="4"))
    assert store.find("letters", "b") == ()
    assert store.count("letters", "b") == 0
    store.validate()


def test_raw_objects_have_an_identity_too() -> None:
    """Identity is read from dicts as from structs; a cluster-scoped object's namespace is empty."""
    raw = {"metadata": {"name": "n", "uid": "u", "resourceVersion": "7"}}
    assert identity(raw).key == ("", "n")
    assert identity(raw).revision == "7"
