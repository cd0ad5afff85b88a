#include "machine/ucx/setup/wake_sockets.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

namespace weft::machine::ucx {
namespace {

bool has(const std::vector<int>& sockets, int socket) {
  return std::ranges::find(sockets, socket) != sockets.end();
}

// A socket as UCX makes it, to which this process sends.
struct WakeSocketsTest : ::testing::Test {
  WakeSocketsTest() : before(local_datagram_sockets()) {
    receiver = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sender = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    address.sun_family = AF_UNIX;
    EXPECT_EQ(::bind(receiver, reinterpret_cast<const sockaddr*>(&address), sizeof address.sun_family), 0);
    EXPECT_EQ(::getsockname(receiver, reinterpret_cast<sockaddr*>(&address), &address_bytes), 0);
    sockets = {receiver};
    ask_for_senders(sockets);
  }
  ~WakeSocketsTest() override {
    ::close(receiver);
    ::close(sender);
  }
  void send(const std::string& bytes) const {
    EXPECT_EQ(::sendto(sender, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&address),
                       address_bytes),
              static_cast<ssize_t>(bytes.size()));
  }
  std::string receive() const {
    char bytes[16];
    const ssize_t size = ::recv(receiver, bytes, sizeof bytes, 0);
    return size < 0 ? "none" : std::string(bytes, static_cast<std::size_t>(size));
  }

  std::vector<int> before;
  int receiver = -1;
  int sender = -1;
  sockaddr_un address{};
  socklen_t address_bytes = sizeof address;
  std::vector<int> sockets;
};

TEST_F(WakeSocketsTest, BoundDatagramSocketsAreFound) {
  EXPECT_FALSE(has(before, receiver));
  const std::vector<int> found = local_datagram_sockets();
  EXPECT_TRUE(has(found, receiver));
  EXPECT_FALSE(has(found, sender)) << "nobody can send to it";
}

TEST_F(WakeSocketsTest, DatagramsOfTheSameUserStay) {
  send("one");
  EXPECT_FALSE(drop_datagrams_of_others(sockets, ::getuid()));
  EXPECT_EQ(receive(), "one");
  EXPECT_FALSE(drop_datagrams_of_others(sockets, ::getuid())) << "there is none";
}

TEST_F(WakeSocketsTest, DatagramsOfOtherUsersAreDropped) {
  const uid_t somebody_else = ::getuid() + 1;  // for whom this process is another user
  for (const char* const bytes : {"a", "", "long"}) send(bytes);
  EXPECT_TRUE(drop_datagrams_of_others(sockets, somebody_else));
  EXPECT_EQ(receive(), "none");
  EXPECT_FALSE(drop_datagrams_of_others(sockets, somebody_else));
}

}  // namespace
}  // namespace weft::machine::ucx
