#include "models/mpi/file/file_opening.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/format.h"
#include "models/mpi/communicators/communicator_creation.h"
#include "models/mpi/file/agreement.h"
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

Error make_absolute(std::string& path) {
  std::error_code failure;
  const std::filesystem::path absolute = std::filesystem::absolute(path, failure);
  if (failure) return error_of_system(failure.value(), "find the folder of", path);
  path = absolute.string();
  return {};
}

// Throws the error of this process, or the first one of the others.
runtime::Task<> check_all(CollectiveContext context, Error error, int mode) {
  SameArgument argument{"mode", mode};
  const Error agreed = co_await agree(std::move(context), std::move(error), std::move(argument));
  if (!agreed.ok()) throw TransferFailed(agreed.error_class, agreed.text);
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
  // The process may be in another folder when it deletes the file.
  if (error.ok() && (mode & MPI_MODE_DELETE_ON_CLOSE) != 0) error = make_absolute(path);
  co_await check_all(next_context(), error, mode);
  // The first process alone creates the file, so the others find it.
  int creation = 0;
  if ((mode & MPI_MODE_CREATE) != 0) creation = O_CREAT | ((mode & MPI_MODE_EXCL) != 0 ? O_EXCL : 0);
  if (communicator.rank() == 0) error = PosixFile::open(path, system_flags(mode) | creation, &parts.file);
  co_await check_all(next_context(), error, mode);
  if (communicator.rank() != 0) error = PosixFile::open(path, system_flags(mode), &parts.file);
  co_await check_all(next_context(), error, mode);
  parts.shared_pointer = co_await SharedFilePointer::make(parts.communicator);
  Rank& rank = this_rank();
  Ref<Datatype> bytes(*rank.types.find(MPI_BYTE));
  error =
      FileView::make({0, bytes, bytes, rank.representations.find("native")}, false, rank.types, &parts.view);
  std::int64_t size_bytes = 0;
  if (error.ok() && (mode & MPI_MODE_APPEND) != 0) error = parts.file.find_size(&size_bytes);
  if (error.ok() && communicator.rank() == 0) co_await parts.shared_pointer.set(size_bytes);
  co_await check_all(next_context(), error, mode);
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
