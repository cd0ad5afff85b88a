// What the programs of Weft measure, asked of an MPI library in C: latency, windows, and an allreduce of one
// double. Built once for each MPI that is installed.
//
// --memory emulated|cuda: both ranks have their buffers there ("D D" in the OSU benchmarks). MPI_Alloc_mem allocates them, which
// Weft's library alone does. --way posted: each receive of a ping-pong is posted before the send that it answers.
#include <mpi.h>

#include <array>
#include <vector>

#include "benchmarks/measuring.h"
#include "benchmarks/mpi_memory.h"

// Open MPI's constants are macros that cast addresses.
// NOLINTBEGIN(bugprone-casting-through-void)

namespace weft::benchmarks {
namespace {

using Memories = std::vector<MpiMemory>;

// One end of the exchange: rank 0 or 1.
class Peer {
 public:
  Peer(int rank, const Step& step, memory::Kind kind)
      : rank_(rank),
        size_(static_cast<int>(step.size_bytes)),
        // Windows go one way.
        outgoing_(memories(kind, step.size_bytes, rank == 0 ? step.buffers : 1)),
        incoming_(memories(kind, step.size_bytes, rank == 0 ? 1 : step.buffers)) {}

  void ping_pong(std::int64_t round_trips) {
    for (std::int64_t i = 0; i < round_trips; ++i) {
      if (rank_ == 0) MPI_Send(outgoing_[0].data(), size_, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(incoming_[0].data(), size_, MPI_CHAR, 1 - rank_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank_ == 1) MPI_Send(outgoing_[0].data(), size_, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
  }

  // As programs do that post their receives early.
  void ping_pong_posted(std::int64_t round_trips) {
    MPI_Request request = MPI_REQUEST_NULL;
    const auto post = [&] {
      MPI_Irecv(incoming_[0].data(), size_, MPI_CHAR, 1 - rank_, 0, MPI_COMM_WORLD, &request);
    };
    post();
    for (std::int64_t i = 0; i < round_trips; ++i) {
      if (rank_ == 0) MPI_Send(outgoing_[0].data(), size_, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (i + 1 < round_trips) post();
      if (rank_ == 1) MPI_Send(outgoing_[0].data(), size_, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
  }

  void windows(std::int64_t count) {
    std::array<MPI_Request, kWindow> requests{};
    for (std::int64_t i = 0; i < count; ++i) {
      for (MPI_Request& request : requests) {
        const std::size_t number = next_++;
        if (rank_ == 0) {
          void* const data = outgoing_[number % outgoing_.size()].data();
          MPI_Isend(data, size_, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
        } else {
          void* const data = incoming_[number % incoming_.size()].data();
          MPI_Irecv(data, size_, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
        }
      }
      MPI_Waitall(kWindow, requests.data(), MPI_STATUSES_IGNORE);
      if (rank_ == 0) {
        MPI_Recv(nullptr, 0, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else {
        MPI_Send(nullptr, 0, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
      }
    }
  }

 private:
  static Memories memories(memory::Kind kind, std::size_t size_bytes, std::int64_t count) {
    Memories made;
    for (std::int64_t i = 0; i < count; ++i) made.emplace_back(kind, size_bytes);
    return made;
  }

  int rank_;
  int size_;
  Memories outgoing_;
  Memories incoming_;
  std::size_t next_ = 0;
};

void allreduce(std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = 0;
    const double one = 1;
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
}

// `exchange` is called with the number of round trips, windows or reductions.
void measure(Bench bench, const Step& step, int rank, const auto& exchange) {
  MPI_Barrier(MPI_COMM_WORLD);
  exchange(step.warmup);
  Stopwatch stopwatch;
  exchange(step.iterations);
  if (rank == 0) report(bench, step, stopwatch.elapsed_s());
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  using namespace weft::benchmarks;
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const Arguments arguments = parse_arguments(argc, argv);
  expect_mpi_memory(arguments.memory);
  pin(rank);
  for (const Step& step : arguments.steps) {
    if (arguments.bench == Bench::kAllreduce) {
      measure(arguments.bench, step, rank, allreduce);
      continue;
    }
    Peer peer(rank, step, arguments.memory);
    auto exchange = arguments.bench == Bench::kLatency ? &Peer::ping_pong : &Peer::windows;
    if (arguments.bench == Bench::kLatency && arguments.way == "posted") exchange = &Peer::ping_pong_posted;
    measure(arguments.bench, step, rank, [&](std::int64_t count) { (peer.*exchange)(count); });
  }
  MPI_Finalize();
  return 0;
}

// NOLINTEND(bugprone-casting-through-void)
