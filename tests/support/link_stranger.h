// A process that sends what it likes over a link.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "machine/links/incoming_link.h"
#include "machine/links/link_socket.h"
#include "machine/links/owned_fd.h"

namespace weft::testing {

// The process with that name listens, but never reads.
class DeafProcess {
 public:
  explicit DeafProcess(const machine::ProcessName& name)
      : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const machine::LinkSocketAddress address(name);
    EXPECT_EQ(bind(fd_.get(), address.get(), address.size()), 0);
    EXPECT_EQ(listen(fd_.get(), 8), 0);
  }

 private:
  machine::OwnedFd fd_;
};

class LinkStranger {
 public:
  explicit LinkStranger(const machine::ProcessName& to)
      : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const machine::LinkSocketAddress address(to);
    EXPECT_EQ(connect(fd_.get(), address.get(), address.size()), 0);
  }
  template <class T>
  void send(const T& value) {
    send_bytes(std::as_bytes(std::span<const T, 1>(&value, 1)));
  }
  void send_bytes(std::span<const std::byte> bytes) {
    EXPECT_EQ(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void greet(const machine::ProcessName& from, const machine::ProcessName& to, std::uint32_t revision) {
    machine::LinkHello hello;
    hello.revision = revision;
    hello.from = from;
    hello.to = to;
    send(hello);
  }
  void send_message(std::uint32_t type, std::span<const std::byte> bytes) {
    send(machine::LinkHeader{.type = type, .size_bytes = bytes.size()});
    if (!bytes.empty()) send_bytes(bytes);
  }
  // Whether the process closes the link.
  bool is_refused() {
    pollfd watched{fd_.get(), POLLIN, 0};
    char byte = 0;
    return poll(&watched, 1, 30000) == 1 && recv(fd_.get(), &byte, 1, 0) <= 0;
  }

 private:
  machine::OwnedFd fd_;
};

}  // namespace weft::testing
