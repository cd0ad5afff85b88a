// What pgas_copy.cpp and pgas_fetch_add.cpp measure, asked of an MPI library in C: MPI_Put or MPI_Get and MPI_Win_flush in a
// passive epoch on a window of MPI_Win_allocate, and MPI_Fetch_and_op. Rank 0 to rank 1. Built once for each MPI that is
// installed, and for Weft's.
//
//   mpiexec -n 2 mpi_rma BENCH SIZE:ITERATIONS:WARMUP[:BUFFERS]... --way put|get [--memory host|emulated|cuda]
//
// --memory emulated|cuda: the windows and the buffers of the operations are in memory of the device of each process, which Weft's
// library alone allocates.
// A window of pgas_flood is 100 operations and one flush. A rank that does not operate waits in MPI_Barrier.
#include <mpi.h>

#include <cstdint>

#include "benchmarks/measuring.h"
#include "benchmarks/mpi_memory.h"

// Open MPI's constants are macros that cast addresses.
// NOLINTBEGIN(bugprone-casting-through-void)

namespace weft::benchmarks {
namespace {

// One end of the exchange: rank 0 or 1.
class Peer {
 public:
  Peer(int rank, bool is_put, const Step& step, memory::Kind kind)
      : peer_(1 - rank),
        is_put_(is_put),
        size_(static_cast<int>(step.size_bytes)),
        num_places_(step.buffers),
        total_bytes_(step.size_bytes * static_cast<std::size_t>(step.buffers)),
        local_(kind, total_bytes_, is_put ? 1 : 2) {
    const MpiMemoryHint hint(kind);
    MPI_Win_allocate(static_cast<MPI_Aint>(total_bytes_), 1, hint.info(), MPI_COMM_WORLD,
                     static_cast<void*>(&remote_), &window_);
    fill_bytes(remote_, total_bytes_, is_put ? 2 : 1);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
    MPI_Win_sync(window_);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~Peer() {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // `count` flushes with `per_flush` operations each.
  void operate(std::int64_t count, int per_flush) {
    for (std::int64_t i = 0; i < count; ++i) {
      for (int slot = 0; slot < per_flush; ++slot) start_one();
      MPI_Win_flush(peer_, window_);
    }
  }

  // Of the peer's first word.
  void fetch_add(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint64_t one = 1;
      std::uint64_t before = 0;
      MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, peer_, 0, MPI_SUM, window_);
      MPI_Win_flush(peer_, window_);
    }
  }

  // After the other rank's operations.
  void expect_arrived() const {
    MPI_Win_sync(window_);
    const auto* const memory = static_cast<const char*>(is_put_ ? remote_ : local_.data());
    if (read_byte(memory + size_ - 1) != 1) die("what was sent has not arrived");
  }

 private:
  void start_one() {
    if (++place_ >= num_places_) place_ = 0;
    char* const local = static_cast<char*>(local_.data()) + place_ * size_;
    const MPI_Aint remote = place_ * size_;
    if (is_put_) {
      MPI_Put(local, size_, MPI_CHAR, peer_, remote, size_, MPI_CHAR, window_);
    } else {
      MPI_Get(local, size_, MPI_CHAR, peer_, remote, size_, MPI_CHAR, window_);
    }
  }

  int peer_;
  bool is_put_;
  int size_;
  std::int64_t num_places_;
  std::int64_t place_ = -1;
  std::size_t total_bytes_;
  MpiMemory local_;
  void* remote_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
};

void measure(const Arguments& arguments, const Step& step, int rank) {
  const bool is_put = arguments.way != "get";
  const bool is_active = rank == 0 || arguments.bench == Bench::kFloodBoth;
  const bool is_single = arguments.bench == Bench::kOneSided || arguments.bench == Bench::kMemspeed;
  Peer peer(rank, is_put, step, arguments.memory);
  auto exchange = [&](std::int64_t count) {
    if (arguments.bench == Bench::kFetchAdd) return peer.fetch_add(count);
    peer.operate(count, is_single ? 1 : kFloodWindow);
  };
  if (is_active) exchange(step.warmup);
  MPI_Barrier(MPI_COMM_WORLD);
  Stopwatch stopwatch;
  if (is_active) exchange(step.iterations);
  if (arguments.bench == Bench::kFloodBoth) MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) report(arguments.bench, step, stopwatch.elapsed_s());
  MPI_Barrier(MPI_COMM_WORLD);
  const bool is_receiver = arguments.bench == Bench::kFloodBoth || rank == (is_put ? 1 : 0);
  if (arguments.bench != Bench::kFetchAdd && is_receiver && step.buffers == 1) peer.expect_arrived();
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
  for (const Step& step : arguments.steps) measure(arguments, step, rank);
  MPI_Finalize();
  return 0;
}

// NOLINTEND(bugprone-casting-through-void)
