"""What a session is to the replicas that share it."""


class Share:
    """What a session is to other replicas.

    Args:
        name: what it is called in the store.
        stamp: of its entry there; "" if it has none.
        due_s: when the store is to be told, or asked, next.
        is_sole: whether no other replica had come by it when the store was last asked.
        asked_s: when that was.

    Attributes:
        is_doubtful: whether others may have come by it without the store's knowing.
    """

    __slots__ = ("asked_s", "due_s", "is_doubtful", "is_sole", "name", "stamp")

    def __init__(self, name: str, stamp: str, due_s: float, *, is_sole: bool, asked_s: float) -> None:
        self.name = name
        self.stamp = stamp
        self.due_s = due_s
        self.is_sole = is_sole
        self.asked_s = asked_s
        self.is_doubtful = False
