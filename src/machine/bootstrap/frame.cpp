#include "machine/bootstrap/frame.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/format.h"

namespace weft::machine::bootstrap {
namespace {

using base::Result;
using base::Status;
using base::StatusCode;

// The status for errno after a socket call: only EPIPE and ECONNRESET mean that the other side has gone.
Status socket_failure(std::string_view doing) {
  const int error = errno;
  const bool gone = error == EPIPE || error == ECONNRESET;
  return Status(gone ? StatusCode::kClosed : StatusCode::kInternal,
                base::format("{} failed: {}", doing, std::strerror(error)));
}

// Fills `out`, or says how the stream ended before.
Status read_all(int fd, std::span<std::byte> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = recv(fd, out.data() + done, out.size() - done, 0);
    if (got > 0) {
      done += static_cast<std::size_t>(got);
    } else if (got == 0) {
      return Status(StatusCode::kClosed,
                    base::format("the connection ended after {} of {} bytes", done, out.size()));
    } else if (errno != EINTR) {
      return socket_failure("reading");
    }
  }
  return {};
}

Status check_header(std::span<const std::byte> header) {
  const char* magic = reinterpret_cast<const char*>(header.data());
  if (std::memcmp(magic, kFrameMagic.data(), kFrameMagic.size()) != 0) {
    if (std::memcmp(magic, kFrameMagic.data(), kFrameMagic.size() - 1) == 0) {
      return Status(
          StatusCode::kCorrupt,
          base::format("the other side speaks version {} of the launch protocol, this program version {}: "
                       "use the `weft` command and the library of one Weft release",
                       magic[3], kFrameMagic[3]));
    }
    return Status(StatusCode::kCorrupt,
                  base::format("malformed frame: it begins with 0x{:08x}, not with a frame's magic",
                               get_integer<std::uint32_t>(header, 0)));
  }
  const auto type = get_integer<std::uint32_t>(header, 4);
  if (frame_type_name(static_cast<FrameType>(type)).empty()) {
    return Status(StatusCode::kCorrupt, base::format("malformed frame: unknown type {}", type));
  }
  const auto size_bytes = get_integer<std::uint64_t>(header, 8);
  if (size_bytes > kMaxFrameBytes) {
    return Status(StatusCode::kCorrupt, base::format("malformed frame: {} bytes, more than the limit of {}",
                                                     size_bytes, kMaxFrameBytes));
  }
  return {};
}

}  // namespace

std::string Frame::text(std::size_t offset) const {
  return {reinterpret_cast<const char*>(payload.data()) + offset, payload.size() - offset};
}

std::string_view frame_type_name(FrameType type) {
  switch (type) {
    case FrameType::kHello:
      return "hello";
    case FrameType::kExchange:
      return "exchange";
    case FrameType::kBarrier:
      return "barrier";
    case FrameType::kFinished:
      return "finished";
    case FrameType::kAbort:
      return "abort";
    case FrameType::kWelcome:
      return "welcome";
    case FrameType::kExchanged:
      return "exchanged";
    case FrameType::kBarrierDone:
      return "barrier done";
    case FrameType::kEnd:
      return "end";
    case FrameType::kStartJob:
      return "start job";
    case FrameType::kBeginAgain:
      return "begin again";
    case FrameType::kProtected:
      return "protected";
    case FrameType::kResize:
      return "resize";
    case FrameType::kResizePlan:
      return "resize plan";
    case FrameType::kResizeAnswer:
      return "resize answer";
    case FrameType::kCannotResize:
      return "cannot resize";
    case FrameType::kOutlives:
      return "outlives losses";
    case FrameType::kLost:
      return "lost PE";
    case FrameType::kStopped:
      return "stopped";
    case FrameType::kAllStopped:
      return "all stopped";
  }
  return {};
}

Status write_frame(int fd, FrameType type, std::span<const std::byte> payload) {
  if (payload.size() > kMaxFrameBytes) {
    return Status(
        StatusCode::kInvalidArgument,
        base::format("{} bytes in one frame, more than the limit of {}", payload.size(), kMaxFrameBytes));
  }
  std::array<std::byte, kFrameHeaderBytes> header;
  std::memcpy(header.data(), kFrameMagic.data(), kFrameMagic.size());
  set_integer(header, 4, static_cast<std::uint32_t>(type));
  set_integer(header, 8, static_cast<std::uint64_t>(payload.size()));

  std::array<iovec, 2> pieces = {
      iovec{header.data(), header.size()},
      iovec{const_cast<std::byte*>(payload.data()), payload.size()},
  };
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  std::size_t left = header.size() + payload.size();
  while (left > 0) {
    const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      return socket_failure("writing");
    }
    left -= static_cast<std::size_t>(sent);
    auto advance = static_cast<std::size_t>(sent);
    for (iovec& piece : pieces) {
      const std::size_t step = std::min(advance, piece.iov_len);
      piece.iov_base = static_cast<std::byte*>(piece.iov_base) + step;
      piece.iov_len -= step;
      advance -= step;
    }
  }
  return {};
}

Result<Frame> read_frame(int fd) {
  std::array<std::byte, kFrameHeaderBytes> header;
  if (Status status = read_all(fd, header); status.failed()) return status;
  if (Status status = check_header(header); status.failed()) return status;
  Frame frame;
  frame.type = static_cast<FrameType>(get_integer<std::uint32_t>(header, 4));
  frame.payload.resize(get_integer<std::uint64_t>(header, 8));
  if (Status status = read_all(fd, frame.payload); status.failed()) return status;
  return frame;
}

}  // namespace weft::machine::bootstrap
