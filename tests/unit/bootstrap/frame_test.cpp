#include "machine/bootstrap/frame.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include "base/format.h"
#include "tests/support/bytes_of.h"
#include "tests/unit/bootstrap/socket_pair.h"

namespace weft::machine::bootstrap {
namespace {

using base::Result;
using base::StatusCode;
using testing::bytes_of;

std::string header(std::string_view magic, std::uint32_t type, std::uint64_t size_bytes) {
  std::array<std::byte, 12> rest;
  set_integer(rest, 0, type);
  set_integer(rest, 4, size_bytes);
  return std::string(magic) + std::string(reinterpret_cast<const char*>(rest.data()), rest.size());
}

// What read_frame says when `raw` arrives and then the stream ends.
base::Status status_for(std::string_view raw) {
  SocketPair sockets;
  sockets.write_raw(raw);
  sockets.close_ours();
  return read_frame(sockets.theirs()).status();
}

TEST(FrameTest, ArrivesAsItWasSent) {
  SocketPair sockets;
  ASSERT_TRUE(write_frame(sockets.ours(), FrameType::kExchange, bytes_of("some bytes")).ok());
  ASSERT_TRUE(write_frame(sockets.ours(), FrameType::kBarrier, {}).ok());
  Result<Frame> first = read_frame(sockets.theirs());
  Result<Frame> second = read_frame(sockets.theirs());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->type, FrameType::kExchange);
  EXPECT_EQ(first->text(), "some bytes");
  EXPECT_EQ(first->text(5), "bytes");
  EXPECT_EQ(second->type, FrameType::kBarrier);
  EXPECT_TRUE(second->payload.empty());
}

TEST(FrameTest, LargerThanTheSocketsBuffer) {
  SocketPair sockets;
  std::vector<std::byte> payload(std::size_t{8} << 20);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i * 31);
  base::Status sent;
  std::thread sender([&] { sent = write_frame(sockets.ours(), FrameType::kExchanged, payload); });
  Result<Frame> frame = read_frame(sockets.theirs());
  sender.join();
  ASSERT_TRUE(sent.ok() && frame.ok());
  EXPECT_EQ(frame->payload, payload);
}

// The layout is shared with python/weft/launch/frames.py.
TEST(FrameTest, HasTheAgreedLayout) {
  SocketPair sockets;
  sockets.write_raw(std::string("WFT3") + std::string("\x05\0\0\0", 4) +
                    std::string("\x06\0\0\0\0\0\0\0", 8) + std::string("\xfe\xff\xff\xff", 4) + "no");
  Result<Frame> frame = read_frame(sockets.theirs());
  ASSERT_TRUE(frame.ok()) << frame.status().to_string();
  EXPECT_EQ(frame->type, FrameType::kAbort);
  EXPECT_EQ(get_integer<std::int32_t>(frame->payload, 0), -2);
  EXPECT_EQ(frame->text(4), "no");
}

TEST(FrameTest, MalformedFramesAreRefused) {
  const base::Status text = status_for("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(text.code(), StatusCode::kCorrupt);
  EXPECT_NE(text.message().find("malformed frame: it begins with 0x20544547"), std::string_view::npos)
      << text.message();

  const base::Status type = status_for(header("WFT3", 99, 0));
  EXPECT_EQ(type.code(), StatusCode::kCorrupt);
  EXPECT_NE(type.message().find("malformed frame: unknown type 99"), std::string_view::npos)
      << type.message();

  const base::Status size = status_for(header("WFT3", 2, kMaxFrameBytes + 1));
  EXPECT_EQ(size.code(), StatusCode::kCorrupt);
  EXPECT_NE(size.message().find("malformed frame: 1073741825 bytes"), std::string_view::npos)
      << size.message();
}

TEST(FrameTest, AnotherVersionIsNamed) {
  const base::Status status = status_for(header("WFT9", 1, 0));
  EXPECT_EQ(status.code(), StatusCode::kCorrupt);
  EXPECT_NE(status.message().find("speaks version 9 of the launch protocol, this program version 3"),
            std::string_view::npos)
      << status.message();
}

TEST(FrameTest, TheEndOfTheStreamIsClosed) {
  EXPECT_EQ(status_for("").code(), StatusCode::kClosed);
  EXPECT_EQ(status_for("WFT3").code(), StatusCode::kClosed);
  EXPECT_EQ(status_for(header("WFT3", 2, 10) + "half").code(), StatusCode::kClosed);
}

TEST(FrameTest, WritingToAClosedConnectionIsClosed) {
  SocketPair sockets;
  sockets.close_ours();
  EXPECT_EQ(write_frame(sockets.theirs(), FrameType::kBarrier, {}).code(), StatusCode::kClosed);
}

TEST(FrameTest, AConnectionThatIsResetIsClosed) {
  SocketPair sockets;
  ASSERT_TRUE(write_frame(sockets.theirs(), FrameType::kBarrier, {}).ok());
  sockets.close_ours();  // with a frame that it has not read
  const base::Status read = read_frame(sockets.theirs()).status();
  EXPECT_EQ(read.code(), StatusCode::kClosed);
  EXPECT_EQ(read.message(), base::format("reading failed: {}", std::strerror(ECONNRESET)));
  EXPECT_EQ(write_frame(sockets.theirs(), FrameType::kBarrier, {}).code(), StatusCode::kClosed);
}

// What else goes wrong with a socket says nothing of the other side.
TEST(FrameTest, AnotherErrorIsNotTakenForAClosedConnection) {
  const std::string_view problem = std::strerror(EBADF);
  const base::Status written = write_frame(-1, FrameType::kBarrier, {});
  EXPECT_EQ(written.code(), StatusCode::kInternal);
  EXPECT_EQ(written.message(), base::format("writing failed: {}", problem));
  const base::Status read = read_frame(-1).status();
  EXPECT_EQ(read.code(), StatusCode::kInternal);
  EXPECT_EQ(read.message(), base::format("reading failed: {}", problem));
}

TEST(FrameTest, AWriteThatTakesTooLongIsNotTakenForAClosedConnection) {
  SocketPair sockets;
  const timeval soon{0, 1};
  ASSERT_EQ(setsockopt(sockets.theirs(), SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon)), 0);
  const std::vector<std::byte> more_than_a_buffer(std::size_t{8} << 20);
  const base::Status status = write_frame(sockets.theirs(), FrameType::kExchange, more_than_a_buffer);
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_EQ(status.message(), base::format("writing failed: {}", std::strerror(EAGAIN)));
}

}  // namespace
}  // namespace weft::machine::bootstrap
