// What random_access.cpp measures, asked of an MPI library in C: random access by the rules of the HPC Challenge, with messages that carry
// many updates. Built once for each MPI that is installed, and for Weft's.
//
//   mpiexec -n 2 mpi_random_access [--log2-words N] [--updates-per-word N] [--look-ahead N]
//
// The number of ranks is a power of two. Each rank draws LOOK-AHEAD numbers of its part of the sequence at a time, sorts them by the rank that
// has their words, and MPI_Alltoallv delivers them. The clock of rank 0 runs from a barrier to a barrier. Then each rank makes
// all updates of its own words once more, without messages, which must restore each word.
#include <mpi.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "benchmarks/hpcc_sequence.h"
#include "benchmarks/measuring.h"

// Open MPI's constants are macros that cast addresses.
// NOLINTBEGIN(bugprone-casting-through-void)

namespace weft::benchmarks {
namespace {

constexpr const char* kUsage = "mpi_random_access [--log2-words N] [--updates-per-word N] [--look-ahead N]";

struct Options {
  std::uint64_t log2_words = 24;  // 128 MiB
  std::uint64_t updates_per_word = 4;
  std::uint64_t look_ahead = 1024;
};

// One rank's part of the table, and its part of the updates.
class Rank {
 public:
  Rank(const Options& options, std::uint64_t rank, std::uint64_t num_ranks)
      : look_ahead_(options.look_ahead),
        log2_words_(options.log2_words - static_cast<std::uint64_t>(std::countr_zero(num_ranks))),
        num_updates_(options.updates_per_word << log2_words_),
        first_update_(rank * num_updates_),
        first_word_(rank << log2_words_),
        rank_mask_(num_ranks - 1),
        words_(std::size_t{1} << log2_words_),
        counts_(num_ranks),
        starts_(num_ranks),
        incoming_counts_(num_ranks),
        incoming_starts_(num_ranks),
        drawn_(look_ahead_),
        outgoing_(look_ahead_),
        incoming_(look_ahead_ * num_ranks) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] = first_word_ + i;
  }

  void update() {
    std::uint64_t random = hpcc_random_at(first_update_);
    for (std::uint64_t done = 0; done < num_updates_; done += look_ahead_) {
      const std::uint64_t count = std::min(look_ahead_, num_updates_ - done);
      for (std::uint64_t i = 0; i < count; ++i) drawn_[i] = random = next_hpcc_random(random);
      deliver(count);
    }
  }

  // Makes the updates of all ranks to the words of this one.
  void update_own() {
    std::uint64_t random = hpcc_random_at(0);
    const std::uint64_t all = num_updates_ * counts_.size();
    for (std::uint64_t i = 0; i < all; ++i) {
      random = next_hpcc_random(random);
      if (rank_of(random) == first_word_ >> log2_words_) words_[random & (words_.size() - 1)] ^= random;
    }
  }

  std::uint64_t num_wrong() const {
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < words_.size(); ++i) wrong += words_[i] != first_word_ + i ? 1 : 0;
    return wrong;
  }

 private:
  std::size_t rank_of(std::uint64_t random) const { return random >> log2_words_ & rank_mask_; }

  // The first `count` numbers that were drawn reach the ranks that have their words.
  void deliver(std::uint64_t count) {
    std::fill(counts_.begin(), counts_.end(), 0);
    for (std::uint64_t i = 0; i < count; ++i) ++counts_[rank_of(drawn_[i])];
    int start = 0;
    for (std::size_t rank = 0; rank < counts_.size(); ++rank) {
      starts_[rank] = start;
      start += counts_[rank];
    }
    std::vector<int>& next = incoming_starts_;  // of each rank's numbers in `outgoing_`
    next = starts_;
    for (std::uint64_t i = 0; i < count; ++i)
      outgoing_[static_cast<std::size_t>(next[rank_of(drawn_[i])]++)] = drawn_[i];
    MPI_Alltoall(counts_.data(), 1, MPI_INT, incoming_counts_.data(), 1, MPI_INT, MPI_COMM_WORLD);
    int num_incoming = 0;
    for (std::size_t rank = 0; rank < counts_.size(); ++rank) {
      incoming_starts_[rank] = num_incoming;
      num_incoming += incoming_counts_[rank];
    }
    MPI_Alltoallv(outgoing_.data(), counts_.data(), starts_.data(), MPI_UINT64_T, incoming_.data(),
                  incoming_counts_.data(), incoming_starts_.data(), MPI_UINT64_T, MPI_COMM_WORLD);
    for (int i = 0; i < num_incoming; ++i) {
      const std::uint64_t random = incoming_[static_cast<std::size_t>(i)];
      words_[random & (words_.size() - 1)] ^= random;
    }
  }

  std::uint64_t look_ahead_;
  std::uint64_t log2_words_;  // of this rank
  std::uint64_t num_updates_;
  std::uint64_t first_update_;
  std::uint64_t first_word_;
  std::uint64_t rank_mask_;
  std::vector<std::uint64_t> words_;
  std::vector<int> counts_, starts_, incoming_counts_, incoming_starts_;  // by rank
  std::vector<std::uint64_t> drawn_, outgoing_, incoming_;
};

void measure(const Options& options, int rank, int num_ranks) {
  pin(rank);
  Rank self(options, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(num_ranks));
  MPI_Barrier(MPI_COMM_WORLD);
  const Stopwatch stopwatch;
  self.update();
  MPI_Barrier(MPI_COMM_WORLD);
  const double elapsed_s = stopwatch.elapsed_s();
  self.update_own();
  std::uint64_t wrong = self.num_wrong();
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (wrong != 0) die("words of the table are wrong");
  if (rank != 0) return;
  const auto updates = static_cast<double>(options.updates_per_word << options.log2_words);
  report("rate_GUPS", sizeof(std::uint64_t), updates / elapsed_s / 1e9);
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  using namespace weft::benchmarks;
  Options options;
  parse_numbers(argc, argv, kUsage,
                {{"--log2-words", options.log2_words, 10, 39},
                 {"--updates-per-word", options.updates_per_word},
                 {"--look-ahead", options.look_ahead, 1, 1'000'000}});
  MPI_Init(&argc, &argv);
  int rank = 0;
  int num_ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  if (!std::has_single_bit(static_cast<unsigned>(num_ranks)) ||
      static_cast<std::uint64_t>(num_ranks) >> options.log2_words != 0)
    die("the number of ranks is no power of two, or there are fewer words than ranks");
  measure(options, rank, num_ranks);
  MPI_Finalize();
}

// NOLINTEND(bugprone-casting-through-void)
