#include "weft/chare/payload.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "tests/support/busy_stream.h"
#include "tests/support/device_memory.h"
#include "tests/support/in_process_job.h"
#include "tests/support/payload_ways.h"
#include "tests/unit/chare/calls/payload_values.h"

namespace weft::chare {
namespace {

using memory::Kind;
using memory::Place;
using testing::TestMemory;

struct Block : Chare<Block> {
  std::string collect(int number, Payload<double> doubles, std::string text, Payload<std::uint8_t> bytes) {
    std::vector<double> some = values_of(runtime(), doubles);
    std::vector<std::uint8_t> others = values_of(runtime(), bytes);
    place = doubles.place();
    return std::to_string(number) + text + std::to_string(std::accumulate(some.begin(), some.end(), 0.0)) +
           " " + std::to_string(std::accumulate(others.begin(), others.end(), 0)) + " " +
           std::to_string(some.size()) + " " + std::to_string(others.size());
  }
  int kind_of_place() { return static_cast<int>(place.kind); }

  void make_room(Place where, std::size_t num_elements) {
    room = std::make_unique<TestMemory>(runtime().memory(), where, num_elements * sizeof(double));
  }
  void halo(int side, Payload<double> data) {
    sides.push_back(side);
    suspended = num_suspended();
    sizes.push_back(data.size());
    in_room = room != nullptr && data.data() == room->buffer().data;
    landed = values_of(runtime(), data);
  }
  void post_halo(int side, ReceiveBuffer<double>& data) {
    if (side == 13) throw std::domain_error("no room on side 13");
    posted_sizes.push_back(data.size());
    place = data.place();
    if (room != nullptr) data.into(as<double>(room->buffer()), stream);
  }
  Task<double> halo_and_wait(Payload<double> data) {
    co_await runtime().sleep(0);
    std::vector<double> some = values_of(runtime(), data);
    if (some.empty()) throw std::domain_error("nothing came");
    co_return std::accumulate(some.begin(), some.end(), 0.0);
  }
  void nested(std::vector<double>, std::pair<int, Payload<double>>) {}
  void keep(Payload<double> data) { kept = std::move(data); }
  Task<double> send_on(int to) {
    co_return co_await proxy()[to].call<&Block::halo_and_wait>(std::move(kept));
  }
  Payload<double> lend() { return nocopy(as<double>(room->buffer())); }
  Task<Payload<double>> give() {
    co_await runtime().sleep(0);
    co_return std::move(kept);
  }
  Payload<double> refuse() { throw std::domain_error("nothing to lend"); }
  std::vector<double> last() { return landed; }
  std::vector<std::uint64_t> posted() { return posted_sizes; }
  bool is_in_room() { return in_room; }
  int suspended_then() { return static_cast<int>(suspended); }
  int suspended_now() { return static_cast<int>(num_suspended()); }

  using PostEntryMethods = weft::PostEntryMethods<weft::Post<&Block::halo, &Block::post_halo>>;

  std::unique_ptr<TestMemory> room;
  memory::StreamHandle stream = nullptr;
  std::vector<int> sides;
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint64_t> posted_sizes;
  std::vector<double> landed;
  Payload<double> kept;
  Place place;
  bool in_room = false;
  std::uint32_t suspended = 0;
};

// Element i is on PE i; everything is sent from PE 0.
struct PayloadTest : ::testing::TestWithParam<testing::Way> {
  std::string run_for_failure(const std::function<Task<>(Runtime&)>& main) { return job.run(main); }
  void run(const std::function<Task<>(Runtime&)>& main) { EXPECT_EQ(job.run(main), ""); }
  Array<Block> blocks() { return Array<Block>::create(job.runtime(0), Shape(3).with_map(Map::kRoundRobin)); }
  Place place() const { return {GetParam().kind, 0}; }
  TestMemory doubles(const std::vector<double>& values) { return doubles_in(job.memory(0), place(), values); }

  testing::InProcessJob job{3, GetParam().machine, testing::options_of(GetParam())};
};

INSTANTIATE_TEST_SUITE_P(Ways, PayloadTest, ::testing::ValuesIn(testing::kSomeWays), testing::name_of);

TEST_P(PayloadTest, SeveralTravelAmongOtherArguments) {
  TestMemory first = doubles({1, 2, 3.5});
  TestMemory second(job.memory(0), Place{}, 4, 1);
  run([&](Runtime&) -> Task<> {
    auto all = blocks();
    for (int to : {1, 0, 2}) {
      std::string text = co_await all[to].call<&Block::collect>(
          7, nocopy(as<double>(first.buffer())), " text ", nocopy(as<std::uint8_t>(second.buffer())));
      EXPECT_EQ(text, "7 text 6.500000 10 3 4");
      int kind = co_await all[to].call<&Block::kind_of_place>();
      EXPECT_EQ(kind, static_cast<int>(GetParam().kind));
    }
  });
}

TEST_P(PayloadTest, EmptyOnesTravelToo) {
  run([&](Runtime&) -> Task<> {
    auto all = blocks();
    for (int to : {1, 0}) {
      std::string text = co_await all[to].call<&Block::collect>(1, nocopy(std::span<double>()), "-",
                                                                nocopy(std::span<std::uint8_t>()));
      EXPECT_EQ(text, "1-0.000000 0 0 0");
      co_await all[to].send<&Block::halo>(1, nocopy(std::span<double>()));
    }
  });
}

TEST_P(PayloadTest, TheOperationOfASendTellsWhenTheMemoryMayChange) {
  for (std::size_t size : {std::size_t{1}, std::size_t{1000}, std::size_t{100'000}}) {
    testing::InProcessJob fresh(3, GetParam().machine, testing::options_of(GetParam()));
    TestMemory memory(fresh.memory(0), place(), size * sizeof(double));
    std::vector<double> sent(size);
    std::iota(sent.begin(), sent.end(), 1.0);
    auto* bytes = testing::view(fresh.memory(0), memory.buffer());
    EXPECT_EQ(fresh.run([&](Runtime& runtime) -> Task<> {
      auto all = Array<Block>::create(runtime, Shape(3).with_map(Map::kRoundRobin));
      for (int to : {1, 0}) {
        std::memcpy(bytes, sent.data(), size * sizeof(double));
        std::size_t moved = co_await all[to].send<&Block::halo>(4, nocopy(as<double>(memory.buffer())));
        EXPECT_EQ(moved, size * sizeof(double));
        std::memset(bytes, 0, size * sizeof(double));
        co_await runtime.quiescence();
        std::vector<double> arrived = co_await all[to].call<&Block::last>();
        EXPECT_EQ(arrived, sent);
      }
    }),
              "");
  }
}

TEST_P(PayloadTest, LandsWhereThePostEntryMethodSays) {
  TestMemory memory = doubles({1, 2, 3});
  run([&](Runtime&) -> Task<> {
    auto all = blocks();
    for (int to : {1, 0}) {
      for (Place where : {Place{}, Place{Kind::kEmulated, 1}}) {
        for (std::size_t capacity : {3u, 5u}) {
          co_await all[to].call<&Block::make_room>(where, capacity);
          co_await all[to].call<&Block::halo>(1, nocopy(as<double>(memory.buffer())));
          std::vector<double> arrived = co_await all[to].call<&Block::last>();
          EXPECT_EQ(arrived, (std::vector<double>{1, 2, 3}));
          bool in_room = co_await all[to].call<&Block::is_in_room>();
          EXPECT_TRUE(in_room);
        }
      }
      std::vector<std::uint64_t> posted = co_await all[to].call<&Block::posted>();
      EXPECT_EQ(posted, std::vector<std::uint64_t>(4, 3));
      int kind = co_await all[to].call<&Block::kind_of_place>();
      EXPECT_EQ(kind, static_cast<int>(GetParam().kind)) << "the post entry method is told the sender's kind";
    }
  });
}

TEST_P(PayloadTest, MemoryThatIsTooSmallIsRefused) {
  TestMemory memory = doubles({1, 2, 3});
  run([&](Runtime&) -> Task<> {
    auto all = blocks();
    for (int to : {1, 0}) {
      for (std::size_t capacity : {2u, 0u}) {
        co_await all[to].call<&Block::make_room>(Place{}, capacity);
        std::string said;
        try {
          co_await all[to].call<&Block::halo>(1, nocopy(as<double>(memory.buffer())));
        } catch (const RemoteError& error) {
          said = error.remote_message();
        }
        const std::string expected = "memory of " + std::to_string(8 * capacity) + " bytes on PE " +
                                     std::to_string(to) + " for a payload of 24 bytes";
        EXPECT_NE(said.find(expected), std::string::npos) << said;
        std::vector<double> arrived = co_await all[to].call<&Block::last>();
        EXPECT_TRUE(arrived.empty()) << "the entry method has run";
      }
    }
  });
}

TEST_P(PayloadTest, APostEntryMethodThatChoosesNothingLeavesItToTheRuntime) {
  TestMemory memory = doubles({5, 6});
  run([&](Runtime&) -> Task<> {
    auto all = blocks();
    co_await all[1].call<&Block::halo>(1, nocopy(as<double>(memory.buffer())));
    std::vector<double> arrived = co_await all[1].call<&Block::last>();
    EXPECT_EQ(arrived, (std::vector<double>{5, 6}));
  });
}

TEST_P(PayloadTest, WhatComesBeforeTheChareLandsWhereItSaysToo) {
  TestMemory memory(job.memory(1), place(), 24);
  Chares& chares = job.runtime(1).model<Chares>();
  // PE 0 has not made its first collection yet, and PE 1 sends to it.
  Collection& early = chares.collection(1);
  chares.know_shape(early, CollectionKind::kArray, Shape(3).with_map(Map::kRoundRobin));
  Operation sent = ElementProxy<Block>(early, 0).send<&Block::halo>(3, nocopy(as<double>(memory.buffer())));
  EXPECT_EQ(job.run_until([&] { return sent.is_done(); }), "");
  run([&](Runtime& runtime) -> Task<> {
    auto all = blocks();
    EXPECT_EQ(all.collection().id(), 1u);
    co_await runtime.quiescence();
    std::vector<std::uint64_t> posted = co_await all[0].call<&Block::posted>();
    EXPECT_EQ(posted, std::vector<std::uint64_t>(1, 3));
    int suspended = co_await all[0].call<&Block::suspended_now>();
    EXPECT_EQ(suspended, 0);
  });
}

TEST_P(PayloadTest, MayBeKeptAndSentOn) {
  TestMemory memory = doubles(std::vector<double>(20'000, 0.5));
  run([&](Runtime&) -> Task<> {
    auto all = blocks();
    co_await all[1].call<&Block::keep>(nocopy(as<double>(memory.buffer())));
    std::size_t moved = co_await all[1].send<&Block::keep>(nocopy(as<double>(memory.buffer())));
    EXPECT_EQ(moved, 160'000u);
    for (int to : {2, 1}) {
      co_await all[1].call<&Block::keep>(nocopy(as<double>(memory.buffer())));
      double sum = co_await all[1].call<&Block::send_on>(to);
      EXPECT_EQ(sum, 10'000.0);
    }
  });
}

TEST_P(PayloadTest, AMethodMayReturnOne) {
  TestMemory memory = doubles({1, 2, 3.5});
  run([&](Runtime& runtime) -> Task<> {
    auto all = blocks();
    for (int from : {1, 0}) {
      co_await all[from].call<&Block::make_room>(Place{GetParam().kind, 0}, std::size_t{3});
      co_await all[from].call<&Block::halo>(1, nocopy(as<double>(memory.buffer())));
      Future<Payload<double>> lending = all[from].call<&Block::lend>();
      const Payload<double> lent = co_await lending;
      EXPECT_EQ(values_of(runtime, lent), (std::vector<double>{1, 2, 3.5}));
      EXPECT_EQ(lent.place().kind, GetParam().kind);
      EXPECT_THROW(static_cast<void>(lending.get()), base::Error) << "it was taken";

      co_await all[from].call<&Block::keep>(nocopy(as<double>(memory.buffer())));
      const Payload<double> given = co_await all[from].call<&Block::give>();
      EXPECT_EQ(values_of(runtime, given), (std::vector<double>{1, 2, 3.5}));
      const Payload<double> empty = co_await all[from].call<&Block::give>();
      EXPECT_EQ(empty.size(), 0u);

      std::string caught;
      try {
        static_cast<void>(co_await all[from].call<&Block::refuse>());
      } catch (const base::RemoteError& error) {
        caught = error.remote_message();
      }
      EXPECT_EQ(caught, "nothing to lend");
      all[from].send<&Block::lend>();  // nobody wants the result
    }
  });
}

TEST_P(PayloadTest, AReturnedOneMayBeSentOn) {
  TestMemory memory = doubles({4, 5});
  run([&](Runtime&) -> Task<> {
    auto all = blocks();
    co_await all[1].call<&Block::keep>(nocopy(as<double>(memory.buffer())));
    Payload<double> given = co_await all[1].call<&Block::give>();
    const double sum = co_await all[2].call<&Block::halo_and_wait>(std::move(given));
    EXPECT_EQ(sum, 9.0);
  });
}

TEST_P(PayloadTest, AChareStaysWhileSomethingLandsInItsMemory) {
  TestMemory memory = doubles({1});
  run([&](Runtime& runtime) -> Task<> {
    auto all = blocks();
    Block* block = nullptr;
    co_await all[0].call<&Block::make_room>(Place{Kind::kEmulated, 0}, std::size_t{1});
    block = all.local(0);
    bool done = false;
    block->stream = testing::stream_with(testing::emulated(runtime.memory()), 0, testing::until(done));
    Future<> ended = all[0].call<&Block::halo>(1, nocopy(as<double>(memory.buffer())));
    while (block->posted_sizes.empty()) co_await runtime.sleep(0);
    for (int i = 0; i < 10; ++i) co_await runtime.sleep(0);
    EXPECT_FALSE(ended.is_ready()) << "a kernel still uses the room";
    EXPECT_EQ(block->num_suspended(), 1u);
    done = true;
    co_await ended;
    EXPECT_EQ(block->suspended, 0u);
    EXPECT_EQ(block->num_suspended(), 0u);
  });
}

TEST_P(PayloadTest, ExceptionsOfEntryMethodsTravelAndThoseOfPostEntryMethodsToo) {
  TestMemory memory = doubles({1, 2});
  run([&](Runtime&) -> Task<> {
    auto all = blocks();
    for (int to : {1, 0}) {
      std::string said;
      std::string traceback;
      try {
        co_await all[to].call<&Block::halo>(13, nocopy(as<double>(memory.buffer())));
      } catch (const RemoteError& error) {
        said = error.remote_message();
        traceback = error.traceback();
      }
      EXPECT_EQ(said, "no room on side 13");
      EXPECT_NE(traceback.find("post_halo on PE " + std::to_string(to)), std::string::npos) << traceback;
      said.clear();
      try {
        co_await all[to].call<&Block::halo_and_wait>(nocopy(std::span<double>()));
      } catch (const RemoteError& error) {
        said = error.remote_message();
      }
      EXPECT_EQ(said, "nothing came");
      int suspended = co_await all[to].call<&Block::suspended_now>();
      EXPECT_EQ(suspended, 0);
    }
  });
}

TEST_P(PayloadTest, AnUnawaitedExceptionOfAPostEntryMethodEndsTheJobAndNamesIt) {
  TestMemory memory = doubles({1, 2});
  std::string failure = job.run([&](Runtime& runtime) -> Task<> {
    blocks()[1].send<&Block::halo>(13, nocopy(as<double>(memory.buffer()))).detach();
    co_await runtime.sleep(100);
  });
  EXPECT_NE(failure.find("no room on side 13"), std::string::npos) << failure;
  EXPECT_NE(failure.find("post_halo on PE 1"), std::string::npos) << failure;
}

TEST_P(PayloadTest, HostMemoryHasNoStream) {
  std::vector<double> values{1, 2};
  run([&](Runtime& runtime) -> Task<> {
    auto all = blocks();
    int context = 0;
    std::string said;
    try {
      all[1].send<&Block::halo>(1, nocopy(values, &context)).detach();
    } catch (const Error& error) {
      said = error.what();
    }
    EXPECT_NE(said.find("only device memory has one"), std::string::npos) << said;
    co_await runtime.quiescence();
  });
}

// Also where another argument travels out of band.
TEST_P(PayloadTest, InsideAnotherValueItIsRefused) {
  TestMemory memory = doubles({1, 2});
  run([&](Runtime&) -> Task<> {
    std::string said;
    try {
      co_await blocks()[1].call<&Block::nested>(std::vector<double>(9000),
                                                std::pair(1, nocopy(as<double>(memory.buffer()))));
    } catch (const Error& error) {
      said = error.what();
    }
    EXPECT_NE(said.find("not inside another value"), std::string::npos) << said;
  });
}

// Copies of device memory can fail.
struct DevicePayloadTest : PayloadTest {};

INSTANTIATE_TEST_SUITE_P(Ways, DevicePayloadTest, ::testing::ValuesIn(testing::kDeviceWays),
                         testing::name_of);

TEST_P(DevicePayloadTest, ACallWhosePayloadCannotBeSentThrowsThat) {
  TestMemory memory = doubles({1, 2});
  run([&](Runtime& runtime) -> Task<> {
    auto all = blocks();
    for (int to : {1, 0}) {
      memory::EmulatedFaults faults;
      faults.fail_copy = 1;
      testing::emulated(runtime.memory()).set_faults(faults);
      std::string said;
      try {
        co_await all[to].call<&Block::halo>(1, nocopy(as<double>(memory.buffer())));
      } catch (const Error& error) {
        said = error.what();
      }
      EXPECT_NE(said, "");
      testing::emulated(runtime.memory()).set_faults({});
      co_await all[to].call<&Block::halo>(1, nocopy(as<double>(memory.buffer())));
      co_await runtime.quiescence();
    }
  });
}

// Bytes from a peer that no proxy made.
struct DamagedPayloadTest : ::testing::Test {
  testing::InProcessJob job{2};

  // Calls halo of element 1 with `which` for its payload and `attached_bytes` beside it.
  std::string deliver(std::uint32_t which, std::size_t attached_bytes, bool posted) {
    auto all = Array<Block>::create(job.runtime(0), Shape(2).with_map(Map::kRoundRobin));
    std::vector<std::byte> bytes(attached_bytes);
    Chares& chares = all.collection().chares();
    std::uint32_t entry = posted ? EntryMethod<Block, &Block::halo>::info().id
                                 : EntryMethod<Block, &Block::halo_and_wait>::info().id;
    EntryHeader header{all.collection().id(), 1, entry, 1, {}};
    runtime::MessagePtr message = chares.make_entry_message(header, posted ? 8 : 4);
    Pup p = Pup::packer(message->payload() + sizeof header, posted ? 8 : 4);
    if (posted) p | 1;
    p | which;
    if (attached_bytes > 0) {
      message->attach(runtime::Attachment(memory::Buffer{bytes.data(), bytes.size(), {}, nullptr}));
    }
    chares.send_entry(all.collection(), 1, std::move(message));
    for (int i = 0; i < 1000 && job.runtime(1).failure().empty(); ++i) {
      job.runtime(0).step();
      job.runtime(1).step();
    }
    return job.runtime(1).failure();
  }
};

TEST_F(DamagedPayloadTest, ABufferThatDidNotComeEndsTheJob) {
  EXPECT_NE(deliver(0, 0, false).find("no buffer numbered 0 came with it"), std::string::npos);
}
TEST_F(DamagedPayloadTest, ABufferThatDidNotComeEndsTheJobBeforeItsPosting) {
  EXPECT_NE(deliver(9, 8, true).find("no buffer numbered 9 comes with it"), std::string::npos);
}
TEST_F(DamagedPayloadTest, PartsOfElementsEndTheJob) {
  EXPECT_NE(deliver(0, 12, false).find("12 bytes are no whole number of elements of 8 bytes"),
            std::string::npos);
}
TEST_F(DamagedPayloadTest, PartsOfElementsEndTheJobBeforeTheirPosting) {
  EXPECT_NE(deliver(0, 12, true).find("12 bytes are no whole number of elements of 8 bytes"),
            std::string::npos);
}

// The outcome would go to a PE that does not exist, or be given up in a coroutine that has ended.
TEST(DamagedEntry, AReplyToNoPeEndsTheJob) {
  for (const ReplyTo& reply : {ReplyTo{ReplyTo::Kind::kFuture, 99, 1}, ReplyTo{ReplyTo::Kind::kGather, 99, 1},
                               ReplyTo{static_cast<ReplyTo::Kind>(7), 0, 1}}) {
    testing::InProcessJob job(2);
    auto all = Array<Block>::create(job.runtime(0), Shape(2).with_map(Map::kRoundRobin));
    Chares& chares = all.collection().chares();
    const EntryHeader header{all.collection().id(), 1, EntryMethod<Block, &Block::suspended_now>::info().id,
                             0, reply};
    chares.send_entry(all.collection(), 1, chares.make_entry_message(header, 0));
    const std::string failure = job.run_until([] { return false; });
    EXPECT_NE(failure.find("does not fit that collection"), std::string::npos) << failure;
  }
}

}  // namespace
}  // namespace weft::chare
