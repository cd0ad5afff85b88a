#include "machine/links/outgoing_link.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "machine/links/link_socket.h"

namespace weft::machine {

base::Result<OutgoingLink> OutgoingLink::connect(const ProcessName& to) {
  OwnedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.is_open())
    return base::Status(base::StatusCode::kInternal, base::format("no socket: {}", std::strerror(errno)));
  const LinkSocketAddress address(to);
  while (::connect(fd.get(), address.get(), address.size()) != 0) {
    if (errno == EINTR) continue;
    return base::Status(base::StatusCode::kUnreachable,
                        base::format("rank {} of another job does not listen on this host: {}", to.rank,
                                     std::strerror(errno)));
  }
  if (!is_own_user(fd.get())) {
    return base::Status(
        base::StatusCode::kInvalidArgument,
        base::format("the process that listens as rank {} of another job belongs to another user", to.rank));
  }
  return OutgoingLink(std::move(fd));
}

void OutgoingLink::send(std::initializer_list<std::span<const std::byte>> parts) {
  if (is_broken_) return;
  std::size_t skip = 0;
  if (waiting_.empty()) {
    std::array<iovec, 6> vectors{};
    std::size_t count = 0;
    for (const std::span<const std::byte> part : parts) {
      if (part.empty()) continue;
      vectors[count++] = {const_cast<std::byte*>(part.data()), part.size()};
    }
    msghdr message{};
    message.msg_iov = vectors.data();
    message.msg_iovlen = count;
    ssize_t sent = 0;
    do sent = sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return set_broken();
    if (sent > 0) skip = static_cast<std::size_t>(sent);
  }
  std::size_t total = 0;
  for (const auto& part : parts) total += part.size();
  if (skip == total) return;
  std::vector<std::byte> rest;
  rest.reserve(total - skip);
  for (const auto& part : parts) {
    const std::size_t skipped = std::min(skip, part.size());
    skip -= skipped;
    rest.insert(rest.end(), part.begin() + static_cast<std::ptrdiff_t>(skipped), part.end());
  }
  unwritten_bytes_ += rest.size();
  waiting_.push_back(std::move(rest));
}

void OutgoingLink::flush() {
  while (!waiting_.empty()) {
    const std::vector<std::byte>& first = waiting_.front();
    const ssize_t sent =
        ::send(fd_.get(), first.data() + written_, first.size() - written_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (sent < 0) return set_broken();
    written_ += static_cast<std::size_t>(sent);
    unwritten_bytes_ -= static_cast<std::size_t>(sent);
    if (written_ < first.size()) continue;
    written_ = 0;
    waiting_.pop_front();
  }
}

}  // namespace weft::machine
