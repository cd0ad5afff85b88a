#include "machine/links/links.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "machine/links/link_socket.h"

namespace weft::machine {
namespace {

constexpr std::uint32_t kLinkRevision = 3;
constexpr int kLinkCloseMs = 10000;

// Each test run has names of its own.
ProcessName linked_name(int rank) { return {job_number("links_test " + std::to_string(getpid())), rank, 0}; }

std::span<const std::byte> text_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

class LinkMessages : public Links::Receiver {
 public:
  void arrived(const ProcessName& from, std::uint32_t type, std::vector<std::byte> bytes) override {
    const std::lock_guard lock(mutex_);
    messages_.push_back({from.rank, type, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}});
    changed_.notify_all();
  }
  void lost(const ProcessName& from) override {
    const std::lock_guard lock(mutex_);
    lost_.push_back(from.rank);
    changed_.notify_all();
  }

  struct Message {
    int from = 0;
    std::uint32_t type = 0;
    std::string text;
  };
  // Empty if there have not been so many in time.
  std::vector<Message> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    const bool came =
        changed_.wait_for(lock, std::chrono::seconds(30), [&] { return messages_.size() >= count; });
    return came ? messages_ : std::vector<Message>();
  }
  std::vector<int> wait_for_loss() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(30), [&] { return !lost_.empty(); });
    return lost_;
  }
  std::vector<int> lost_so_far() {
    const std::lock_guard lock(mutex_);
    return lost_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Message> messages_;
  std::vector<int> lost_;
};

struct LinkedProcess {
  explicit LinkedProcess(int rank)
      : name(linked_name(rank)), links(Links::open(name, kLinkRevision, received).value()) {}
  ProcessName name;
  LinkMessages received;
  std::unique_ptr<Links> links;
};

// A process that sends what it likes.
class LinkStranger {
 public:
  explicit LinkStranger(const ProcessName& to) : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const LinkSocketAddress address(to);
    EXPECT_EQ(connect(fd_.get(), address.get(), address.size()), 0);
  }
  template <class T>
  void send(const T& value) {
    EXPECT_EQ(::send(fd_.get(), &value, sizeof value, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof value));
  }
  void greet(int rank, const ProcessName& to, std::uint32_t revision = kLinkRevision) {
    LinkHello hello;
    hello.revision = revision;
    hello.from = linked_name(rank);
    hello.to = to;
    send(hello);
  }
  // Whether the process closes the link.
  bool is_refused() {
    pollfd watched{fd_.get(), POLLIN, 0};
    char byte = 0;
    return poll(&watched, 1, 30000) == 1 && recv(fd_.get(), &byte, 1, 0) <= 0;
  }

 private:
  OwnedFd fd_;
};

TEST(LinksTest, MessagesOfAnySizeArriveInOrder) {
  LinkedProcess one(0);
  LinkedProcess other(1);
  std::string large(5 << 20, 'x');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>('a' + i % 23);
  ASSERT_TRUE(one.links->send(other.name, 7, {text_bytes("first "), text_bytes("message")}).ok());
  ASSERT_TRUE(one.links->send(other.name, 8, {text_bytes(large)}).ok());
  ASSERT_TRUE(one.links->send(other.name, 9, {}).ok());
  ASSERT_TRUE(other.links->send(one.name, 10, {text_bytes("back")}).ok());
  const auto messages = other.received.wait_for(3);
  ASSERT_EQ(messages.size(), 3U);
  EXPECT_EQ(messages[0].text, "first message");
  EXPECT_EQ(messages[0].type, 7U);
  EXPECT_EQ(messages[1].text, large);
  EXPECT_EQ(messages[2].text, "");
  EXPECT_EQ(messages[2].from, 0);
  EXPECT_EQ(one.received.wait_for(1).at(0).text, "back");
}

TEST(LinksTest, CloseWritesWhatIsLeftAndIsNoLoss) {
  LinkedProcess one(0);
  LinkedProcess other(1);
  const std::string large(20 << 20, 'x');
  ASSERT_TRUE(other.links->send(one.name, 1, {text_bytes("hello")}).ok());
  ASSERT_EQ(one.received.wait_for(1).size(), 1U);
  ASSERT_TRUE(one.links->send(other.name, 1, {text_bytes(large)}).ok());
  one.links->close(kLinkCloseMs);
  EXPECT_EQ(other.received.wait_for(1).at(0).text, large);
  // A later message shows that the end of the link has been seen.
  LinkedProcess third(2);
  LinkStranger stranger(other.name);
  stranger.greet(5, other.name, kLinkRevision + 1);
  EXPECT_TRUE(stranger.is_refused());
  ASSERT_TRUE(third.links->send(other.name, 2, {text_bytes("third")}).ok());
  EXPECT_EQ(other.received.wait_for(2).at(1).text, "third");
  EXPECT_TRUE(other.received.lost_so_far().empty());
  EXPECT_TRUE(other.links->send(one.name, 1, {}).failed());
}

TEST(LinksTest, AProcessThatEndsWithoutCloseIsLost) {
  LinkedProcess one(0);
  {
    LinkStranger stranger(one.name);
    stranger.greet(4, one.name);
  }
  EXPECT_EQ(one.received.wait_for_loss(), std::vector<int>{4});
}

TEST(LinksTest, WhatIsNoLinkIsRefused) {
  LinkedProcess one(0);
  LinkStranger nonsense(one.name);
  nonsense.send(std::array<char, sizeof(LinkHello)>{});
  EXPECT_TRUE(nonsense.is_refused());
  LinkStranger other_revision(one.name);
  other_revision.greet(4, one.name, kLinkRevision + 1);
  EXPECT_TRUE(other_revision.is_refused());
  LinkStranger for_another(one.name);
  for_another.greet(4, linked_name(9));
  EXPECT_TRUE(for_another.is_refused());
  LinkStranger too_large(one.name);
  too_large.greet(4, one.name);
  too_large.send(LinkHeader{.type = 1, .size_bytes = LinkHeader::kMostBytes + 1});
  EXPECT_TRUE(too_large.is_refused());
  EXPECT_EQ(one.received.wait_for_loss(), std::vector<int>{4});
}

// A sender that claims much and sends little takes little memory, however often its link is read.
TEST(LinksTest, AMessageGrowsAsItsBytesCome) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const OwnedFd sender(ends[0]);
  IncomingLink link(ends[1]);
  const LinkHello hello;
  const LinkHeader header{.type = 1, .size_bytes = LinkHeader::kMostBytes};
  const std::vector<char> part(1000, 'x');
  ASSERT_EQ(write(sender.get(), &hello, sizeof hello), static_cast<ssize_t>(sizeof hello));
  ASSERT_EQ(link.read(), IncomingLink::Read::kHello);
  ASSERT_EQ(write(sender.get(), &header, sizeof header), static_cast<ssize_t>(sizeof header));
  for (int i = 0; i < 30; ++i) {
    ASSERT_EQ(write(sender.get(), part.data(), part.size()), static_cast<ssize_t>(part.size()));
    ASSERT_EQ(link.read(), IncomingLink::Read::kNothing);
  }
  EXPECT_LE(link.take_bytes().size(), std::size_t{1} << 20);
}

TEST(LinksTest, NamesAndAddressesAreChecked) {
  LinkedProcess one(0);
  EXPECT_EQ(one.links->send(linked_name(1), 1, {}).code(), base::StatusCode::kUnreachable);
  LinkMessages received;
  EXPECT_TRUE(Links::open(one.name, kLinkRevision, received).status().failed());
  EXPECT_NE(job_number("a"), job_number("b"));
  EXPECT_TRUE((ProcessName{job_number(""), 0, 0}).is_launcher());
}

}  // namespace
}  // namespace weft::machine
