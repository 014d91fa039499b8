"""Replies are written in one piece, in order, and a lot of them not held back."""

import asyncio

from gateway.server.protocol import OneWrite


class FakeTransport:
    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def writelines(self, pieces: list[bytes]) -> None:
        self.written.extend(pieces)

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def get_extra_info(self, name: str) -> str:
        return f"the {name}"


def pair() -> tuple[OneWrite, FakeTransport]:
    transport = FakeTransport()
    return OneWrite(transport), transport  # type: ignore[arg-type]


async def test_what_is_written_in_one_turn_of_the_loop_goes_out_together() -> None:
    one_write, transport = pair()
    one_write.write(b"head ")
    one_write.write(b"body")
    assert transport.written == []
    await asyncio.sleep(0)
    assert transport.written == [b"head body"]
    one_write.write(b"next")
    await asyncio.sleep(0)
    assert transport.written == [b"head body", b"next"]


async def test_a_lot_is_written_at_once() -> None:
    one_write, transport = pair()
    one_write.write(b"x" * 40_000)
    assert transport.written == [b"x" * 40_000]
    await asyncio.sleep(0)
    assert len(transport.written) == 1


async def test_a_lot_is_not_copied_to_be_one_piece() -> None:
    one_write, transport = pair()
    large = memoryview(b"x" * 40_000)
    one_write.write(b"head")
    one_write.write(large)
    assert transport.written == [b"head", large]


async def test_closing_writes_what_is_left_first() -> None:
    one_write, transport = pair()
    one_write.write(b"last words")
    one_write.close()
    assert (transport.written, transport.is_closed) == ([b"last words"], True)
    await asyncio.sleep(0)
    assert transport.written == [b"last words"]


async def test_a_transport_that_is_gone_gets_nothing() -> None:
    one_write, transport = pair()
    one_write.write(b"too late")
    transport.is_closed = True
    await asyncio.sleep(0)
    assert transport.written == []


async def test_everything_else_is_the_transports_own() -> None:
    one_write, _transport = pair()
    assert one_write.get_extra_info("peername") == "the peername"
