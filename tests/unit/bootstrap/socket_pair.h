// Two connected sockets: one for the code under test, one for a test that plays the other side.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string_view>
#include <utility>

namespace weft::machine::bootstrap {

class SocketPair {
 public:
  SocketPair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds_.data()), 0); }
  ~SocketPair() {
    close_ours();
    if (fds_[1] >= 0) close(fds_[1]);
  }
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;

  int ours() const { return fds_[0]; }
  int theirs() const { return fds_[1]; }
  // For code that closes it itself.
  int give_theirs() { return std::exchange(fds_[1], -1); }
  void close_ours() {
    if (fds_[0] >= 0) close(std::exchange(fds_[0], -1));
  }
  void write_raw(std::string_view bytes) const {
    ASSERT_EQ(write(fds_[0], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }

 private:
  std::array<int, 2> fds_ = {-1, -1};
};

}  // namespace weft::machine::bootstrap
