// Two ranks, of which rank 1 receives in device memory from rank 0 and offers its receives.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "weft/mpi/mpi.h"

#include "tests/unit/mpi/device/device_view.h"
#include "tests/unit/mpi/mpi_job.h"

namespace weft::mpi {

using testing::MpiJob;
using testing::TestMemory;

constexpr std::uint64_t kOfferContext = 4;
constexpr int kOfferTag = 5;

// A first exchange has shown that offers are accepted.
struct OfferingRanks {
  explicit OfferingRanks(const char* machine) : job(2, machine), in(job.memory(1), kDevicePlace, 64, 100) {
    for (int round = 0; round < 10 && num_accepted() == 0; ++round) exchange(round);
    EXPECT_EQ(num_accepted(), 1U) << "no send accepted an offer";
  }

  std::uint64_t num_accepted() { return job.ranks(0).offers().num_accepted(); }
  std::uint64_t num_waits() { return job.ranks(0).offers().num_waits(); }
  std::uint64_t num_made() { return job.ranks(1).offers().num_made(); }
  TestMemory filled(int first, std::size_t size_bytes = 64, memory::Place place = kDevicePlace) {
    return {job.memory(0), place, size_bytes, static_cast<std::uint8_t>(first)};
  }
  Ref<ReceiveRequest> receive(TestMemory& into, int tag = kOfferTag, int source = 0) {
    return job.ranks(1).receive({kOfferContext, source, tag}, view_of_memory(into), source);
  }
  Ref<SendRequest> send(TestMemory& from, int tag = kOfferTag, std::uint64_t context = kOfferContext) {
    return job.ranks(0).send({context, 0, tag, 1}, view_of_memory(from), SendMode::kStandard);
  }
  void exchange(int first) {
    TestMemory out = filled(first);
    const auto receiving = receive(in);
    job.settle();
    const auto sending = send(out);
    job.wait(sending, receiving);
    EXPECT_EQ(receiving->outcome().error, MPI_SUCCESS);
    EXPECT_EQ(in.now(), out.filled());
  }

  MpiJob job;
  TestMemory in;
};

}  // namespace weft::mpi
