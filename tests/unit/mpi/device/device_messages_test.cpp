// Messages from and to device memory: every pair of kinds, sizes that take each way, with and without gaps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "weft/mpi/mpi.h"

#include "tests/support/busy_stream.h"
#include "tests/unit/mpi/device/device_view.h"
#include "tests/unit/mpi/mpi_job.h"

namespace weft::mpi {
namespace {

using testing::MpiJob;
using testing::TestMemory;

constexpr std::uint64_t kDeviceContext = 4;

// From which kind to which, on which machine, and to which PE.
struct DeviceWay {
  memory::Place from;
  memory::Place to;
  const char* machine;
  int pe;
};

class DeviceMessages : public ::testing::TestWithParam<DeviceWay> {
 protected:
  DeviceMessages() : job_(2, GetParam().machine) {}

  SendAddress address() const { return {kDeviceContext, 0, 5, GetParam().pe}; }
  PointToPoint& receiver() { return job_.ranks(GetParam().pe); }
  TestMemory sent(std::size_t size) { return {job_.memory(0), GetParam().from, size, 1}; }
  TestMemory received(std::size_t size) { return {job_.memory(GetParam().pe), GetParam().to, size, 90}; }

  Ref<SendRequest> send(const DataView& view, SendMode mode = SendMode::kStandard) {
    return job_.ranks(0).send(address(), view, mode);
  }
  Ref<ReceiveRequest> receive(const DataView& view, int source = 0) {
    return receiver().receive({kDeviceContext, source, 5}, view);
  }

  MpiJob job_;
};

TEST_P(DeviceMessages, ArriveInPostedAndInLateReceives) {
  for (const std::size_t size : {1U, 8U, 200U, 4096U, 5000U, 70'000U, 600'000U}) {
    for (const bool is_posted : {true, false}) {
      for (const SendMode mode : {SendMode::kStandard, SendMode::kSynchronous}) {
        SCOPED_TRACE(std::to_string(size) + (is_posted ? " posted" : " late"));
        TestMemory out = sent(size);
        TestMemory in = received(size);
        Ref<ReceiveRequest> receiving;
        if (is_posted) receiving = receive(view_of_memory(in), kAny);
        const Ref<SendRequest> sending = send(view_of_memory(out), mode);
        job_.settle();
        if (!is_posted) receiving = receive(view_of_memory(in), kAny);
        job_.wait(sending, receiving);
        EXPECT_EQ(receiving->outcome().error, MPI_SUCCESS);
        EXPECT_EQ(receiving->outcome().size_bytes, static_cast<std::int64_t>(size));
        EXPECT_EQ(in.now(), out.filled());
      }
    }
  }
}

TEST_P(DeviceMessages, WithoutBytesWriteNothing) {
  TestMemory in = received(16);
  const auto receiving = receive(view_of_memory(in));
  const auto sending = send({});
  job_.wait(sending, receiving);
  EXPECT_EQ(receiving->outcome().size_bytes, 0);
  EXPECT_EQ(in.now(), in.filled());
}

TEST_P(DeviceMessages, ThatAreTooLargeAreTruncated) {
  for (const std::size_t size : {100U, 8000U, 200'000U}) {
    TestMemory out = sent(size);
    TestMemory in = received(size);
    DataView half = view_of_memory(in);
    half.size_bytes = size / 2;
    const auto sending = send(view_of_memory(out));
    const auto receiving = receive(half);
    job_.wait(sending, receiving);
    EXPECT_EQ(receiving->outcome().error, MPI_ERR_TRUNCATE);
    const std::vector<std::uint8_t> now = in.now();
    EXPECT_TRUE(std::equal(now.begin() + static_cast<std::ptrdiff_t>(size / 2), now.end(),
                           in.filled().begin() + static_cast<std::ptrdiff_t>(size / 2)));
  }
}

TEST_P(DeviceMessages, MayHaveGapsAtEitherSide) {
  for (const MPI_Count blocks : {3, 100, 2000}) {
    const Ref<Datatype> type = blocks_of_three(blocks);
    const auto span = static_cast<std::size_t>(type->true_extent());
    const auto packed_bytes = static_cast<std::size_t>(type->size_bytes());
    for (const bool gaps_out : {true, false}) {
      for (const bool gaps_in : {true, false}) {
        SCOPED_TRACE(std::to_string(blocks) + " blocks");
        TestMemory out = sent(gaps_out ? span : packed_bytes);
        TestMemory in = received(gaps_in ? span : packed_bytes);
        std::vector<std::uint8_t> packed = out.filled();
        if (gaps_out) {
          packed.resize(packed_bytes);
          type->pack(out.filled().data(), 1, reinterpret_cast<std::byte*>(packed.data()));
        }
        std::vector<std::uint8_t> expected = packed;
        if (gaps_in) {
          expected = in.filled();
          type->unpack(expected.data(), 1, reinterpret_cast<const std::byte*>(packed.data()));
        }
        const auto receiving = receive(gaps_in ? view_of_elements(in, *type, 1) : view_of_memory(in));
        const auto sending = send(gaps_out ? view_of_elements(out, *type, 1) : view_of_memory(out));
        job_.wait(sending, receiving);
        EXPECT_EQ(receiving->outcome().error, MPI_SUCCESS);
        EXPECT_EQ(in.now(), expected);
      }
    }
  }
}

// A message that fills a part of the receive changes no other byte.
TEST_P(DeviceMessages, MayBeShorterThanAReceiveWithGaps) {
  const Ref<Datatype> type = blocks_of_three(1000);
  for (const std::size_t size : {100U, 2990U}) {
    TestMemory out = sent(size);
    TestMemory in = received(static_cast<std::size_t>(type->true_extent()));
    std::vector<std::uint8_t> expected = in.filled();
    type->unpack(expected.data(), 1, 0, static_cast<MPI_Count>(size),
                 reinterpret_cast<const std::byte*>(out.filled().data()));
    const auto sending = send(view_of_memory(out));
    job_.settle();
    const auto receiving = receive(view_of_elements(in, *type, 1));
    job_.wait(sending, receiving);
    EXPECT_EQ(in.now(), expected);
  }
}

TEST_P(DeviceMessages, OfAllSizesKeepTheirOrder) {
  std::vector<TestMemory> out;
  std::vector<TestMemory> in;
  std::vector<Ref<Request>> requests;
  for (const std::size_t size : {8U, 70'000U, 0U, 300U, 5000U, 8U}) {
    out.push_back(sent(size));
    in.push_back(received(size));
  }
  for (TestMemory& one : out) requests.emplace_back(*send(view_of_memory(one)));
  job_.settle();
  for (TestMemory& one : in) requests.emplace_back(*receive(view_of_memory(one)));
  ASSERT_EQ(job_.run_until(
                [&] { return std::ranges::all_of(requests, [](auto& one) { return one->is_complete(); }); }),
            "");
  for (std::size_t i = 0; i < in.size(); ++i) EXPECT_EQ(in[i].now(), out[i].filled()) << i;
}

TEST_P(DeviceMessages, CanBeProbed) {
  for (const std::size_t size : {8U, 70'000U}) {
    TestMemory out = sent(size);
    TestMemory in = received(size);
    const auto sending = send(view_of_memory(out));
    job_.settle();
    ArrivedMessage* const message = receiver().take_probed({kDeviceContext, kAny, kAny});
    ASSERT_NE(message, nullptr);
    EXPECT_EQ(message->size_bytes, size);
    const auto receiving = receiver().make_receive(message->key, view_of_memory(in));
    receiver().start_probed(*receiving, message);
    job_.wait(sending, receiving);
    EXPECT_EQ(in.now(), out.filled());
  }
}

constexpr DeviceWay kDeviceWays[] = {
    {kDevicePlace, kDevicePlace, "loopback", 1}, {kDevicePlace, kDevicePlace, "loopback", 0},
    {kDevicePlace, kHostPlace, "loopback", 1},   {kDevicePlace, kHostPlace, "loopback", 0},
    {kHostPlace, kDevicePlace, "loopback", 1},   {kHostPlace, kDevicePlace, "loopback", 0},
    {kDevicePlace, kDevicePlace, "ucx", 1},      {kDevicePlace, kHostPlace, "ucx", 1},
    {kHostPlace, kDevicePlace, "ucx", 1},
};
INSTANTIATE_TEST_SUITE_P(AllWays, DeviceMessages, ::testing::ValuesIn(kDeviceWays), [](const auto& info) {
  const DeviceWay& way = info.param;
  return std::string(memory::kind_name(way.from.kind)) + "_to_" +
         std::string(memory::kind_name(way.to.kind)) + "_" + way.machine + (way.pe == 0 ? "_same_pe" : "");
});

// --- Streams

// A send that names a stream takes the bytes after the work queued there.
TEST(DeviceMessageStreams, ASendWaitsForItsStream) {
  for (const bool has_gaps : {false, true}) {
    for (const int pe : {0, 1}) {
      MpiJob job(2);
      const Ref<Datatype> type = blocks_of_three(50);
      TestMemory out(job.memory(0), kDevicePlace, static_cast<std::size_t>(type->true_extent()));
      TestMemory in(job.memory(pe), kDevicePlace, static_cast<std::size_t>(type->size_bytes()));
      std::uint8_t* const bytes = testing::view(job.memory(0), out.buffer());
      bool may_end = false;
      DataView view = has_gaps ? view_of_elements(out, *type, 1) : view_of_memory(out);
      view.size_bytes = in.buffer().size_bytes;
      view.stream = testing::stream_with(testing::emulated(job.memory(0)), 0, [&]() -> base::Status {
        if (!may_end) return base::Status::pending();
        std::fill(bytes, bytes + out.buffer().size_bytes, std::uint8_t{9});
        return {};
      });
      const auto receiving = job.ranks(pe).receive({kDeviceContext, 0, 5}, view_of_memory(in));
      const auto sending = job.ranks(0).send({kDeviceContext, 0, 5, pe}, view, SendMode::kStandard);
      for (int turn = 0; turn < 200; ++turn) {
        job.runtime(0).step();
        job.runtime(1).step();
      }
      EXPECT_FALSE(sending->is_complete());
      EXPECT_EQ(in.now(), in.filled());
      may_end = true;
      job.wait(sending, receiving);
      EXPECT_EQ(in.now(), std::vector<std::uint8_t>(in.buffer().size_bytes, 9));
    }
  }
}

// A receive that names a stream writes after the work queued there, which may still read the memory.
TEST(DeviceMessageStreams, AReceiveWaitsForItsStream) {
  for (const std::size_t sent_bytes : {8U, 150U, 9000U}) {
    for (const bool has_gaps : {false, true}) {
      MpiJob job(2);
      const Ref<Datatype> type = blocks_of_three(static_cast<MPI_Count>(sent_bytes / 3 + 1));
      TestMemory out(job.memory(0), kHostPlace, sent_bytes, 1);
      TestMemory in(job.memory(1), kDevicePlace, static_cast<std::size_t>(type->true_extent()), 50);
      bool may_end = false;
      DataView view = has_gaps ? view_of_elements(in, *type, 1) : view_of_memory(in);
      view.stream = testing::stream_with(testing::emulated(job.memory(1)), 0, testing::until(may_end));
      const auto receiving = job.ranks(1).receive({kDeviceContext, 0, 5}, view);
      const auto sending =
          job.ranks(0).send({kDeviceContext, 0, 5, 1}, view_of_memory(out), SendMode::kStandard);
      for (int turn = 0; turn < 200; ++turn) {
        job.runtime(0).step();
        job.runtime(1).step();
      }
      EXPECT_FALSE(receiving->is_complete());
      EXPECT_EQ(in.now(), in.filled());
      may_end = true;
      job.wait(sending, receiving);
      std::vector<std::uint8_t> expected = in.filled();
      if (has_gaps) {
        type->unpack(expected.data(), 1, 0, static_cast<MPI_Count>(sent_bytes),
                     reinterpret_cast<const std::byte*>(out.filled().data()));
      } else {
        std::ranges::copy(out.filled(), expected.begin());
      }
      EXPECT_EQ(in.now(), expected);
    }
  }
}

// --- Failures

TEST(DeviceMessageFailures, ASendThatCannotBePackedEndsWithAnError) {
  MpiJob job(2);
  const Ref<Datatype> type = blocks_of_three(50);
  TestMemory out(job.memory(0), kDevicePlace, static_cast<std::size_t>(type->true_extent()));
  testing::emulated(job.memory(0)).set_faults({.fail_allocation = 1});
  const auto failed =
      job.ranks(0).send({kDeviceContext, 0, 5, 1}, view_of_elements(out, *type, 1), SendMode::kStandard);
  EXPECT_TRUE(failed->is_complete());
  EXPECT_EQ(failed->outcome().error, MPI_ERR_NO_MEM);
  // The next message is not held up.
  TestMemory in(job.memory(1), kDevicePlace, static_cast<std::size_t>(type->size_bytes()));
  const auto sending =
      job.ranks(0).send({kDeviceContext, 0, 5, 1}, view_of_elements(out, *type, 1), SendMode::kStandard);
  const auto receiving = job.ranks(1).receive({kDeviceContext, 0, 5}, view_of_memory(in));
  job.wait(sending, receiving);
  EXPECT_EQ(receiving->outcome().error, MPI_SUCCESS);
}

TEST(DeviceMessageFailures, ACopyThatFailsIsTheReceivesError) {
  for (const bool has_gaps : {false, true}) {
    MpiJob job(2);
    const Ref<Datatype> type = blocks_of_three(50);
    TestMemory out(job.memory(0), kHostPlace, 60);
    TestMemory in(job.memory(1), kDevicePlace, static_cast<std::size_t>(type->true_extent()));
    testing::emulated(job.memory(1)).set_faults({.fail_copy = 1});
    const auto receiving = job.ranks(1).receive(
        {kDeviceContext, 0, 5}, has_gaps ? view_of_elements(in, *type, 1) : view_of_memory(in));
    const auto sending =
        job.ranks(0).send({kDeviceContext, 0, 5, 1}, view_of_memory(out), SendMode::kStandard);
    job.wait(sending, receiving);
    EXPECT_EQ(receiving->outcome().error, MPI_ERR_OTHER);
  }
}

}  // namespace
}  // namespace weft::mpi
