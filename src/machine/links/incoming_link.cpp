#include "machine/links/incoming_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace weft::machine {

namespace {

// A message grows as its bytes come, because its size is a claim.
constexpr std::size_t kFirstBytes = std::size_t{1} << 20;

}  // namespace

IncomingLink::Read IncomingLink::fill(std::byte* into, std::size_t size_bytes) {
  while (have_ < size_bytes) {
    const ssize_t got = recv(fd_.get(), into + have_, size_bytes - have_, MSG_DONTWAIT);
    if (got > 0) {
      have_ += static_cast<std::size_t>(got);
    } else if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
      return Read::kEnd;
    } else if (errno != EINTR) {
      return Read::kNothing;
    }
  }
  have_ = 0;
  return Read::kMessage;
}

IncomingLink::Read IncomingLink::read() {
  if (!has_greeted_) {
    const Read got = fill(reinterpret_cast<std::byte*>(&hello_), sizeof hello_);
    if (got != Read::kMessage) return got;
    if (hello_.magic != LinkHello::kMagic) return Read::kEnd;
    has_greeted_ = true;
    return Read::kHello;
  }
  if (!has_header_) {
    const Read got = fill(reinterpret_cast<std::byte*>(&header_), sizeof header_);
    if (got != Read::kMessage) return got;
    if (header_.size_bytes > LinkHeader::kMostBytes) return Read::kEnd;
    has_header_ = true;
    bytes_.clear();
  }
  while (true) {
    const std::size_t room = std::min<std::size_t>(header_.size_bytes, std::max(kFirstBytes, 2 * have_));
    bytes_.resize(room);
    const Read got = fill(bytes_.data(), room);
    if (got != Read::kMessage) return got;
    if (room == header_.size_bytes) break;
    have_ = room;
  }
  has_header_ = false;
  return Read::kMessage;
}

}  // namespace weft::machine
