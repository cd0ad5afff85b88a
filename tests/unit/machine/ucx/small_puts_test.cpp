#include "machine/ucx/messages/small_puts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "machine/ucx/messages/small_put_messages.h"
#include "tests/conformance/world.h"

namespace weft::machine::ucx {
namespace {

using base::StatusCode;
using conformance::CheckedOperation;
using conformance::World;
using memory::Buffer;
using memory::Kind;
using test_support::pattern;

using Request = SmallPutRequest;
using Answer = SmallPutAnswer;

// Three PEs over shared memory or TCP. PE 0 has sent something to PE 1, so its small puts there are messages.
class SmallPutsTest : public ::testing::TestWithParam<std::string> {
 protected:
  SmallPutsTest() : world_(GetParam(), 3) {
    for (const int pe : {1, 2}) {
      const RemoteMemory remote =
          world_.machine(pe).register_memory(world_.buffer(pe, Kind::kHost, 8)).value();
      CheckedOperation first;
      first.start(world_.machine(0).put_and_flush(pe, world_.buffer(0, Kind::kHost, 8), remote, 0, &first));
      EXPECT_TRUE(world_.finish(first));
    }
  }

  RemoteMemory publish(const Buffer& target) { return world_.machine(1).register_memory(target).value(); }
  void put(CheckedOperation& operation, const Buffer& local, const RemoteMemory& remote,
           std::size_t offset = 0) {
    operation.start(world_.machine(0).put_and_flush(1, local, remote, offset, &operation));
  }
  static constexpr std::size_t kHeaderBytes = sizeof(MessageWords);
  // A message of PE `from`, which may say anything.
  template <class Header>
  void forge(int from, int to, AmId id, const Header& header, std::size_t header_bytes = kHeaderBytes,
             const Buffer& payload = {}) {
    auto& machine = dynamic_cast<TransportMachine&>(world_.machine(from));
    std::vector<std::byte> bytes(header_bytes);
    const MessageWords words = header.pack();
    const auto all = std::as_bytes(std::span(words));
    std::ranges::copy(all.first(std::min(header_bytes, all.size())), bytes.begin());
    auto& sending = sendings_.emplace_back();
    sending.start(machine.transport_am_send(to, id, bytes, payload, &sending));
  }
  bool all_sent() { return world_.finish_all(sendings_); }

  // Of 256 messages, in shared memory.
  static bool has_small_queues() { return GetParam() == "ucx"; }

  std::deque<CheckedOperation> sendings_;
  World world_;
};

TEST_P(SmallPutsTest, SizesAroundTheLimit) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{8}, std::size_t{63}, SmallPuts::kMostBytes - 1,
                                 SmallPuts::kMostBytes, SmallPuts::kMostBytes + 1}) {
    Buffer target = world_.buffer(1, Kind::kHost, pattern(size + 16, 1));
    const RemoteMemory remote = publish(target);
    CheckedOperation operation;
    put(operation, world_.buffer(0, Kind::kHost, pattern(size, 2)), remote, 8);
    EXPECT_TRUE(operation.was_pending());
    ASSERT_TRUE(world_.finish(operation)) << size;
    ASSERT_TRUE(operation.status().ok()) << operation.status().to_string();
    auto expected = pattern(size + 16, 1);
    std::ranges::copy(pattern(size, 2), expected.begin() + 8);
    EXPECT_EQ(world_.read(1, target), expected) << size;
  }
}

// UCX would have written. So this shows too which sizes are messages.
TEST_P(SmallPutsTest, APutToMemoryThatIsNoLongerRegisteredIsRefused) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{8}, SmallPuts::kMostBytes}) {
    Buffer target = world_.buffer(1, Kind::kHost, pattern(size, 1));
    const RemoteMemory remote = publish(target);
    ASSERT_TRUE(world_.machine(1).deregister_memory(remote).ok());
    CheckedOperation operation;
    put(operation, world_.buffer(0, Kind::kHost, pattern(size, 2)), remote);
    ASSERT_TRUE(world_.finish(operation)) << size;
    EXPECT_EQ(operation.status().code(), StatusCode::kNotFound) << size;
    EXPECT_NE(operation.status().to_string().find("PE 1"), std::string::npos)
        << operation.status().to_string();
    EXPECT_EQ(world_.read(1, target), pattern(size, 1)) << size;
  }
}

// The owner remembers the region of the last put.
TEST_P(SmallPutsTest, APutToMemoryThatWasReachedBeforeIsRefused) {
  std::vector<Buffer> targets;
  std::vector<RemoteMemory> remotes;
  for (int i = 0; i < 2; ++i) {
    targets.push_back(world_.buffer(1, Kind::kHost, pattern(8, 1)));
    remotes.push_back(publish(targets.back()));
  }
  const auto try_put = [&](std::size_t which, int seed) {
    CheckedOperation operation;
    put(operation, world_.buffer(0, Kind::kHost, pattern(8, seed)), remotes[which]);
    EXPECT_TRUE(world_.finish(operation));
    return operation.status().code();
  };
  for (const std::size_t which : {0u, 1u, 0u, 1u}) ASSERT_EQ(try_put(which, 2), StatusCode::kOk);
  ASSERT_TRUE(world_.machine(1).deregister_memory(remotes[1]).ok());
  EXPECT_EQ(try_put(1, 3), StatusCode::kNotFound);
  EXPECT_EQ(try_put(0, 3), StatusCode::kOk);
  ASSERT_TRUE(world_.machine(1).deregister_memory(remotes[0]).ok());
  EXPECT_EQ(try_put(0, 4), StatusCode::kNotFound);
  EXPECT_EQ(world_.read(1, targets[0]), pattern(8, 3));
  EXPECT_EQ(world_.read(1, targets[1]), pattern(8, 2));
}

// What a message cannot name is left to UCX, which writes without a check of the region.
TEST_P(SmallPutsTest, APutThatNoMessageNamesIsUcxs) {
  for (const std::size_t beyond : {std::size_t{0}, std::size_t{1}}) {
    Buffer target = world_.buffer(1, Kind::kHost, pattern(8, 1));
    RemoteMemory renamed = publish(target);
    const std::uint64_t region = Request::mask(Request::kRegionBits) + beyond;
    std::memcpy(renamed.key.data(), &region, sizeof region);
    CheckedOperation operation;
    put(operation, world_.buffer(0, Kind::kHost, pattern(8, 2)), renamed);
    ASSERT_TRUE(world_.finish(operation));
    EXPECT_EQ(operation.status().code(), beyond == 0 ? StatusCode::kNotFound : StatusCode::kOk)
        << operation.status().to_string();
    EXPECT_EQ(world_.read(1, target), pattern(8, beyond == 0 ? 1 : 2));
  }
  Buffer target = world_.buffer(1, Kind::kHost, pattern(8, 1));
  RemoteMemory remote = publish(target);
  constexpr std::size_t kFar = std::size_t{1} << Request::kOffsetBits;
  remote.address -= kFar;
  remote.size_bytes += kFar;
  CheckedOperation operation;
  put(operation, world_.buffer(0, Kind::kHost, pattern(8, 2)), remote, kFar);
  ASSERT_TRUE(world_.finish(operation));
  EXPECT_TRUE(operation.status().ok()) << operation.status().to_string();
  EXPECT_EQ(world_.read(1, target), pattern(8, 2));
}

// Its message arrives inside the call that sends it.
TEST_P(SmallPutsTest, APutToTheOwnPe) {
  Buffer target = world_.buffer(1, Kind::kHost, 16);
  const RemoteMemory remote = publish(target);
  for (const int seed : {1, 2, 3}) {
    CheckedOperation operation;
    operation.start(world_.machine(1).put_and_flush(1, world_.buffer(1, Kind::kHost, pattern(16, seed)),
                                                    remote, 0, &operation));
    EXPECT_TRUE(operation.was_pending());
    ASSERT_TRUE(world_.finish(operation));
    EXPECT_TRUE(operation.status().ok()) << operation.status().to_string();
    EXPECT_EQ(world_.read(1, target), pattern(16, seed));
  }
  // UCX would have written.
  ASSERT_TRUE(world_.machine(1).deregister_memory(remote).ok());
  CheckedOperation refused;
  refused.start(
      world_.machine(1).put_and_flush(1, world_.buffer(1, Kind::kHost, pattern(16, 4)), remote, 0, &refused));
  ASSERT_TRUE(world_.finish(refused));
  EXPECT_EQ(refused.status().code(), StatusCode::kNotFound) << refused.status().to_string();
  EXPECT_EQ(world_.read(1, target), pattern(16, 3));
}

TEST_P(SmallPutsTest, AFlushWaitsForThePutsBeforeIt) {
  constexpr std::size_t kCount = 100;
  for (const bool is_of_one_pe : {true, false}) {
    Buffer target = world_.buffer(1, Kind::kHost, kCount * 8);
    const RemoteMemory remote = publish(target);
    const Buffer local = world_.buffer(0, Kind::kHost, pattern(kCount * 8, 3));
    std::deque<CheckedOperation> puts(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      const Buffer part{static_cast<std::byte*>(local.data) + i * 8, 8, {}, nullptr};
      put(puts[i], part, remote, i * 8);
    }
    std::vector<std::byte> found;
    CheckedOperation flush;
    flush.then = [&] { found = world_.read(1, target); };
    flush.start(is_of_one_pe ? world_.machine(0).flush(1, &flush) : world_.machine(0).flush(&flush));
    ASSERT_TRUE(world_.finish(flush));
    EXPECT_TRUE(flush.was_pending());
    EXPECT_TRUE(flush.status().ok()) << flush.status().to_string();
    EXPECT_EQ(found, pattern(kCount * 8, 3));
    EXPECT_TRUE(world_.finish_all(puts));
  }
}

// A put of a large buffer waits for its data with a flush, which begins while the refused put is in flight.
TEST_P(SmallPutsTest, ARefusedPutFailsAlone) {
  const RemoteMemory gone = publish(world_.buffer(1, Kind::kHost, 64));
  ASSERT_TRUE(world_.machine(1).deregister_memory(gone).ok());
  const Buffer local = world_.buffer(0, Kind::kHost, 8);
  Buffer target = world_.buffer(1, Kind::kHost, 1'000'000);
  const RemoteMemory remote = publish(target);
  std::deque<CheckedOperation> large(4);
  std::deque<CheckedOperation> refused(4);
  for (std::size_t i = 0; i < large.size(); ++i) {
    put(large[i], world_.buffer(0, Kind::kHost, pattern(target.size_bytes, 5)), remote);
    put(refused[i], local, gone);
  }
  CheckedOperation flush;
  flush.start(world_.machine(0).flush(1, &flush));
  CheckedOperation of_all;
  of_all.start(world_.machine(0).flush(&of_all));
  ASSERT_TRUE(world_.until([&] {
    return flush.done() && of_all.done() && std::ranges::all_of(large, &CheckedOperation::done) &&
           std::ranges::all_of(refused, &CheckedOperation::done);
  }));
  for (const CheckedOperation& put : refused) EXPECT_EQ(put.status().code(), StatusCode::kNotFound);
  for (const CheckedOperation& put : large) EXPECT_TRUE(put.status().ok()) << put.status().to_string();
  EXPECT_TRUE(flush.status().ok()) << flush.status().to_string();
  EXPECT_TRUE(of_all.status().ok()) << of_all.status().to_string();
  EXPECT_EQ(world_.read(1, target), pattern(target.size_bytes, 5));
}

TEST_P(SmallPutsTest, CompletionsMayStartMore) {
  Buffer target = world_.buffer(1, Kind::kHost, 64);
  const RemoteMemory remote = publish(target);
  const Buffer local = world_.buffer(0, Kind::kHost, pattern(64, 6));
  std::deque<CheckedOperation> more;
  const auto start_more = [&] {
    if (more.size() >= 60) return;
    const Buffer part{static_cast<std::byte*>(local.data) + more.size() % 8 * 8, 8, {}, nullptr};
    const std::size_t offset = more.size() % 8 * 8;
    put(more.emplace_back(), part, remote, offset);
    auto& flush = more.emplace_back();
    flush.start(world_.machine(0).flush(more.size() % 4 == 0 ? 1 : 2, &flush));
  };
  std::deque<CheckedOperation> first(6);
  for (std::size_t i = 0; i < first.size(); ++i) {
    first[i].then = start_more;
    if (i % 2 == 0) {
      put(first[i], local, remote);
    } else {
      first[i].start(world_.machine(0).flush(1, &first[i]));
    }
  }
  ASSERT_TRUE(world_.finish_all(first));
  EXPECT_EQ(more.size(), 2 * first.size());
  ASSERT_TRUE(world_.finish_all(more));
  for (const CheckedOperation& operation : more)
    EXPECT_TRUE(operation.status().ok()) << operation.status().to_string();
  EXPECT_EQ(world_.read(1, target), pattern(64, 6));
}

TEST_P(SmallPutsTest, WhatAPeerClaimsIsChecked) {
  constexpr std::size_t kMargin = 128;
  Buffer around = world_.buffer(1, Kind::kHost, pattern(64 + 2 * kMargin, 1));
  const RemoteMemory remote =
      publish({static_cast<std::byte*>(around.data) + kMargin, 64, around.place, nullptr});
  const std::uint64_t region = MemoryRegions::id_of(remote);
  // A region that holds more bytes than a small put has.
  Buffer large = world_.buffer(1, Kind::kHost, pattern(SmallPuts::kMostBytes + 8, 1));
  const std::uint64_t large_region = MemoryRegions::id_of(publish(large));
  const Buffer eight = world_.buffer(2, Kind::kHost, pattern(8, 2));
  constexpr std::uint64_t kHuge = Request::mask(Request::kOffsetBits);
  // PE 2 sees the answers itself. Each names its request by the number.
  std::map<std::uint32_t, StatusCode> codes;
  const auto on_answer = [](void* found, AmArrival& arrival) {
    MessageWords words;
    ASSERT_TRUE(read_words(arrival.header.data(), arrival.header.size(), words));
    const Answer answer = Answer::unpack(words);
    EXPECT_EQ(answer.source_pe, 1u);
    (*static_cast<std::map<std::uint32_t, StatusCode>*>(found))[answer.number] =
        static_cast<StatusCode>(answer.code);
  };
  auto& machine = dynamic_cast<TransportMachine&>(world_.machine(2));
  ASSERT_TRUE(machine.transport_set_am_handler(kSmallPutAnswerAmId, on_answer, &codes).ok());
  const std::map<std::uint32_t, StatusCode> expected = {
      {1, StatusCode::kNotFound},   {2, StatusCode::kNotFound},   {3, StatusCode::kOutOfRange},
      {4, StatusCode::kOutOfRange}, {5, StatusCode::kOutOfRange}, {6, StatusCode::kOutOfRange},
      {7, StatusCode::kCorrupt},    {20, StatusCode::kOk}};
  for (const Request& request :
       {Request{region + 1000, 0, 0, 2, 1}, Request{0, 0, 0, 2, 2}, Request{region, 57, 0, 2, 3},
        Request{region, 65, 0, 2, 4}, Request{region, kHuge, 0, 2, 5}, Request{region, kHuge - 7, 0, 2, 6}}) {
    forge(2, 1, kSmallPutAmId, request, kHeaderBytes, eight);
  }
  const Request too_large{large_region, 0, 0, 2, 7};
  forge(2, 1, kSmallPutAmId, too_large, kHeaderBytes,
        world_.buffer(2, Kind::kHost, SmallPuts::kMostBytes + 1));
  // These have no answer: no PE that could get it, and no header.
  for (const std::uint32_t source : {static_cast<std::uint32_t>(Request::mask(Request::kPeBits)), 3u}) {
    const Request request{region, 0, 0, source, 8};
    forge(2, 1, kSmallPutAmId, request, kHeaderBytes, eight);
  }
  const Request good{region, 56, 0, 2, 9};
  for (const std::size_t header_bytes : {std::size_t{0}, kHeaderBytes - 1, kHeaderBytes + 8}) {
    forge(2, 1, kSmallPutAmId, good, header_bytes, eight);
  }
  // The last one is right, so the others have been looked at when its answer is here.
  const Request last{region, 0, 0, 2, 20};
  forge(2, 1, kSmallPutAmId, last, kHeaderBytes, eight);
  ASSERT_TRUE(world_.until([&] { return codes.contains(20); }));
  EXPECT_EQ(codes, expected);
  EXPECT_TRUE(all_sent());
  auto contents = pattern(64 + 2 * kMargin, 1);
  std::ranges::copy(pattern(8, 2), contents.begin() + kMargin);
  EXPECT_EQ(world_.read(1, around), contents);
  EXPECT_EQ(world_.read(1, large), pattern(SmallPuts::kMostBytes + 8, 1));
}

TEST_P(SmallPutsTest, OnlyTheOwnerEndsAPut) {
  Buffer target = world_.buffer(1, Kind::kHost, 64);
  const RemoteMemory remote = publish(target);
  const Buffer local = world_.buffer(0, Kind::kHost, 8);
  // PE 0's puts so far, so that the numbers of the next ones are known. The slots are 0 and 1.
  std::uint32_t next_number = 0;
  const auto on_put = [](void* number, AmArrival& arrival) {
    MessageWords words;
    ASSERT_TRUE(read_words(arrival.header.data(), arrival.header.size(), words));
    *static_cast<std::uint32_t*>(number) = Request::unpack(words).number + 1;
  };
  // PE 2 looks at one instead of serving it.
  auto& looking = dynamic_cast<TransportMachine&>(world_.machine(2));
  ASSERT_TRUE(looking.transport_set_am_handler(kSmallPutAmId, on_put, &next_number).ok());
  const RemoteMemory unserved = world_.machine(2).register_memory(world_.buffer(2, Kind::kHost, 8)).value();
  CheckedOperation seen;
  seen.start(world_.machine(0).put_and_flush(2, local, unserved, 0, &seen));
  ASSERT_TRUE(world_.until([&] { return next_number != 0; }));

  std::deque<CheckedOperation> puts(2);
  for (CheckedOperation& operation : puts) put(operation, local, remote);
  // PE 1 makes no progress, so no answer of its own arrives.
  const auto without_owner = [&](auto condition) {
    for (int round = 0; round < 100'000 && !condition(); ++round) {
      world_.machine(0).progress();
      world_.machine(2).progress();
    }
    return condition();
  };
  const std::uint32_t number = next_number;
  // The wrong PE, slot or number.
  for (const Answer& answer :
       {Answer{1, 2, number, 0}, Answer{2, 2, number + 1, 0}, Answer{1000, 2, number, 0},
        Answer{~0u, 1, number, 0}, Answer{1, ~0u, number, 0}, Answer{1, 3, number, 0},
        Answer{1, 1, number + 1, 0}, Answer{2, 1, number, 0}, Answer{1, 1, number - 1, 0}}) {
    forge(2, 0, kSmallPutAnswerAmId, answer);
    forge(2, 0, kSmallPutAnswerAmId, answer, kHeaderBytes - 1);
  }
  EXPECT_FALSE(without_owner([&] { return puts[0].done() || puts[1].done(); }));
  // A code that is no outcome.
  forge(1, 0, kSmallPutAnswerAmId, Answer{1, 1, number, static_cast<std::uint32_t>(StatusCode::kPending)});
  forge(1, 0, kSmallPutAnswerAmId, Answer{2, 1, number + 1, 100'000});
  ASSERT_TRUE(without_owner([&] { return puts[0].done() && puts[1].done(); }));
  for (const CheckedOperation& operation : puts) {
    EXPECT_EQ(operation.status().code(), StatusCode::kCorrupt) << operation.status().to_string();
  }
  // The true answers come too late, and do not end the put that has the slot now.
  CheckedOperation next;
  std::vector<std::byte> found;
  next.then = [&] { found = world_.read(1, target, 8); };
  put(next, world_.buffer(0, Kind::kHost, pattern(8, 4)), remote);
  ASSERT_TRUE(world_.finish(next));
  EXPECT_EQ(found, pattern(8, 4));
  EXPECT_TRUE(all_sent());
  forge(2, 0, kSmallPutAnswerAmId, Answer{0, 2, number - 1, 0});
  EXPECT_TRUE(world_.finish(seen));
}

TEST_P(SmallPutsTest, AClosedMachineEndsItsPutsAndFlushes) {
  Buffer target = world_.buffer(1, Kind::kHost, 64);
  const RemoteMemory remote = publish(target);
  const Buffer local = world_.buffer(0, Kind::kHost, 8);
  std::deque<CheckedOperation> operations(3);
  put(operations[0], local, remote);
  operations[1].start(world_.machine(0).flush(1, &operations[1]));
  operations[2].start(world_.machine(0).flush(&operations[2]));
  world_.machine(0).close();
  for (const CheckedOperation& operation : operations) {
    EXPECT_EQ(operation.status().code(), StatusCode::kClosed) << operation.status().to_string();
  }
}

// PE 0 takes no messages, and PE 2 has sent it more than its queues hold, so the answers wait. PE 1 may close meanwhile.
TEST_P(SmallPutsTest, AnswersThatHaveToWait) {
  constexpr std::size_t kCount = 100;
  Buffer target = world_.buffer(1, Kind::kHost, kCount * 8);
  const RemoteMemory remote = publish(target);
  for (const bool closes : {false, true}) {
    const auto values = pattern(kCount * 8, closes ? 2 : 1);
    const Buffer local = world_.buffer(0, Kind::kHost, values);
    std::deque<CheckedOperation> puts(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      const Buffer part{static_cast<std::byte*>(local.data) + i * 8, 8, {}, nullptr};
      put(puts[i], part, remote, i * 8);
    }
    for (int i = 0; i < 1000; ++i) forge(2, 0, kSmallPutAnswerAmId, Answer{~0u, 2, 0, 0});
    if (has_small_queues()) {
      EXPECT_TRUE(sendings_.back().was_pending());
    }
    for (int round = 0; round < 10'000; ++round) world_.machine(1).progress();
    if (has_small_queues()) {
      EXPECT_EQ(world_.read(1, target), values) << "all are served";
    }
    EXPECT_FALSE(std::ranges::any_of(puts, &CheckedOperation::done));
    if (closes) {
      ::testing::internal::CaptureStderr();
      world_.machine(1).close();
      EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
      world_.machine(0).close();
      for (const CheckedOperation& put : puts) {
        const StatusCode code = put.status().code();
        EXPECT_TRUE(put.done() && (code == StatusCode::kOk || code == StatusCode::kClosed))
            << put.status().to_string();
      }
      EXPECT_EQ(puts.back().status().code(), StatusCode::kClosed);
    } else {
      ASSERT_TRUE(world_.finish_all(puts));
      for (const CheckedOperation& put : puts) EXPECT_TRUE(put.status().ok()) << put.status().to_string();
      EXPECT_EQ(world_.read(1, target), values);
      EXPECT_TRUE(all_sent());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, SmallPutsTest,
                         ::testing::Values(std::string("ucx"), std::string(conformance::kApart)),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace weft::machine::ucx
