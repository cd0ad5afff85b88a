"""The launch protocol's frames: written frames can be read however they are cut; other bytes are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.launch.frames import HEADER, MAX_FRAME_BYTES, Frame, FrameDecoder, FrameType, ProtocolError, encode

FRAMES = st.lists(st.builds(Frame, st.sampled_from(FrameType), st.binary(max_size=40)), max_size=6)


@given(frames=FRAMES, cuts=st.lists(st.integers(0, 400), max_size=8))
def test_frames_arrive_whole_and_in_order_however_the_stream_is_cut(
    frames: list[Frame], cuts: list[int]
) -> None:
    stream = b"".join(encode(frame.type, frame.payload) for frame in frames)
    ends = sorted({min(cut, len(stream)) for cut in cuts} | {len(stream)})
    decoder = FrameDecoder()
    arrived: list[Frame] = []
    begin = 0
    for end in ends:
        arrived += decoder.feed(stream[begin:end])
        begin = end
    assert arrived == frames
    assert decoder.pending_bytes == 0


def test_layout_is_the_agreed_one() -> None:
    # src/machine/bootstrap/frame.cpp reads the same bytes; frame_test.cpp has them too.
    expected = b"WFT3" + b"\5\0\0\0" + b"\6\0\0\0\0\0\0\0" + b"\xfe\xff\xff\xff" + b"no"
    assert encode(FrameType.ABORT, b"\xfe\xff\xff\xffno") == expected
    (frame,) = FrameDecoder().feed(expected)
    assert frame.integer() == -2


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"GET / HTTP/1.1\r\n", "malformed frame: it begins with b'GET ', not with b'WFT3'"),
        (HEADER.pack(b"WFT9", 1, 0), "it speaks version 9 of the launch protocol, this `weft run` version 3"),
        (HEADER.pack(b"WFT3", 0, 0), "malformed frame: unknown type 0"),
        (
            HEADER.pack(b"WFT3", 2, MAX_FRAME_BYTES + 1),
            "malformed frame: 1073741825 bytes, more than the limit",
        ),
    ],
)
def test_what_is_no_frame_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(ProtocolError, match="^" + problem.replace("(", r"\(")):
        list(FrameDecoder().feed(data))


def test_a_payload_too_short_for_its_number_is_refused() -> None:
    with pytest.raises(ProtocolError, match="malformed frame: 'HELLO' of 3 bytes"):
        Frame(FrameType.HELLO, b"abc").integer()
