#include "models/mpi/file/part_access.h"

#include <string_view>

#include "base/format.h"
#include "base/refuse_claim.h"
#include "models/mpi/datatype/checked.h"

namespace weft::mpi {

namespace {

[[noreturn]] void refuse(int source, std::string_view what) {
  base::refuse_claim(base::format("rank {} of a file claims {} in a collective access", source, what),
                     "do all PEs run the same version of Weft?");
}

// Whether the run begins at `begin` or later and ends before the end of the part. Sets where it ends.
bool is_in_part(const WindowRun& run, std::int64_t begin, const Part& part, std::int64_t* end) {
  const auto room = static_cast<std::uint64_t>(part.end - part.begin);
  if (run.offset < begin || run.offset >= part.end || run.count == 0 || run.count > room ||
      run.size_bytes == 0 || run.size_bytes > room)
    return false;
  if (run.count > 1 && (run.stride < 0 || static_cast<std::uint64_t>(run.stride) < run.size_bytes))
    return false;
  const Wide last = run.offset + (Wide{run.count} - 1) * run.stride + Wide{run.size_bytes};
  if (last > part.end || last <= run.offset) return false;
  *end = static_cast<std::int64_t>(last);
  return true;
}

}  // namespace

void check_header(int source, const PartHeader& header, const Part& part) {
  if (header.size_bytes > static_cast<std::uint64_t>(part.end - part.begin) ||
      header.num_runs > header.size_bytes || (header.num_runs == 0) != (header.size_bytes == 0))
    refuse(source, "more bytes than a part of the file has");
}

void check_part_runs(int source, const PartAccess& access, const Part& part) {
  std::uint64_t sum = 0;
  std::int64_t end = part.begin;
  for (const WindowRun& run : access.runs) {
    if (!is_in_part(run, end, part, &end))
      refuse(source, "a run of bytes that is not in its part of the file");
    sum += run.size_bytes * run.count;
  }
  if (sum != access.header.size_bytes) refuse(source, "runs of another size");
}

}  // namespace weft::mpi
