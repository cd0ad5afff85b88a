#include "models/mpi/window/wire.h"

#include <cstring>
#include <string>

#include "base/format.h"
#include "base/refuse_claim.h"
#include "models/mpi/datatype/basic_type.h"
#include "models/mpi/datatype/checked.h"
#include "models/mpi/operation/reduction_operator.h"

namespace weft::mpi {

namespace {

[[noreturn, gnu::cold, gnu::noinline]] void refuse_access(int source, const std::string& what) {
  base::refuse_claim(base::format("a one-sided access of rank {} of a window {}", source, what),
                     "do all PEs run the same version of Weft?");
}

// The packed size of a unit; 0 if the number is that of no predefined datatype.
std::uint64_t unit_bytes(std::uint16_t unit) {
  const auto handle = reinterpret_cast<MPI_Datatype>(std::uintptr_t{unit} + kFirstTypeConstant);
  if (unit >= kNumPredefinedTypes) return 0;
  if (const BasicType* const basic = basic_type(handle)) return basic->size;
  const PairType* const pair = pair_type(handle);
  return pair == nullptr ? 0 : std::uint64_t{basic_type(pair->value)->size} + basic_type(pair->index)->size;
}

void check_header(int source, const AccessHeader& header) {
  if (static_cast<int>(header.kind) >= kNumAccessKinds || (header.flags & ~kKnownAccessFlags) != 0)
    refuse_access(source,
                  base::format("has kind {} and flags {:#x}", static_cast<int>(header.kind), header.flags));
  if (header.size_bytes == 0 || header.size_bytes > INT64_MAX || header.num_runs == 0 ||
      header.num_runs > kMostRuns || header.num_runs > header.size_bytes)
    refuse_access(source, base::format("is of {} bytes in {} runs", header.size_bytes, header.num_runs));
  if (!header.is_accumulate()) return;
  const std::uint64_t unit = unit_bytes(header.unit);
  const bool has_operation =
      header.kind == AccessKind::kCompareAndSwap || predefined_operation_name(header.operation) != nullptr;
  // Elements are combined as bytes, or as what they are.
  const bool is_whole = header.whole_bytes == 0 || header.unit == predefined_number(MPI_BYTE);
  const bool is_one = header.kind != AccessKind::kCompareAndSwap || header.size_bytes == unit;
  if (unit == 0 || header.size_bytes % unit != 0 || !has_operation || !is_one || !is_whole) {
    refuse_access(source, base::format("combines {} bytes of datatype {} by operator {}", header.size_bytes,
                                       header.unit, header.operation));
  }
}

}  // namespace

std::uint64_t AccessHeader::sent_bytes() const {
  switch (kind) {
    case AccessKind::kPut:
      return size_bytes;
    case AccessKind::kGet:
      return 0;
    case AccessKind::kAccumulate:
    case AccessKind::kGetAccumulate:
      return operation == reinterpret_cast<std::uintptr_t>(MPI_NO_OP) ? 0 : size_bytes;
    case AccessKind::kCompareAndSwap:
      return 2 * size_bytes;
  }
  return 0;
}

ArrivedAccess parse_access(int source, std::span<const std::byte> message) {
  ArrivedAccess access;
  AccessHeader& header = access.header;
  if (message.size() < sizeof header)
    refuse_access(source,
                  base::format("has {} bytes, and its header alone has {}", message.size(), sizeof header));
  std::memcpy(&header, message.data(), sizeof header);
  check_header(source, header);
  std::span<const std::byte> rest = message.subspan(sizeof header);
  const std::uint64_t run_bytes = access.awaits_runs() ? 0 : header.num_runs * sizeof(WindowRun);
  const std::uint64_t data_bytes = (header.flags & kDataInside) != 0 ? header.sent_bytes() : 0;
  if (rest.size() < run_bytes || rest.size() - run_bytes != data_bytes) {
    refuse_access(source, base::format("has {} bytes behind its header, not {} of runs and {} of data",
                                       rest.size(), run_bytes, data_bytes));
  }
  if (header.kind == AccessKind::kCompareAndSwap && (header.flags & kDataInside) == 0)
    refuse_access(source, "compares without a value");
  if (run_bytes > 0) {
    access.runs.resize(header.num_runs);
    std::memcpy(access.runs.data(), rest.data(), run_bytes);
    check_runs(source, header, access.runs);
  }
  access.data.assign(rest.begin() + static_cast<std::ptrdiff_t>(run_bytes), rest.end());
  return access;
}

void check_runs(int source, const AccessHeader& header, std::span<const WindowRun> runs) {
  Wide sum = 0;
  for (const WindowRun& run : runs) {
    if (run.size_bytes == 0 || run.count == 0 || run.size_bytes > header.size_bytes ||
        run.count > header.size_bytes)
      refuse_access(source, base::format("has a run of {} times {} bytes", run.count, run.size_bytes));
    sum += Wide{static_cast<std::int64_t>(run.size_bytes)} * static_cast<std::int64_t>(run.count);
  }
  if (sum != Wide{static_cast<std::int64_t>(header.size_bytes)})
    refuse_access(source, base::format("has runs of another size than its {} bytes", header.size_bytes));
}

bool is_inside(const WindowRun& run, std::uint64_t first, std::uint64_t size_bytes) {
  const Wide start = run.offset;
  const Wide last = start + Wide{run.stride} * Wide{run.count - 1};
  const Wide low = start < last ? start : last;
  const Wide high = (start < last ? last : start) + Wide{run.size_bytes};
  return low >= Wide{first} && high <= Wide{first} + Wide{size_bytes};
}

}  // namespace weft::mpi
