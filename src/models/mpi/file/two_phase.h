// Collective accesses of a file. Some of the processes, the aggregators, access the file for all: each has a domain, a part of the file
// in which the accesses lie. In rounds, each process sends an aggregator the places and the bytes that it writes in a part of the domain,
// or gets the bytes that it reads there.
//
// If the accesses of the processes do not lie between each other, or their pieces are large, each process accesses the file itself.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/runtime/task.h"

#include "models/mpi/communicators/collective_context.h"
#include "models/mpi/file/file_view.h"
#include "models/mpi/file/posix_file.h"
#include "models/mpi/file/strided_io.h"

namespace weft::mpi {

// Whether aggregators are used: if it pays, always, or never.
enum class AggregatorUse : std::int32_t { kIfUseful, kAlways, kNever };

struct CollectiveAccess {
  const PosixFile* file = nullptr;
  const FileView* view = nullptr;
  bool is_write = false;
  std::int64_t first = 0;      // the position in the view
  std::span<std::byte> bytes;  // of the view
  Sieving sieving;             // of reads
  // The values of the first process count.
  AggregatorUse use = AggregatorUse::kIfUseful;
  std::int32_t num_aggregators = 1;
  std::int64_t buffer_bytes = 0;  // of each aggregator
  // What has failed in this process before. All processes fail then, and nothing is accessed.
  Error error;
};

// Returns how many bytes there are before the end of the file. Throws TransferFailed: the error of this process, or the first one of the
// others. What `access` refers to outlives the call.
runtime::Task<std::size_t> access_collectively(CollectiveContext context, CollectiveAccess access);

}  // namespace weft::mpi
