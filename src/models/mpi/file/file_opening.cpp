#include "models/mpi/file/file_opening.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "base/format.h"
#include "models/mpi/communicators/communicator_creation.h"
#include "models/mpi/rank.h"

namespace weft::mpi {

namespace {

constexpr int kDirections = MPI_MODE_RDONLY | MPI_MODE_RDWR | MPI_MODE_WRONLY;
constexpr int kKnownModes = kDirections | MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE |
                            MPI_MODE_UNIQUE_OPEN | MPI_MODE_SEQUENTIAL | MPI_MODE_APPEND;

int system_flags(int mode) {
  if ((mode & MPI_MODE_RDONLY) != 0) return O_RDONLY;
  return (mode & MPI_MODE_WRONLY) != 0 ? O_WRONLY : O_RDWR;
}

struct Opened {
  std::int32_t error = MPI_SUCCESS;
  std::int32_t mode = 0;
};

// Throws the error of this process, or the first one of the others.
runtime::Task<> agree(CollectiveContext context, Error error, int mode) {
  Opened mine{error.error_class, mode};
  const std::vector<std::byte> all = co_await allgather_bytes(context, bytes_of_value(mine));
  if (!error.ok()) throw TransferFailed(error.error_class, error.text);
  for (int rank = 0; rank < context.size(); ++rank) {
    Opened other;
    std::memcpy(&other, all.data() + static_cast<std::size_t>(rank) * sizeof other, sizeof other);
    if (other.error != MPI_SUCCESS)
      throw TransferFailed(other.error, base::format("rank {} cannot open the file", rank));
    if (other.mode != mode)
      throw TransferFailed(MPI_ERR_NOT_SAME,
                           base::format("rank {} opens the file with the mode {}, and this rank with {}",
                                        rank, other.mode, mode));
  }
}

}  // namespace

Error check_access_mode(int mode) {
  if ((mode & ~kKnownModes) != 0)
    return {MPI_ERR_AMODE, base::format("the mode {} has bits that are no MPI_MODE of files", mode)};
  if (std::popcount(static_cast<unsigned>(mode & kDirections)) != 1)
    return {MPI_ERR_AMODE, "give one of MPI_MODE_RDONLY, MPI_MODE_RDWR and MPI_MODE_WRONLY"};
  if ((mode & MPI_MODE_RDONLY) != 0 && (mode & (MPI_MODE_CREATE | MPI_MODE_EXCL)) != 0)
    return {MPI_ERR_AMODE, "MPI_MODE_RDONLY goes with neither MPI_MODE_CREATE nor MPI_MODE_EXCL"};
  if ((mode & MPI_MODE_RDWR) != 0 && (mode & MPI_MODE_SEQUENTIAL) != 0)
    return {MPI_ERR_AMODE, "MPI_MODE_RDWR does not go with MPI_MODE_SEQUENTIAL"};
  return {};
}

runtime::Task<Ref<File>> open_file(Ref<Communicator> parent, std::string path, int mode,
                                   const Info::Pairs* hints, Error error, Ref<ErrorHandler> handler) {
  File::Parts parts;
  parts.mode = mode;
  parts.communicator = begin_duplicate(*parent);
  co_await duplicate(parent, parts.communicator);
  Communicator& communicator = *parts.communicator;
  const auto next_context = [&] { return communicator.next_collective_contexts().local; };
  co_await agree(next_context(), error, mode);
  // The first process alone creates the file, so the others find it.
  const int creation =
      ((mode & MPI_MODE_CREATE) != 0 ? O_CREAT : 0) | ((mode & MPI_MODE_EXCL) != 0 ? O_EXCL : 0);
  if (communicator.rank() == 0) error = PosixFile::open(path, system_flags(mode) | creation, &parts.file);
  co_await agree(next_context(), error, mode);
  if (communicator.rank() != 0) error = PosixFile::open(path, system_flags(mode), &parts.file);
  co_await agree(next_context(), error, mode);
  parts.shared_pointer = co_await SharedFilePointer::make(parts.communicator);
  Rank& rank = this_rank();
  Ref<Datatype> bytes(*rank.types.find(MPI_BYTE));
  error =
      FileView::make({0, bytes, bytes, rank.representations.find("native")}, false, rank.types, &parts.view);
  std::int64_t size_bytes = 0;
  if (error.ok() && (mode & MPI_MODE_APPEND) != 0) error = parts.file.find_size(&size_bytes);
  if (error.ok() && communicator.rank() == 0) co_await parts.shared_pointer.set(size_bytes);
  co_await agree(next_context(), error, mode);
  parts.hints = default_file_hints(communicator.size());
  if (hints != nullptr) use_file_hints(*hints, communicator.size(), parts.hints);
  auto made = Ref<File>::adopt(new File(std::move(parts), std::move(handler)));
  if (size_bytes > 0)
    if (Error seeking = made->seek(size_bytes, MPI_SEEK_SET);
        !seeking.ok() && made->check_random_access().ok())
      throw TransferFailed(seeking.error_class, seeking.text);
  co_return made;
}

}  // namespace weft::mpi
