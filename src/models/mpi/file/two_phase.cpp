#include "models/mpi/file/two_phase.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "models/mpi/collective/transfers.h"
#include "models/mpi/file/coverage.h"
#include "models/mpi/file/part_access.h"
#include "models/mpi/window/target_runs.h"

namespace weft::mpi {

namespace {

constexpr std::int64_t kPageBytes = 4096;  // two aggregators never write to the same page
// Aggregators go through all of their domain. If less than this part of it is accessed, that takes longer than it saves.
constexpr std::int64_t kSparse = 16;
constexpr std::int64_t kMostRounds = 1 << 20;  // also if the program wants aggregators
// Pieces of the file of this mean size are written, or read, faster by each process itself (docs/decisions/mpi-files.md).
constexpr std::int64_t kLargeWriteBytes = 32 << 10;
constexpr std::int64_t kLargeReadBytes = 4 << 10;
constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

// What each process tells the others before the access.
struct Claim {
  std::int32_t error = MPI_SUCCESS;
  std::int32_t is_write = 0;
  std::int32_t is_monotonic = 1;
  std::int32_t use = 0;
  std::int64_t first = 0;  // the offsets of the first byte and behind the last one
  std::int64_t end = 0;
  std::int64_t size_bytes = 0;
  std::int64_t num_pieces = 0;
  std::int64_t buffer_bytes = 0;
  std::int64_t num_aggregators = 1;
};

// What each process tells the others after it.
struct Ending {
  std::int32_t error = MPI_SUCCESS;
  std::int32_t unused = 0;
  std::int64_t end_of_file = kNoEnd;  // as far as the process has seen it
};

template <class T>
DataView view_of_value(T& value) {
  return DataView::of_bytes(&value, sizeof value);
}
DataView view_of_runs(std::vector<WindowRun>& runs) {
  return DataView::of_bytes(runs.data(), runs.size() * sizeof(WindowRun));
}

class Operation {
 public:
  Operation(CollectiveContext context, CollectiveAccess access)
      : context_(std::move(context)), access_(std::move(access)) {}

  runtime::Task<std::size_t> run() {
    const Claim mine = own_claim();
    claims_ = co_await tell_all(mine);
    for (std::size_t rank = 0; rank < claims_.size(); ++rank) {
      if (claims_[rank].is_write != mine.is_write)
        throw TransferFailed(MPI_ERR_NOT_SAME,
                             "some processes of the file read and others write in one collective call");
      note_error_of(rank, claims_[rank].error);
    }
    throw_if_failed();
    if (use_aggregators()) co_return co_await run_rounds();
    co_return access_alone();
  }

 private:
  template <class T>
  runtime::Task<std::vector<T>> tell_all(T mine) {
    const std::vector<std::byte> bytes = co_await allgather_bytes(context_, bytes_of_value(mine));
    std::vector<T> all(static_cast<std::size_t>(context_.size()));
    std::memcpy(static_cast<void*>(all.data()), bytes.data(), bytes.size());
    co_return all;
  }

  Claim own_claim() {
    if (!access_.error.ok()) access_.bytes = {};
    Claim mine;
    mine.error = access_.error.error_class;
    mine.is_write = access_.is_write ? 1 : 0;
    mine.is_monotonic = access_.view->is_monotonic() ? 1 : 0;
    mine.use = static_cast<std::int32_t>(access_.use);
    mine.size_bytes = static_cast<std::int64_t>(access_.bytes.size());
    mine.num_pieces = access_.view->num_pieces(mine.size_bytes);
    mine.buffer_bytes = access_.buffer_bytes;
    mine.num_aggregators = access_.num_aggregators;
    if (mine.size_bytes > 0) {
      mine.first = access_.view->offset_of(access_.first);
      mine.end = access_.view->offset_of(access_.first + mine.size_bytes - 1) + 1;
    }
    return mine;
  }

  // All processes find the same.
  bool use_aggregators() {
    const Claim& first = claims_.front();
    Wide sum = 0;
    Wide num_pieces = 0;
    std::vector<Part> ranges;
    for (const Claim& claim : claims_) {
      if (claim.is_monotonic == 0) return false;
      if (claim.size_bytes == 0) continue;
      if (claim.size_bytes < 0 || claim.first < 0 || claim.end < claim.first) return false;
      ranges.push_back({claim.first, claim.end});
      sum += claim.size_bytes;
      num_pieces += claim.num_pieces;
    }
    const auto use = static_cast<AggregatorUse>(first.use);
    if (use == AggregatorUse::kNever || ranges.empty()) return false;
    std::ranges::sort(ranges, {}, &Part::begin);
    all_.begin = ranges.front().begin;
    all_.end = std::ranges::max(ranges, {}, &Part::end).end;
    num_aggregators_ = static_cast<int>(std::clamp<std::int64_t>(first.num_aggregators, 1, context_.size()));
    buffer_bytes_ = std::clamp<std::int64_t>(first.buffer_bytes, kPageBytes, std::int64_t{1} << 31);
    if (num_rounds() > kMostRounds) return false;
    if (use == AggregatorUse::kAlways) return true;
    bool is_interleaved = false;
    for (std::size_t i = 1; i < ranges.size(); ++i) is_interleaved |= ranges[i].begin < ranges[i - 1].end;
    const std::int64_t large = access_.is_write ? kLargeWriteBytes : kLargeReadBytes;
    return is_interleaved && sum < num_pieces * large && sum * kSparse >= all_.end - all_.begin;
  }

  std::size_t access_alone() {
    std::size_t got = access_.bytes.size();
    const Error error =
        access_.is_write
            ? write_view(*access_.file, *access_.view, access_.first, access_.bytes)
            : read_view(*access_.file, *access_.view, access_.first, access_.bytes, access_.sieving, &got);
    if (!error.ok()) throw TransferFailed(error.error_class, error.text);
    return got;
  }

  // --- Domains
  std::int64_t domain_begin(int aggregator) const {
    if (aggregator == num_aggregators_) return all_.end;
    const Wide distance = Wide{all_.end - all_.begin} * aggregator / num_aggregators_;
    if (distance == 0) return all_.begin;
    const std::int64_t begin = all_.begin + static_cast<std::int64_t>(distance);
    return std::clamp(begin / kPageBytes * kPageBytes, all_.begin, all_.end);
  }
  int rank_of(int aggregator) const {
    return static_cast<int>(std::int64_t{aggregator} * context_.size() / num_aggregators_);
  }
  Part part_of(int aggregator, std::int64_t round) const {
    const std::int64_t end = domain_begin(aggregator + 1);
    const Wide begin = domain_begin(aggregator) + Wide{round} * buffer_bytes_;
    if (begin >= end) return {};
    const auto from = static_cast<std::int64_t>(begin);
    return {from, end - from <= buffer_bytes_ ? end : from + buffer_bytes_};
  }
  // Whether a process tells the aggregator of the part about its access.
  bool takes_part(int rank, const Part& part) const {
    const Claim& claim = claims_[static_cast<std::size_t>(rank)];
    return claim.size_bytes > 0 && claim.first < part.end && part.begin < claim.end;
  }
  std::int64_t num_rounds() const {
    std::int64_t most = 0;
    for (int i = 0; i < num_aggregators_; ++i) most = std::max(most, domain_begin(i + 1) - domain_begin(i));
    return (most + buffer_bytes_ - 1) / buffer_bytes_;
  }

  // --- Rounds
  runtime::Task<std::size_t> run_rounds() {
    for (int i = 0; i < num_aggregators_; ++i)
      if (rank_of(i) == context_.rank()) own_ = i;
    const std::int64_t rounds = num_rounds();
    for (std::int64_t round = 0; round < rounds; ++round) co_await run_round(round);
    Ending mine;
    mine.error = access_.error.error_class;
    mine.end_of_file = end_of_file_;
    const std::vector<Ending> endings = co_await tell_all(mine);
    std::int64_t end_of_file = kNoEnd;
    for (std::size_t rank = 0; rank < endings.size(); ++rank) {
      note_error_of(rank, endings[rank].error);
      end_of_file = std::min(end_of_file, endings[rank].end_of_file);
    }
    throw_if_failed();
    const auto size = static_cast<std::int64_t>(access_.bytes.size());
    if (end_of_file == kNoEnd) co_return access_.bytes.size();
    co_return static_cast<std::size_t>(
        std::clamp<std::int64_t>(access_.view->bytes_before(end_of_file) - access_.first, 0, size));
  }

  // --- Errors. A process that has failed takes all steps that follow, because the others wait for its messages: it accesses nothing, and
  // as an aggregator sends and receives no bytes, which is MPI_ERR_TRUNCATE for the process at the other end.
  void fail(Error error) {
    if (access_.error.ok()) access_.error = std::move(error);
    for (PartAccess& theirs : theirs_) theirs.runs.clear();
  }
  void throw_if_failed() const {
    if (!access_.error.ok()) throw TransferFailed(access_.error.error_class, access_.error.text);
  }
  void fail_without_memory() {
    fail({MPI_ERR_NO_MEM,
          "there is no memory for the exchange of a collective access; a smaller cb_buffer_size "
          "needs less"});
  }
  void keep_error_of(const Transfers& transfers) {
    try {
      transfers.throw_if_failed();
    } catch (const TransferFailed& failure) {
      fail({failure.error_class(), failure.what()});
    } catch (const std::bad_alloc&) {
      fail_without_memory();
    }
  }
  // MPI_ERR_TRUNCATE follows from an error of another process, which is told instead.
  void note_error_of(std::size_t rank, int error_class) {
    if (error_class == MPI_SUCCESS) return;
    const int known = access_.error.error_class;
    if (known == MPI_SUCCESS || (known == MPI_ERR_TRUNCATE && error_class != MPI_ERR_TRUNCATE))
      access_.error = {error_class,
                       base::format("rank {} of the file has failed in a collective access", rank)};
  }

  // The access of this process in a part.
  PartAccess own_access(const Part& part) {
    if (!access_.error.ok()) return {};
    const std::int64_t last = access_.first + static_cast<std::int64_t>(access_.bytes.size());
    PartAccess found;
    found.first = std::clamp(access_.view->bytes_before(part.begin), access_.first, last);
    const std::int64_t end = std::clamp(access_.view->bytes_before(part.end), found.first, last);
    try {
      access_.view->for_each_run(found.first, end, [&](const FileRun& run) {
        found.runs.push_back({run.offset, static_cast<std::uint64_t>(run.size_bytes),
                              static_cast<std::uint64_t>(run.count), run.stride});
      });
    } catch (const std::bad_alloc&) {
      fail_without_memory();
      return {};
    }
    found.header = {found.runs.size(), static_cast<std::uint64_t>(end - found.first)};
    return found;
  }
  DataView own_bytes(const PartAccess& mine) const {
    return DataView::of_bytes(access_.bytes.data() + (mine.first - access_.first), mine.header.size_bytes);
  }

  // Tells the aggregators what this process accesses, and, as an aggregator, asks the others.
  runtime::Task<> exchange_headers(std::int64_t round) {
    const auto num_parts = static_cast<std::size_t>(num_aggregators_);
    mine_.assign(num_parts, {});
    theirs_.assign(own_ < 0 ? 0 : claims_.size(), {});
    Transfers transfers(context_);
    for (int to = 0; to < num_aggregators_; ++to) {
      const Part part = part_of(to, round);
      if (!takes_part(context_.rank(), part)) continue;
      PartAccess& mine = mine_[static_cast<std::size_t>(to)];
      mine = own_access(part);
      transfers.send(rank_of(to), view_of_value(mine.header));
    }
    for (std::size_t from = 0; from < theirs_.size(); ++from) {
      if (takes_part(static_cast<int>(from), part_))
        transfers.receive(static_cast<int>(from), view_of_value(theirs_[from].header));
    }
    co_await transfers.wait();
    transfers.throw_if_failed();
  }

  runtime::Task<> run_round(std::int64_t round) {
    if (own_ >= 0) part_ = part_of(own_, round);
    co_await exchange_headers(round);
    make_room();
    co_await exchange_runs();
    if (!access_.is_write) access_file();
    co_await exchange_bytes();
    if (access_.is_write) access_file();
  }

  // As an aggregator, for what the processes access in the part.
  void make_room() {
    for (std::size_t from = 0; from < theirs_.size(); ++from)
      check_header(static_cast<int>(from), theirs_[from].header, part_);
    if (own_ < 0 || !access_.error.ok()) return;
    try {
      // The first part is the largest.
      if (buffer_ == nullptr)
        buffer_ =
            std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(part_.end - part_.begin));
      for (PartAccess& theirs : theirs_) theirs.runs.resize(theirs.header.num_runs);
    } catch (const std::bad_alloc&) {
      fail_without_memory();
    }
  }

  runtime::Task<> exchange_runs() {
    Transfers transfers(context_);
    for (int to = 0; to < num_aggregators_; ++to) {
      PartAccess& mine = mine_[static_cast<std::size_t>(to)];
      if (mine.header.size_bytes > 0) transfers.send(rank_of(to), view_of_runs(mine.runs));
    }
    for (std::size_t from = 0; from < theirs_.size(); ++from) {
      PartAccess& theirs = theirs_[from];
      if (theirs.header.size_bytes > 0) transfers.receive(static_cast<int>(from), view_of_runs(theirs.runs));
    }
    co_await transfers.wait();
    keep_error_of(transfers);
    for (std::size_t from = 0; from < theirs_.size() && access_.error.ok(); ++from)
      check_part_runs(static_cast<int>(from), theirs_[from], part_);
  }

  runtime::Task<> exchange_bytes() {
    Transfers transfers(context_);
    const auto move = [&](bool is_out, int rank, const DataView& view) {
      if (is_out) {
        transfers.send(rank, view);
      } else {
        transfers.receive(rank, view);
      }
    };
    // Receives before the sends.
    for (const bool is_out : {false, true}) {
      const bool is_own_side = access_.is_write == is_out;
      for (int to = 0; is_own_side && to < num_aggregators_; ++to) {
        const PartAccess& mine = mine_[static_cast<std::size_t>(to)];
        if (mine.header.size_bytes > 0) move(is_out, rank_of(to), own_bytes(mine));
      }
      for (std::size_t rank = 0; !is_own_side && rank < theirs_.size(); ++rank) {
        if (theirs_[rank].header.size_bytes > 0)
          move(is_out, static_cast<int>(rank), view_in_buffer(theirs_[rank].runs));
      }
    }
    co_await transfers.wait();
    keep_error_of(transfers);
  }

  DataView view_in_buffer(std::vector<WindowRun> runs) {
    if (runs.empty()) return {};
    for (WindowRun& run : runs) run.offset -= part_.begin;
    return runs_view(buffer_.get(), std::move(runs));
  }

  // As an aggregator: reads or writes what the processes access in the part.
  void access_file() {
    if (own_ < 0 || !access_.error.ok()) return;
    try {
      const Coverage coverage = find_coverage();
      const std::int64_t most_gap = access_.is_write ? 0 : access_.sieving.most_gap_bytes;
      coverage.for_each_range(most_gap,
                              [&](std::int64_t begin, std::int64_t end) { access_range(begin, end); });
    } catch (const std::bad_alloc&) {
      fail_without_memory();
    }
  }
  Coverage find_coverage() const {
    Coverage coverage(part_.end - part_.begin);
    for (const PartAccess& theirs : theirs_)
      for (const WindowRun& run : theirs.runs)
        for (std::uint64_t i = 0; i < run.count; ++i) {
          const std::int64_t begin = run.offset - part_.begin + static_cast<std::int64_t>(i) * run.stride;
          coverage.mark(begin, begin + static_cast<std::int64_t>(run.size_bytes));
        }
    return coverage;
  }
  void access_range(std::int64_t begin, std::int64_t end) {
    if (!access_.error.ok()) return;
    const std::span bytes(buffer_.get() + begin, static_cast<std::size_t>(end - begin));
    const std::int64_t offset = part_.begin + begin;
    std::size_t got = bytes.size();
    Error error =
        access_.is_write ? access_.file->write(bytes, offset) : access_.file->read(bytes, offset, &got);
    if (!error.ok()) fail(std::move(error));
    if (got == bytes.size()) return;
    std::ranges::fill(bytes.subspan(got), std::byte{0});
    end_of_file_ = std::min(end_of_file_, offset + static_cast<std::int64_t>(got));
  }

  const CollectiveContext context_;
  CollectiveAccess access_;
  std::vector<Claim> claims_;
  Part all_;
  int num_aggregators_ = 1;
  std::int64_t buffer_bytes_ = 0;
  std::int64_t end_of_file_ = kNoEnd;

  // --- Of a round
  std::vector<PartAccess> mine_;  // for each aggregator
  // As an aggregator:
  int own_ = -1;  // its number; below 0 for no aggregator
  Part part_;
  std::vector<PartAccess> theirs_;
  std::unique_ptr<std::byte[]> buffer_;
};

}  // namespace

runtime::Task<std::size_t> access_collectively(CollectiveContext context, CollectiveAccess access) {
  Operation operation(std::move(context), std::move(access));
  co_return co_await operation.run();
}

}  // namespace weft::mpi
