#include "machine/bootstrap/hosts/host_links.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "machine/bootstrap/hosts/host_watch.h"

namespace weft::machine {
namespace {

constexpr int kLongMs = 60000;
constexpr int kShortMs = 300;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

struct Listener {
  int fd;
  std::uint16_t port;

  static Listener open() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd, 256), 0);
    EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
    return {fd, ntohs(address.sin_port)};
  }
};

// PEs of a job whose hosts are this process's threads.
class Job {
 public:
  // hosts[i] is the host of PE i.
  explicit Job(const std::vector<std::uint64_t>& hosts) {
    for (const std::uint64_t host : hosts) {
      listeners_.push_back(Listener::open());
      HostEntry entry;
      entry.host = host;
      entry.name = "node" + std::to_string(host);
      entry.port = listeners_.back().port;
      entry.secret.fill(static_cast<std::byte>(listeners_.size()));
      // The first one leads nowhere.
      entry.addresses = {"127.0.0.2", "127.0.0.1", "::1"};
      entries.push_back(entry);
    }
  }

  // Those of `absent` do not take part.
  std::vector<HostLinks> meet(int limit_ms, const std::vector<int>& absent = {}) {
    std::vector<HostLinks> links(entries.size());
    std::vector<std::thread> threads;
    for (std::size_t pe = 0; pe < entries.size(); ++pe) {
      if (std::ranges::find(absent, static_cast<int>(pe)) != absent.end()) continue;
      threads.emplace_back([&, pe] {
        links[pe] = HostLinks::meet(HostTable(entries), static_cast<int>(pe), listeners_[pe].fd, limit_ms);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const int pe : absent) close(listeners_[static_cast<std::size_t>(pe)].fd);
    return links;
  }

  std::vector<HostEntry> entries;

 private:
  std::vector<Listener> listeners_;
};

std::vector<int> peers_of(const HostLinks& links) {
  std::vector<int> pes;
  for (const HostLink& link : links.links()) pes.push_back(link.pe);
  std::ranges::sort(pes);
  return pes;
}

TEST(HostLinksTest, EachPeHasLinksToBothNeighbours) {
  Job job({1, 1, 1, 2, 3, 3});
  const auto links = job.meet(kLongMs);
  const std::vector<std::vector<int>> expected = {{3}, {3, 4}, {3, 5}, {0, 1, 2, 4}, {1, 3}, {2}};
  for (std::size_t pe = 0; pe < links.size(); ++pe) {
    EXPECT_EQ(peers_of(links[pe]), expected[pe]) << pe;
    EXPECT_TRUE(links[pe].obstacles().empty());
  }
}

TEST(HostLinksTest, AJobOfOneHostHasNone) {
  Job job({5, 5});
  for (const HostLinks& links : job.meet(kLongMs)) EXPECT_TRUE(links.links().empty());
}

TEST(HostLinksTest, APeThatCannotBeReachedIsNamed) {
  Job job({1, 2});
  const auto links = job.meet(kShortMs, {1});
  EXPECT_TRUE(links[0].links().empty());
  ASSERT_EQ(links[0].obstacles().size(), 1U);
  EXPECT_NE(links[0].obstacles()[0].find("no TCP connection with PE 1 on node2 within 300 ms"),
            std::string::npos)
      << links[0].obstacles()[0];
}

TEST(HostLinksTest, APeWithoutAPortIsNotWaitedFor) {
  Job job({1, 2});
  job.entries[1].port = 0;
  const auto links = job.meet(kLongMs);
  EXPECT_EQ(peers_of(links[0]), std::vector<int>{1});
  EXPECT_EQ(peers_of(links[1]), std::vector<int>{0});
  for (const HostLinks& one : links) {
    ASSERT_EQ(one.obstacles().size(), 1U);
    EXPECT_NE(one.obstacles()[0].find("PE 1 on node2 has found no free port"), std::string::npos)
        << one.obstacles()[0];
  }
}

// The port of a PE that others have connected to is free when the job has ended: UCX takes no port that was used less than
// a minute ago.
TEST(HostLinksTest, PortsAreFreeAfterAGoodbye) {
  Job job({1, 2});
  auto links = job.meet(kLongMs);
  std::vector<std::thread> pes;
  for (HostLinks& one : links) pes.emplace_back([&one] { one.say_goodbye(kLongMs); });
  for (std::thread& pe : pes) pe.join();
  for (const HostEntry& entry : job.entries) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = loopback(entry.port);
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0) << errno;
    close(fd);
  }
}

TEST(HostLinksTest, APeOfAnotherJobIsNoPeer) {
  Job job({1, 2});
  Job other({1, 2});
  other.entries[0].secret.fill(std::byte{99});
  // PE 0 of the other job connects to PE 1 of this one, which waits for its own PE 0.
  other.entries[1].port = job.entries[1].port;
  std::vector<HostLinks> others;
  std::thread stranger([&] { others = other.meet(kShortMs, {1}); });
  const auto links = job.meet(kShortMs, {0});
  stranger.join();
  EXPECT_TRUE(links[1].links().empty());
  EXPECT_TRUE(others[0].links().empty());
}

TEST(HostLinksTest, StrangersDoNotKeepPeersApart) {
  Job job({1, 2});
  std::vector<int> strangers;
  const std::vector<std::string> texts = {"", "GET / HTTP/1.0\r\n\r\n", std::string(1000, '\0'),
                                          "WFTLINK2 and more"};
  for (std::size_t i = 0; i < 60; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = loopback(job.entries[i % 2].port);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const std::string& text = texts[i / 2 % texts.size()];
    EXPECT_EQ(send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
    strangers.push_back(fd);
  }
  const auto links = job.meet(kLongMs);
  EXPECT_EQ(peers_of(links[0]), (std::vector<int>{1, 1}));
  EXPECT_EQ(peers_of(links[1]), (std::vector<int>{0, 0}));
  for (const int fd : strangers) close(fd);
}

// All that a stranger at the partner's address gets, and what it can do with it: neither is the secret in it, nor does it
// make a peer of the stranger if it comes back. False if the stranger has come too late for that: after the limit of the meeting.
bool contact_a_stranger(int limit_ms) {
  Job job({1, 2});
  const int thief = Listener::open().fd;
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  EXPECT_EQ(getsockname(thief, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const auto& secret = job.entries[0].secret;
  const auto port = job.entries[0].port;
  job.entries[1].port = ntohs(address.sin_port);
  std::vector<HostLinks> links;
  std::thread victim([&] { links = job.meet(limit_ms, {1}); });
  pollfd waiting{thief, POLLIN, 0};
  if (poll(&waiting, 1, limit_ms) != 1) {
    victim.join();
    close(thief);
    return false;
  }
  const int contacted = accept(thief, nullptr, nullptr);
  std::vector<std::byte> handshake(40);
  EXPECT_EQ(recv(contacted, handshake.data(), handshake.size(), MSG_WAITALL), 40);
  EXPECT_TRUE(std::ranges::search(handshake, secret).empty()) << "the secret travels";
  // The same with sender and receiver exchanged: as the reply, and as the hello and the proof of a connection of its own.
  std::swap_ranges(handshake.begin() + 24, handshake.begin() + 28, handshake.begin() + 28);
  send(contacted, handshake.data(), handshake.size(), MSG_NOSIGNAL);
  const int own = socket(AF_INET, SOCK_STREAM, 0);
  address = loopback(port);
  bool is_in_time = connect(own, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  send(own, handshake.data(), handshake.size(), MSG_NOSIGNAL);
  std::vector<std::byte> reply(40);
  is_in_time = recv(own, reply.data(), reply.size(), MSG_WAITALL) == 40 && is_in_time;
  // The proof of the PE, reflected.
  std::ranges::copy(reply.begin() + 32, reply.end(), handshake.begin() + 32);
  send(own, handshake.data(), handshake.size(), MSG_NOSIGNAL);
  victim.join();
  EXPECT_TRUE(links[0].links().empty()) << "the stranger is a peer";
  for (const int fd : {thief, contacted, own}) close(fd);
  return is_in_time;
}

TEST(HostLinksTest, AStrangerThatAPeContactsGetsNothingOfUse) {
  // The stranger may wait for its core.
  EXPECT_TRUE(contact_a_stranger(kShortMs) || contact_a_stranger(10 * kShortMs) ||
              contact_a_stranger(100 * kShortMs));
}

// Hellos need no secret: they must not let the meeting keep more connections than it can.
TEST(HostLinksTest, PeersComeInAfterManyHellosOfStrangers) {
  Job job({1, 2});
  job.entries[1].port = 0;  // PE 0 makes no connection itself: its end would leave room for PE 1
  std::vector<int> strangers;
  std::string hello = "WFTLINK2" + std::string(32, '\0');
  hello[24] = 1;  // from PE 1, for PE 0
  for (int i = 0; i < 120; ++i) {
    strangers.push_back(socket(AF_INET, SOCK_STREAM, 0));
    const sockaddr_in address = loopback(job.entries[0].port);
    EXPECT_EQ(connect(strangers.back(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(send(strangers.back(), hello.data(), hello.size(), MSG_NOSIGNAL), 40);
  }
  const auto links = job.meet(kLongMs);
  EXPECT_EQ(peers_of(links[0]), (std::vector<int>{1}));
  EXPECT_EQ(peers_of(links[1]), (std::vector<int>{0}));
  for (const int fd : strangers) close(fd);
}

TEST(HostLinksTest, PeersComeInAfterManySilentStrangers) {
  Job job({1, 2});
  std::vector<int> strangers;
  for (std::size_t i = 0; i < 240; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = loopback(job.entries[i % 2].port);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    strangers.push_back(fd);
  }
  const auto links = job.meet(kLongMs);
  EXPECT_EQ(peers_of(links[0]), (std::vector<int>{1, 1}));
  EXPECT_EQ(peers_of(links[1]), (std::vector<int>{0, 0}));
  for (const int fd : strangers) close(fd);
}

// What a watch says.
struct Heard {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> sentences;

  std::function<void(const std::string&)> listener() {
    return [this](const std::string& sentence) {
      const std::lock_guard lock(mutex);
      sentences.push_back(sentence);
      changed.notify_all();
    };
  }
  std::string first() {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::milliseconds(kLongMs), [this] { return !sentences.empty(); });
    return sentences.empty() ? "nothing" : sentences.front();
  }
};

TEST(HostWatchTest, APeThatEndsTooEarlyIsNamed) {
  Job job({1, 2});
  auto links = job.meet(kLongMs);
  Heard heard;
  auto watch = HostWatch::start(0, std::move(links[0]), heard.listener());
  ASSERT_TRUE(watch.ok());
  links[1] = {};
  EXPECT_EQ(heard.first(), "PE 0 on node1 has lost PE 1 on node2: it ended before the job did");
}

// The PEs of a host have no links among themselves. PE 4 has links to PE 2, which is silent, and to PE 1.
TEST(HostWatchTest, EveryPeHearsOfALossAtOnce) {
  Job job({1, 1, 2, 2, 3, 3});
  auto links = job.meet(kLongMs);
  std::vector<Heard> heard(links.size());
  std::vector<std::unique_ptr<HostWatch>> watches;
  for (const int pe : {0, 1, 3, 5}) {
    auto watch = HostWatch::start(pe, std::move(links[static_cast<std::size_t>(pe)]),
                                  heard[static_cast<std::size_t>(pe)].listener());
    ASSERT_TRUE(watch.ok());
    watches.push_back(std::move(watch).value());
  }
  links[4].say_loss("PE 4 has lost\nall");
  for (const std::size_t pe : {0, 1, 3, 5}) EXPECT_EQ(heard[pe].first(), "PE 4 has lost?all") << pe;
}

TEST(HostWatchTest, APeThatHasFinishedIsNotLost) {
  Job job({1, 2});
  auto links = job.meet(kLongMs);
  Heard heard;
  Heard other;
  auto watch = HostWatch::start(0, std::move(links[0]), heard.listener());
  auto finished = HostWatch::start(1, std::move(links[1]), other.listener());
  ASSERT_TRUE(watch.ok() && finished.ok());
  (*finished)->finish();
  (*finished).reset();
  (*watch).reset();
  EXPECT_TRUE(heard.sentences.empty());
  EXPECT_TRUE(other.sentences.empty());
}

// ThreadSanitizer sees here whether only the watches use the links.
TEST(HostWatchTest, PesMayFinishAtTheSameTime) {
  for (int round = 0; round < 20; ++round) {
    Job job({1, 2});
    auto links = job.meet(kLongMs);
    std::vector<std::thread> pes;
    for (int pe = 0; pe < 2; ++pe) {
      pes.emplace_back([&links, pe] {
        auto watch = HostWatch::start(pe, std::move(links[static_cast<std::size_t>(pe)]),
                                      [](const std::string& sentence) { ADD_FAILURE() << sentence; });
        ASSERT_TRUE(watch.ok());
        (*watch)->finish();
        (*watch).reset();
      });
    }
    for (std::thread& pe : pes) pe.join();
  }
}

TEST(HostWatchTest, WithoutLinksThereIsNothingToWatch) {
  auto watch = HostWatch::start(0, {}, [](const std::string&) { ADD_FAILURE(); });
  ASSERT_TRUE(watch.ok());
  (*watch)->finish();
}

}  // namespace
}  // namespace weft::machine
