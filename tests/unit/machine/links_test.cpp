#include "machine/links/links.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/link_stranger.h"

namespace weft::machine {
namespace {

using testing::LinkStranger;

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
  void gone(const ProcessName& from, bool is_closed) override {
    const std::lock_guard lock(mutex_);
    (is_closed ? closed_ : lost_).push_back(from.rank);
    changed_.notify_all();
  }
  void failed(const std::string& reason) override { ADD_FAILURE() << reason; }

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
  std::vector<int> wait_for_close() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(30), [&] { return !closed_.empty(); });
    return closed_;
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
  std::vector<int> closed_;
};

struct LinkedProcess {
  explicit LinkedProcess(int rank)
      : name(linked_name(rank)), links(Links::open(name, kLinkRevision, received).value()) {}
  ProcessName name;
  LinkMessages received;
  std::unique_ptr<Links> links;
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
  stranger.greet(linked_name(5), other.name, kLinkRevision + 1);
  EXPECT_TRUE(stranger.is_refused());
  ASSERT_TRUE(third.links->send(other.name, 2, {text_bytes("third")}).ok());
  EXPECT_EQ(other.received.wait_for(2).at(1).text, "third");
  EXPECT_TRUE(other.received.lost_so_far().empty());
  EXPECT_TRUE(other.links->send(one.name, 1, {}).failed());
}

// The process has closed its end of our link long before all is read that it has sent.
TEST(LinksTest, AProcessThatLeavesBehindManyMessagesIsNotLost) {
  LinkedProcess one(0);
  const ProcessName name = linked_name(6);
  auto listener = std::make_unique<testing::DeafProcess>(name);
  ASSERT_TRUE(one.links->send(name, 1, {text_bytes("a link")}).ok());
  LinkStranger stranger(one.name);
  stranger.greet(name, one.name, kLinkRevision);
  listener.reset();
  constexpr std::size_t kMany = 5000;
  for (std::size_t i = 0; i < kMany; ++i) stranger.send_message(1, text_bytes("x"));
  stranger.send_message(LinkHeader::kGoodbye, {});
  EXPECT_EQ(one.received.wait_for(kMany).size(), kMany);
  EXPECT_EQ(one.received.wait_for_close(), std::vector<int>{6});
  EXPECT_TRUE(one.received.lost_so_far().empty());
}

std::size_t count_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

TEST(LinksTest, ProcessesThatHaveLeftKeepNoDescriptors) {
  LinkedProcess one(0);
  std::size_t before = 0;
  for (int i = 1; i < 20; ++i) {
    LinkedProcess other(i);
    ASSERT_TRUE(one.links->send(other.name, 1, {text_bytes("there")}).ok());
    ASSERT_TRUE(other.links->send(one.name, 1, {text_bytes("back")}).ok());
    ASSERT_EQ(other.received.wait_for(1).size(), 1U);
    ASSERT_EQ(one.received.wait_for(static_cast<std::size_t>(i)).size(), static_cast<std::size_t>(i));
    other.links->close(kLinkCloseMs);
    // A send finds the link closed, or closes it.
    while (one.links->send(other.name, 1, {}).code() != base::StatusCode::kClosed) std::this_thread::yield();
    if (i == 1) before = count_descriptors();
  }
  // An incoming link may be about to be closed.
  EXPECT_LE(count_descriptors(), before + 3);
}

// A process that a PE forks does not keep its links open.
TEST(LinksTest, AForkedProcessKeepsNoLinks) {
  LinkedProcess one(0);
  LinkedProcess other(1);
  ASSERT_TRUE(one.links->send(other.name, 1, {text_bytes("there")}).ok());
  ASSERT_TRUE(other.links->send(one.name, 1, {text_bytes("back")}).ok());
  ASSERT_EQ(one.received.wait_for(1).size(), 1U);
  ASSERT_EQ(other.received.wait_for(1).size(), 1U);
  const pid_t child = fork();
  if (child == 0) {
    const std::size_t before = count_descriptors();
    close_links_after_fork();
    _exit(before == count_descriptors() + 6 ? 0 : 1);  // two listeners, and both ends of two links
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(one.links->send(other.name, 1, {text_bytes("still there")}).ok());
  EXPECT_EQ(other.received.wait_for(2).at(1).text, "still there");
}

TEST(LinksTest, AProcessThatEndsWithoutCloseIsLost) {
  LinkedProcess one(0);
  {
    LinkStranger stranger(one.name);
    stranger.greet(linked_name(4), one.name, kLinkRevision);
  }
  EXPECT_EQ(one.received.wait_for_loss(), std::vector<int>{4});
}

TEST(LinksTest, WhatIsNoLinkIsRefused) {
  LinkedProcess one(0);
  LinkStranger nonsense(one.name);
  nonsense.send(std::array<char, sizeof(LinkHello)>{});
  EXPECT_TRUE(nonsense.is_refused());
  LinkStranger other_revision(one.name);
  other_revision.greet(linked_name(4), one.name, kLinkRevision + 1);
  EXPECT_TRUE(other_revision.is_refused());
  LinkStranger for_another(one.name);
  for_another.greet(linked_name(4), linked_name(9), kLinkRevision);
  EXPECT_TRUE(for_another.is_refused());
  LinkStranger too_large(one.name);
  too_large.greet(linked_name(4), one.name, kLinkRevision);
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

// The stream of some messages behind a hello, as a sender writes it.
class RandomStream {
 public:
  explicit RandomStream(std::mt19937& random) : random_(random) {
    LinkHello hello;
    add(std::as_bytes(std::span(&hello, 1)));
    const std::size_t count = random() % 20;
    for (std::size_t i = 0; i < count; ++i) {
      std::string text(random() % (random() % 4 == 0 ? 3000 : 8), 'x');
      for (char& c : text) c = static_cast<char>(random());
      const LinkHeader header{.type = static_cast<std::uint32_t>(random()), .size_bytes = text.size()};
      add(std::as_bytes(std::span(&header, 1)));
      add(text_bytes(text));
      messages.emplace_back(header.type, text);
    }
  }
  void damage() {
    for (std::size_t i = 0; i <= random_() % 4; ++i)
      bytes[random_() % bytes.size()] = static_cast<std::byte>(random_());
  }

  std::vector<std::byte> bytes;
  std::vector<std::pair<std::uint32_t, std::string>> messages;

 private:
  void add(std::span<const std::byte> more) { bytes.insert(bytes.end(), more.begin(), more.end()); }
  std::mt19937& random_;
};

// Writes the stream in random pieces, and reads after each. Returns the messages; nothing if the link is ended.
std::optional<std::vector<std::pair<std::uint32_t, std::string>>> read_in_pieces(const RandomStream& stream,
                                                                                 std::mt19937& random) {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const OwnedFd sender(ends[0]);
  IncomingLink link(ends[1]);
  std::vector<std::pair<std::uint32_t, std::string>> messages;
  for (std::size_t offset = 0; offset < stream.bytes.size();) {
    const std::size_t size = std::min<std::size_t>(1 + random() % 700, stream.bytes.size() - offset);
    EXPECT_EQ(write(sender.get(), stream.bytes.data() + offset, size), static_cast<ssize_t>(size));
    offset += size;
    while (true) {
      const IncomingLink::Read got = link.read();
      if (got == IncomingLink::Read::kNothing) break;
      if (got == IncomingLink::Read::kEnd) return std::nullopt;
      if (got == IncomingLink::Read::kHello) continue;
      const std::vector<std::byte> bytes = link.take_bytes();
      messages.emplace_back(link.type(),
                            std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }
  }
  return messages;
}

TEST(LinksTest, AStreamInAnyPiecesGivesItsMessages) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const RandomStream stream(random);
    EXPECT_EQ(read_in_pieces(stream, random), stream.messages) << "stream " << i;
  }
}

// Whatever the bytes are, reading ends, and what it gives has come.
TEST(LinksTest, ADamagedStreamGivesNoMoreThanItHas) {
  std::mt19937 random(11);
  for (int i = 0; i < 1000; ++i) {
    RandomStream stream(random);
    stream.damage();
    std::size_t total = 0;
    for (const auto& [type, text] :
         read_in_pieces(stream, random).value_or(std::vector<std::pair<std::uint32_t, std::string>>()))
      total += sizeof(LinkHeader) + text.size();
    EXPECT_LE(total, stream.bytes.size()) << "stream " << i;
  }
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
