// The sockets of links: their addresses, and the check of who is at the other end.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "machine/links/process_name.h"

namespace weft::machine {

// Abstract: it leaves no file, and belongs to the network namespace.
class LinkSocketAddress {
 public:
  explicit LinkSocketAddress(const ProcessName& name) {
    address_.sun_family = AF_UNIX;
    const std::string text = link_address(name);
    const std::size_t length = std::min(text.size(), sizeof address_.sun_path - 1);
    std::memcpy(address_.sun_path + 1, text.data(), length);
    size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t size() const { return size_; }

 private:
  sockaddr_un address_{};
  socklen_t size_ = 0;
};

inline bool is_own_user(int connected_fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(connected_fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

}  // namespace weft::machine
