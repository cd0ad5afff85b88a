#include "ranks/protected_ranks.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/pup.h"
#include "weft/chare/chare.h"
#include "weft/chare/checkpoint.h"
#include "weft/chare/proxy.h"

#include "base/format.h"
#include "ranks/host_interface.h"
#include "ranks/hosted_ranks.h"

namespace weft::mpi {

namespace {

// The memory of a rank. Its index is the rank.
class ProtectedRank : public chare::Chare<ProtectedRank> {
 public:
  void pup(base::Pup& p);

 private:
  using Ranges = std::vector<weft_mpi_host_range>;
  Ranges own_ranges() const;
  // Makes room for the rank, and frees the ranks before. Throws Error for what cannot be.
  void make_room(const base::Pup& p, std::uint64_t fingerprint, const Ranges& ranges) const;
  void arrive() const;

  static HostedRanks& ranks() { return *HostedRanks::current(); }
  static const weft_mpi_host_program& program() { return ranks().program(); }
  int rank() const { return static_cast<int>(linear_index()); }
};

ProtectedRank::Ranges ProtectedRank::own_ranges() const {
  Ranges ranges(WEFT_MPI_HOST_MOST_RANGES);
  const int count = program().moves->ranges_of_rank(program().context, rank(),
                                                    ranks().place_of(rank())->lowest_in_use(), ranges.data());
  ranges.resize(static_cast<std::size_t>(count));
  return ranges;
}

void ProtectedRank::make_room(const base::Pup& p, std::uint64_t fingerprint, const Ranges& ranges) const {
  if (fingerprint != program().moves->fingerprint) {
    throw base::Error(base::StatusCode::kUnsupported,
                      base::format("MPI rank {} cannot be recovered on PE {}, which has the libraries or the "
                                   "program at other addresses, or in other versions",
                                   rank(), pe()));
  }
  std::size_t left = p.remaining_bytes();
  for (const weft_mpi_host_range& range : ranges) {
    p.expect(range.size_bytes);
    if (range.size_bytes > left) p.refuse("fewer bytes than a rank has");
    left -= range.size_bytes;
  }
  std::vector<int> places;
  for (std::uint64_t other = 0; other < collection().shape().size(); ++other)
    places.push_back(collection().shape().home(other, num_pes()));
  ranks().expect_restored(RankMap(std::move(places), num_pes()));
  const char* const wrong = program().moves->receive_rank(program().context, rank(), ranges.data(),
                                                          static_cast<int>(ranges.size()));
  if (wrong != nullptr) {
    throw base::Error(base::StatusCode::kCorrupt,
                      base::format("MPI rank {} cannot be recovered on PE {}: {}", rank(), pe(), wrong));
  }
}

void ProtectedRank::arrive() const {
  program().moves->rank_arrived(program().context, rank());
  ranks().place_of(rank())->arrive(runtime());
}

void ProtectedRank::pup(base::Pup& p) {
  std::uint64_t fingerprint = program().moves->fingerprint;
  Ranges ranges;
  if (!p.is_unpacking()) ranges = own_ranges();
  const std::size_t count = p.count(ranges.size(), sizeof(weft_mpi_host_range));
  if (p.is_unpacking()) ranges.resize(count);
  p.bytes(ranges.data(), ranges.size() * sizeof(weft_mpi_host_range));
  p | fingerprint;
  if (p.is_unpacking()) make_room(p, fingerprint, ranges);
  for (const weft_mpi_host_range& range : ranges) p.bytes(range.begin, range.size_bytes);
  if (p.is_unpacking()) arrive();
}

}  // namespace

runtime::Task<std::string> protect_ranks(runtime::Runtime& runtime, RankMap map) {
  std::vector<std::uint32_t> places;
  for (int rank = 0; rank < map.num_ranks(); ++rank)
    places.push_back(static_cast<std::uint32_t>(map.pe_of(rank)));
  const chare::Shape shape = chare::Shape(map.num_ranks()).with_table(std::move(places));
  const auto ranks = chare::Array<ProtectedRank>::create(runtime, shape);
  std::string failure;
  try {
    co_await ranks.created();
    co_await chare::protect(runtime, ranks);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  co_await ranks.destroy();
  co_return failure;
}

runtime::Task<bool> recover_ranks(runtime::Runtime& runtime) {
  chare::Array<ProtectedRank> ranks;
  if (co_await chare::recover(runtime, ranks) == 0) co_return false;
  co_await ranks.destroy();
  co_return true;
}

}  // namespace weft::mpi
