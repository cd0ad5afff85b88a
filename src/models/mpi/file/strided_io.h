// Accesses of one process to the bytes of a view: piece by piece, or several pieces by one read ("data sieving").
//
// Writes are never sieved: to write the gaps too, a process would have to keep all others from writing there, also those that ask for
// no lock. Calls block the process. Threads: any, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "models/mpi/file/file_view.h"
#include "models/mpi/file/posix_file.h"

namespace weft::mpi {

struct Sieving {
  // The gaps in the file that are read too.
  std::int64_t most_gap_bytes = 0;
  // At most so many bytes of the file are read by one call, pieces that are larger apart.
  std::int64_t buffer_bytes = 0;
};

// Reads the bytes of the view from position `first` on. `got`: how many there are before the end of the file. REQUIRES: the positions
// fit the view.
Error read_view(const PosixFile& file, const FileView& view, std::int64_t first, std::span<std::byte> bytes,
                const Sieving& sieving, std::size_t* got);
Error write_view(const PosixFile& file, const FileView& view, std::int64_t first,
                 std::span<const std::byte> bytes);

}  // namespace weft::mpi
