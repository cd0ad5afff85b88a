// Payloads in calls to whole collections.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/device_memory.h"
#include "tests/support/in_process_job.h"
#include "tests/support/payload_ways.h"
#include "tests/unit/chare/calls/payload_values.h"

namespace weft::chare {
namespace {

using memory::Kind;
using memory::Place;
using testing::TestMemory;

struct Cell : Chare<Cell> {
  std::string collect(int number, Payload<double> doubles, std::string text, Payload<std::uint8_t> bytes) {
    std::vector<double> some = values_of(runtime(), doubles);
    std::vector<std::uint8_t> others = values_of(runtime(), bytes);
    return std::to_string(number) + text + std::to_string(std::accumulate(some.begin(), some.end(), 0.0)) +
           " " + std::to_string(std::accumulate(others.begin(), others.end(), 0)) + " " +
           std::to_string(some.size()) + " " + std::to_string(others.size());
  }
  // Writes what it got while the others still read theirs.
  Task<double> add_and_change(Payload<double> data) {
    kind = data.place().kind;
    double sum = 0;
    for (double& value : reachable(runtime(), data)) {
      sum += value;
      value = -1;
      if (data.size() < 10) co_await runtime().sleep(0);
    }
    if (data.size() == 0) throw std::domain_error("nothing came to " + std::to_string(linear_index()));
    co_return sum;
  }
  int kind_of_place() { return static_cast<int>(kind); }

  void make_room(Place where, std::size_t num_elements) {
    room = std::make_unique<TestMemory>(runtime().memory(), where, num_elements * sizeof(double));
  }
  int halo(int side, Payload<double> data) {
    in_room = room != nullptr && data.data() == room->buffer().data;
    landed = values_of(runtime(), data);
    return side + static_cast<int>(linear_index());
  }
  void post_halo(int side, ReceiveBuffer<double>& data) {
    ++num_posted;
    kind = data.place().kind;
    if (side == 100 + static_cast<int>(linear_index())) throw std::domain_error("no room on that side");
    if (room != nullptr) data.into(as<double>(room->buffer()));
  }
  void keep(Payload<double> data) {
    landed = values_of(runtime(), data);
    kept = std::move(data);
  }
  std::vector<double> last() { return landed; }
  int times_posted() { return num_posted; }
  bool is_in_room() { return in_room; }
  int suspended_now() { return static_cast<int>(num_suspended()); }

  using PostEntryMethods = weft::PostEntryMethods<weft::Post<&Cell::halo, &Cell::post_halo>>;

  std::unique_ptr<TestMemory> room;
  std::vector<double> landed;
  Payload<double> kept;
  Kind kind = Kind::kHost;
  int num_posted = 0;
  bool in_room = false;
};

struct PayloadBroadcastTest : ::testing::TestWithParam<testing::Way> {
  static Place place() { return {GetParam().kind, 0}; }

  // A job of its own, and memory of PE 0.
  struct Job : testing::InProcessJob {
    explicit Job(int num_pes, int pe_without_devices = -1)
        : InProcessJob(num_pes, GetParam().machine, testing::options_of(GetParam()),
                       machine::StagingMode::kDevice, pe_without_devices) {}
    TestMemory doubles(const std::vector<double>& values, int pe = 0) {
      return doubles_in(memory(pe), place(), values);
    }
  };

  // With several elements on each PE, on some PEs only, and one for each PE.
  static void in_every_size(const std::function<Task<>(Runtime&, Job&, CollectionProxy<Cell>)>& body) {
    for (int num_pes : {1, 2, 3, 7, 11}) {
      Job job(num_pes);
      EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
        co_await body(runtime, job, Array<Cell>::create(runtime, 2 * num_pes + 1));
        co_await body(runtime, job, Array<Cell>::create(runtime, Shape(2).with_map(Map::kRoundRobin)));
        co_await body(runtime, job, Group<Cell>::create(runtime));
        co_await body(runtime, job, Singleton<Cell>::create(runtime, num_pes - 1));
      }),
                "")
          << num_pes << " PEs";
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, PayloadBroadcastTest, ::testing::ValuesIn(testing::kSomeWays),
                         testing::name_of);

TEST_P(PayloadBroadcastTest, EveryElementGetsItsOwn) {
  in_every_size([](Runtime&, Job& job, CollectionProxy<Cell> all) -> Task<> {
    for (std::size_t size : {std::size_t{3}, std::size_t{30'000}}) {
      TestMemory memory = job.doubles(std::vector<double>(size, 0.5));
      for (int i = 0; i < 2; ++i) {
        std::vector<double> sums =
            co_await all.call<&Cell::add_and_change>(nocopy(as<double>(memory.buffer())));
        EXPECT_EQ(sums, std::vector<double>(all.shape().size(), static_cast<double>(size) / 2));
      }
    }
    std::vector<int> kinds = co_await all.call<&Cell::kind_of_place>();
    EXPECT_EQ(kinds, std::vector<int>(all.shape().size(), static_cast<int>(GetParam().kind)));
  });
}

TEST_P(PayloadBroadcastTest, TheResultOfACallIsThereWhenTheMemoryMayChange) {
  Job job(3);
  Runtime& runtime = job.runtime(0);
  auto alone = Singleton<Cell>::create(runtime, 0);
  TestMemory memory = job.doubles(std::vector<double>(500'000, 0.5));
  auto sums = alone.call<&Cell::add_and_change>(nocopy(as<double>(memory.buffer())));
  for (int i = 0; i < 1000; ++i) runtime.step();
  EXPECT_FALSE(sums.is_ready()) << "it has not left for the PEs that have no element";
  EXPECT_EQ(job.run_until([&] { return sums.is_ready(); }), "");
  EXPECT_EQ(sums.get(), std::vector<double>{250'000});
}

TEST_P(PayloadBroadcastTest, SeveralTravelAmongOtherArguments) {
  in_every_size([](Runtime&, Job& job, CollectionProxy<Cell> all) -> Task<> {
    TestMemory first = job.doubles({1, 2, 3.5});
    TestMemory second(job.memory(0), Place{}, 4, 1);
    std::vector<std::string> texts = co_await all.call<&Cell::collect>(
        7, nocopy(as<double>(first.buffer())), " text ", nocopy(as<std::uint8_t>(second.buffer())));
    EXPECT_EQ(texts, std::vector<std::string>(all.shape().size(), "7 text 6.500000 10 3 4"));
    texts = co_await all.call<&Cell::collect>(1, nocopy(std::span<double>()), "-",
                                              nocopy(std::span<std::uint8_t>()));
    EXPECT_EQ(texts, std::vector<std::string>(all.shape().size(), "1-0.000000 0 0 0"));
  });
}

TEST_P(PayloadBroadcastTest, TheOperationOfASendTellsWhenTheMemoryMayChange) {
  in_every_size([](Runtime& runtime, Job& job, CollectionProxy<Cell> all) -> Task<> {
    for (std::size_t size : {std::size_t{1}, std::size_t{1000}, std::size_t{50'000}}) {
      std::vector<double> sent(size);
      std::iota(sent.begin(), sent.end(), 1.0);
      TestMemory memory = job.doubles(sent);
      std::size_t moved = co_await all.send<&Cell::keep>(nocopy(as<double>(memory.buffer())));
      EXPECT_EQ(moved, size * sizeof(double));
      std::memset(testing::view(job.memory(0), memory.buffer()), 0, size * sizeof(double));
      co_await runtime.quiescence();
      std::vector<std::vector<double>> arrived = co_await all.call<&Cell::last>();
      EXPECT_EQ(arrived, std::vector<std::vector<double>>(all.shape().size(), sent));
    }
  });
}

TEST_P(PayloadBroadcastTest, LandsWhereThePostEntryMethodOfEachElementSays) {
  in_every_size([](Runtime&, Job& job, CollectionProxy<Cell> all) -> Task<> {
    TestMemory memory = job.doubles({1, 2, 3});
    const std::size_t count = all.shape().size();
    std::vector<int> expected(count);
    std::iota(expected.begin(), expected.end(), 5);
    for (Place where : {Place{}, Place{Kind::kEmulated, 1}}) {
      for (std::size_t capacity : {3u, 5u}) {
        co_await all.call<&Cell::make_room>(where, capacity);
        std::vector<int> results = co_await all.call<&Cell::halo>(5, nocopy(as<double>(memory.buffer())));
        EXPECT_EQ(results, expected);
        std::vector<std::vector<double>> arrived = co_await all.call<&Cell::last>();
        EXPECT_EQ(arrived, std::vector<std::vector<double>>(count, {1, 2, 3}));
        std::vector<bool> in_room = co_await all.call<&Cell::is_in_room>();
        EXPECT_EQ(in_room, std::vector<bool>(count, true));
      }
    }
    std::vector<int> posted = co_await all.call<&Cell::times_posted>();
    EXPECT_EQ(posted, std::vector<int>(count, 4));
    std::vector<int> kinds = co_await all.call<&Cell::kind_of_place>();
    EXPECT_EQ(kinds, std::vector<int>(count, static_cast<int>(GetParam().kind)));
    std::vector<int> suspended = co_await all.call<&Cell::suspended_now>();
    EXPECT_EQ(suspended, std::vector<int>(count, 0));
  });
}

TEST_P(PayloadBroadcastTest, ExceptionsOfEntryMethodsTravelAndThoseOfPostEntryMethodsToo) {
  in_every_size([](Runtime& runtime, Job& job, CollectionProxy<Cell> all) -> Task<> {
    TestMemory memory = job.doubles({1, 2});
    auto last = static_cast<int>(all.shape().size()) - 1;
    std::string said;
    std::string traceback;
    try {
      co_await all.call<&Cell::halo>(100 + last, nocopy(as<double>(memory.buffer())));
    } catch (const RemoteError& error) {
      said = error.remote_message();
      traceback = error.traceback();
    }
    EXPECT_EQ(said, "no room on that side");
    EXPECT_NE(traceback.find("post_halo"), std::string::npos) << traceback;
    said.clear();
    try {
      co_await all.call<&Cell::add_and_change>(nocopy(std::span<double>()));
    } catch (const RemoteError& error) {
      said = error.remote_message();
    }
    EXPECT_EQ(said.find("nothing came to "), 0U) << said;
    // The caller has heard of the first exception: the buffers may still land elsewhere.
    co_await runtime.quiescence();
    std::vector<int> suspended = co_await all.call<&Cell::suspended_now>();
    EXPECT_EQ(suspended, std::vector<int>(all.shape().size(), 0));
  });
}

TEST_P(PayloadBroadcastTest, AnUnawaitedExceptionOfAPostEntryMethodEndsTheJobAndNamesIt) {
  Job job(3);
  TestMemory memory = job.doubles({1, 2});
  std::string failure = job.run([&](Runtime& runtime) -> Task<> {
    Group<Cell>::create(runtime).send<&Cell::halo>(102, nocopy(as<double>(memory.buffer()))).detach();
    co_await runtime.sleep(100);
  });
  EXPECT_NE(failure.find("no room on that side"), std::string::npos) << failure;
  EXPECT_NE(failure.find("post_halo on PE 2"), std::string::npos) << failure;
}

// PE 1 calls a collection that no PE has made yet, itself included.
struct EarlyBroadcast {
  explicit EarlyBroadcast(testing::InProcessJob& job) : all(job.runtime(1).model<Chares>().collection(1)) {
    job.runtime(1).model<Chares>().know_shape(all, CollectionKind::kArray, shape());
  }
  static Shape shape() { return Shape(5).with_map(Map::kRoundRobin); }
  Collection& all;
};

TEST_P(PayloadBroadcastTest, WhatComesBeforeTheCollectionWaitsForIt) {
  for (bool posts : {true, false}) {
    Job job(3);
    TestMemory memory = job.doubles({1, 2, 3}, 1);
    CollectionProxy<Cell> early(EarlyBroadcast(job).all);
    Operation sent = posts ? early.send<&Cell::halo>(3, nocopy(as<double>(memory.buffer())))
                           : early.send<&Cell::keep>(nocopy(as<double>(memory.buffer())));
    for (int i = 0; i < 1000; ++i) {
      for (int pe = 0; pe < 3; ++pe) job.runtime(pe).step();
    }
    EXPECT_FALSE(sent.is_done()) << "its own elements are to come";
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      auto all = Array<Cell>::create(runtime, EarlyBroadcast::shape());
      EXPECT_EQ(all.collection().id(), 1u);
      co_await runtime.quiescence();
      std::vector<int> posted = co_await all.call<&Cell::times_posted>();
      EXPECT_EQ(posted, std::vector<int>(5, posts ? 1 : 0));
      std::vector<std::vector<double>> arrived = co_await all.call<&Cell::last>();
      EXPECT_EQ(arrived, std::vector<std::vector<double>>(5, {1, 2, 3}));
      std::vector<int> suspended = co_await all.call<&Cell::suspended_now>();
      EXPECT_EQ(suspended, std::vector<int>(5, 0));
    }),
              "");
    EXPECT_TRUE(sent.is_done());
  }
}

TEST_P(PayloadBroadcastTest, WhatStillWaitsForItsCollectionAtTheEndIsGivenUp) {
  bool resumed = false;
  {
    Job job(3);
    TestMemory memory = job.doubles({1, 2, 3}, 1);
    TestMemory other = job.doubles({1, 2, 3}, 1);
    CollectionProxy<Cell> early(EarlyBroadcast(job).all);
    auto wait = [](CollectionProxy<Cell> all, std::span<double> values, bool& on) -> Task<> {
      co_await all.send<&Cell::keep>(nocopy(values));
      on = true;
    };
    job.runtime(1).spawn(wait(early, as<double>(memory.buffer()), resumed), "a test");
    Operation held = early.send<&Cell::keep>(nocopy(as<double>(other.buffer())));
    for (int i = 0; i < 100; ++i) {
      for (int pe = 0; pe < 3; ++pe) job.runtime(pe).step();
    }
    EXPECT_FALSE(held.is_done());
    for (int pe = 0; pe < 3; ++pe) job.runtime(pe).close();
    EXPECT_TRUE(held.is_done());
  }
  EXPECT_FALSE(resumed);
}

// Copies of device memory can fail.
struct DevicePayloadBroadcastTest : PayloadBroadcastTest {};

INSTANTIATE_TEST_SUITE_P(Ways, DevicePayloadBroadcastTest, ::testing::ValuesIn(testing::kDeviceWays),
                         testing::name_of);

TEST_P(DevicePayloadBroadcastTest, ItsKindIsThatOfTheSenderBelowAPeThatLacksItToo) {
  Job job(11, 1);  // which sends on to PEs 9 and 10
  TestMemory memory = job.doubles(std::vector<double>(40'000, 0.5));
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto all = Group<Cell>::create(runtime);
    // The later ones name their memory: PE 1 forwards out of host memory.
    for (int i = 0; i < 3; ++i) {
      std::vector<double> sums =
          co_await all.call<&Cell::add_and_change>(nocopy(as<double>(memory.buffer())));
      EXPECT_EQ(sums, std::vector<double>(11, 20'000)) << i;
    }
    std::vector<int> kinds = co_await all.call<&Cell::kind_of_place>();
    std::vector<int> expected(11, static_cast<int>(Kind::kEmulated));
    expected[1] = static_cast<int>(Kind::kHost);
    EXPECT_EQ(kinds, expected);
  }),
            "");
}

// Eight sends and the copies of the two elements of PE 0: whichever of them fails.
TEST_P(DevicePayloadBroadcastTest, ACallWhosePayloadCannotBeSentToAllThrowsThat) {
  Job job(11);
  memory::EmulatedFaults refusal;  // PE 0 copies what others cannot map
  refusal.refuse_exports = true;
  testing::emulated(job.memory(0)).set_faults(refusal);
  TestMemory memory = job.doubles({1, 2});
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto all = Array<Cell>::create(runtime, 22);
    auto& device = testing::emulated(runtime.memory());
    for (int which = 1; which <= 10; ++which) {
      memory::EmulatedFaults faults;
      faults.fail_copy = which;
      device.set_faults(faults);
      std::string said;
      try {
        co_await all.call<&Cell::halo>(1, nocopy(as<double>(memory.buffer())));
      } catch (const Error& error) {
        said = error.what();
      }
      EXPECT_NE(said, "") << which;
      co_await runtime.quiescence();
      device.set_faults(faults);
      said.clear();
      try {
        co_await all.send<&Cell::keep>(nocopy(as<double>(memory.buffer())));
      } catch (const Error& error) {
        said = error.what();
      }
      EXPECT_NE(said, "") << which;
      co_await runtime.quiescence();
      device.set_faults({});
    }
    std::vector<int> results = co_await all.call<&Cell::halo>(1, nocopy(as<double>(memory.buffer())));
    EXPECT_EQ(results.size(), 22u);
    std::vector<int> suspended = co_await all.call<&Cell::suspended_now>();
    EXPECT_EQ(suspended, std::vector<int>(22, 0));
  }),
            "");
}

TEST_P(DevicePayloadBroadcastTest, ACallThatMissesOnlyPesWithoutElementsThrowsToo) {
  Job job(3);
  TestMemory memory = job.doubles({1, 2});
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto alone = Singleton<Cell>::create(runtime, 0);
    memory::EmulatedFaults faults;
    faults.fail_copy = 1;  // of the send to PE 1
    testing::emulated(runtime.memory()).set_faults(faults);
    std::string said;
    try {
      co_await alone.call<&Cell::halo>(1, nocopy(as<double>(memory.buffer())));
    } catch (const Error& error) {
      said = error.what();
    }
    EXPECT_NE(said, "");
    co_await runtime.quiescence();
    std::vector<double> arrived = co_await alone.element().call<&Cell::last>();
    EXPECT_EQ(arrived, (std::vector<double>{1, 2})) << "it has run";
  }),
            "");
}

TEST_P(DevicePayloadBroadcastTest, ALandingThatFailsOnAnotherPeEndsTheJob) {
  Job job(3);
  TestMemory memory = job.doubles({1, 2});
  std::string failure = job.run([&](Runtime& runtime) -> Task<> {
    auto all = Array<Cell>::create(runtime, 6);
    co_await all.call<&Cell::suspended_now>();
    memory::EmulatedFaults faults;
    faults.fail_copy = 2;  // of the copies for its two elements, after its landing or at its end
    testing::emulated(job.memory(1)).set_faults(faults);
    co_await all.call<&Cell::halo>(1, nocopy(as<double>(memory.buffer())));
  });
  EXPECT_NE(failure.find("could not be received"), std::string::npos) << failure;
}

}  // namespace
}  // namespace weft::chare
