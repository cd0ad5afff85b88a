"""Messages between the launcher and its agents: however the stream is cut, and behind what a shell prints."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.launch.hosts.link import GREETING, Decoder, Kind, LinkError, message

MESSAGES = st.lists(
    st.tuples(st.sampled_from(Kind), st.integers(0, 2**32 - 1), st.binary(max_size=40)), max_size=6
)


@given(
    messages=MESSAGES,
    noise=st.binary(max_size=30).filter(lambda noise: (noise + GREETING).find(GREETING) == len(noise)),
    cuts=st.lists(st.integers(0, 500), max_size=8),
)
def test_messages_arrive_whole_and_in_order(
    messages: list[tuple[Kind, int, bytes]], noise: bytes, cuts: list[int]
) -> None:
    stream = noise + GREETING + b"".join(message(*each) for each in messages)
    decoder = Decoder(GREETING)
    arrived = []
    begin = 0
    for end in sorted({min(cut, len(stream)) for cut in cuts} | {len(stream)}):
        arrived += decoder.feed(stream[begin:end])
        begin = end
    assert arrived == messages
    assert decoder.is_greeted


@pytest.mark.parametrize("data", [b"\xff" * 12, message(Kind.PING)[:4] + b"\0\0\0\0" + b"\xff\xff\xff\xff"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(LinkError, match="a message begins with"):
        list(Decoder().feed(data))


def test_a_shell_that_prints_without_end_is_refused() -> None:
    decoder = Decoder(GREETING)
    assert list(decoder.feed(b"Welcome to node7!\n")) == []
    assert decoder.noise == "Welcome to node7!"
    with pytest.raises(LinkError, match="its shell prints"):
        list(decoder.feed(b"x" * (1 << 17)))
