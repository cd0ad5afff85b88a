// The file of queues and the sockets of two PEs, which are in this process.
#include "machine/host_queue/host_queues.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace weft::machine {
namespace {

struct HostQueuesTest : ::testing::Test {
  HostQueuesTest() {
    std::vector<HostQueuesName> names;
    for (HostQueues& one : queues) {
      one.make(2);
      EXPECT_TRUE(one.failure().ok()) << one.failure().to_string();
      names.push_back(one.name());
    }
    for (int pe = 0; pe < 2; ++pe) queues[static_cast<std::size_t>(pe)].open(names, pe);
  }

  // Whether PE 1, which sleeps, wakes up.
  bool wakes() const {
    pollfd one{queues[1].descriptor(), POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
  }
  // A socket that knows where PE 1 listens, as any user can find out in /proc/net/unix.
  void send_to_pe_1(const std::string& bytes) const {
    sockaddr_un address{};
    socklen_t size = sizeof address;
    ASSERT_EQ(::getsockname(queues[1].descriptor(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    const int stranger = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(stranger, 0);
    ::sendto(stranger, bytes.data(), bytes.size(), MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&address),
             size);
    ::close(stranger);
  }

  std::array<HostQueues, 2> queues;
};

TEST_F(HostQueuesTest, AMessageWakesASleeper) {
  ASSERT_TRUE(queues[1].before_sleep());
  EXPECT_FALSE(wakes());
  EXPECT_EQ(queues[0].send(1, 5, {}, {}), HostQueues::Sent::kYes);
  EXPECT_TRUE(wakes());
  queues[1].after_sleep();
  EXPECT_FALSE(wakes()) << "the datagram is read";
  int messages = 0;
  ASSERT_TRUE(queues[1].has_message());
  queues[1].progress([&](AmId id, auto, auto) {
    EXPECT_EQ(id, 5);
    ++messages;
    return false;
  });
  EXPECT_EQ(messages, 1);
}

TEST_F(HostQueuesTest, DatagramsOfOthersEndNoSleep) {
  ASSERT_TRUE(queues[1].before_sleep());
  for (const std::size_t size_bytes : {0, 1, 7, 8, 9, 4096}) {
    send_to_pe_1(std::string(size_bytes, 'x'));
    EXPECT_FALSE(wakes()) << size_bytes;
  }
  EXPECT_EQ(queues[0].send(1, 5, {}, {}), HostQueues::Sent::kYes);
  EXPECT_TRUE(wakes());
}

}  // namespace
}  // namespace weft::machine
