// Pointers, views, sizes, modes and the end of files.
#include "models/mpi/file/file.h"

#include <unistd.h>

#include <cerrno>
#include <functional>
#include <utility>

#include "base/format.h"
#include "models/mpi/collective/team_collectives.h"
#include "models/mpi/datatype/checked.h"
#include "models/mpi/process.h"

namespace weft::mpi {

namespace {

// The work of the first process, which the others wait for.
runtime::Task<Error> work_of_first(CollectiveContext context, std::function<runtime::Task<Error>()> work) {
  Error error;
  if (context.rank() == 0) error = co_await work();
  std::int32_t error_class = error.error_class;
  co_await broadcast_bytes(context, 0, bytes_of_value(error_class));
  if (error.ok() && error_class != MPI_SUCCESS)
    error = {error_class, "the first process of the file has failed"};
  co_return error;
}

}  // namespace

File::File(Parts parts, Ref<ErrorHandler> handler)
    : ErrorScope(ObjectKind::kFile, std::move(handler)),
      hints(std::move(parts.hints)),
      communicator_(std::move(parts.communicator)),
      file_(std::move(parts.file)),
      shared_pointer_(std::move(parts.shared_pointer)),
      mode_(parts.mode),
      view_(std::move(parts.view)) {
  set_name(file_.path());
}

Error File::agree(Error mine, SameArgument argument) const {
  return this_process().run(
      mpi::agree(communicator_->next_collective_contexts().local, std::move(mine), std::move(argument)));
}

template <class Work>
Error File::do_at_first(const Work& work) {
  return this_process().run(work_of_first(communicator_->next_collective_contexts().local, work));
}

// --- Pointers

Error File::check_random_access() const {
  if ((mode_ & MPI_MODE_SEQUENTIAL) == 0) return {};
  return {MPI_ERR_UNSUPPORTED_OPERATION,
          "the file was opened with MPI_MODE_SEQUENTIAL, so only the shared pointer can be used"};
}

Error File::find_byte_offset(MPI_Offset position, MPI_Offset* offset) const {
  if (position < 0) return {MPI_ERR_ARG, base::format("the offset {} is negative", position)};
  std::int64_t bytes = 0;
  if (!view_->has_bytes() || __builtin_mul_overflow(position, view_->etype_bytes(), &bytes) ||
      bytes == INT64_MAX || !view_->fits(bytes, bytes + 1))
    return {MPI_ERR_ARG, base::format("the offset {} is outside of the view", position)};
  *offset = view_->offset_of(bytes);
  return {};
}

std::int64_t File::end_position(std::int64_t size_bytes) const {
  const std::int64_t etype_bytes = view_->etype_bytes();
  return etype_bytes == 0 ? 0 : (view_->bytes_before(size_bytes) + etype_bytes - 1) / etype_bytes;
}

namespace {

// `base`: the position that `offset` counts from.
Error sum_of(MPI_Offset base, MPI_Offset offset, MPI_Offset* position) {
  if (__builtin_add_overflow(base, offset, position) || *position < 0)
    return {MPI_ERR_ARG, base::format("the offset {} leads to a position before the begin of the view, or to "
                                      "one that does not fit 64 bits",
                                      offset)};
  return {};
}

Error check_whence(int whence) {
  if (whence == MPI_SEEK_SET || whence == MPI_SEEK_CUR || whence == MPI_SEEK_END) return {};
  return {MPI_ERR_ARG, base::format("whence is {}; give MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END", whence)};
}

}  // namespace

Error File::seek(MPI_Offset offset, int whence) {
  if (Error error = check_random_access(); !error.ok()) return error;
  if (Error error = check_whence(whence); !error.ok()) return error;
  MPI_Offset base = whence == MPI_SEEK_CUR ? position_ : 0;
  if (whence == MPI_SEEK_END) {
    std::int64_t size_bytes = 0;
    if (Error error = file_.find_size(&size_bytes); !error.ok()) return error;
    base = end_position(size_bytes);
  }
  MPI_Offset position = 0;
  if (Error error = sum_of(base, offset, &position); !error.ok()) return error;
  position_ = position;
  return {};
}

Error File::seek_shared(MPI_Offset offset, int whence) {
  Error error = check_random_access();
  if (error.ok()) error = check_whence(whence);
  if (error = agree(std::move(error), {"offset", offset}); !error.ok()) return error;
  return do_at_first([&]() -> runtime::Task<Error> {
    MPI_Offset base = 0;
    if (whence == MPI_SEEK_CUR) base = co_await shared_pointer_.get();
    if (whence == MPI_SEEK_END) {
      std::int64_t size_bytes = 0;
      if (Error error = file_.find_size(&size_bytes); !error.ok()) co_return error;
      base = end_position(size_bytes);
    }
    MPI_Offset position = 0;
    if (Error error = sum_of(base, offset, &position); !error.ok()) co_return error;
    co_await shared_pointer_.set(position);
    co_return Error();
  });
}

Error File::find_shared_position(MPI_Offset* position) const {
  *position = this_process().run(shared_pointer_.get());
  return {};
}

// --- Views, sizes, modes

Error File::check_idle() const {
  if (num_under_way_ == 0 && !split_) return {};
  return {MPI_ERR_OTHER, "an access of the file is under way; complete it before"};
}

Error File::set_view(FileView::Description description, Error error) {
  std::shared_ptr<const FileView> made;
  if (error.ok()) error = check_idle();
  const bool is_current = description.displacement == MPI_DISPLACEMENT_CURRENT;
  if (error.ok() && is_current != ((mode_ & MPI_MODE_SEQUENTIAL) != 0))
    error = {
        MPI_ERR_ARG,
        "MPI_DISPLACEMENT_CURRENT is for files of MPI_MODE_SEQUENTIAL, which take no other displacement"};
  // Later the shared pointer does not move while processes read it.
  if ((mode_ & MPI_MODE_SEQUENTIAL) != 0)
    this_process().run(barrier_in_teams(communicator_->next_collective_contexts().local));
  if (error.ok() && is_current) {
    MPI_Offset position = 0;
    error = find_shared_position(&position);
    if (error.ok()) error = find_byte_offset(position, &description.displacement);
  }
  if (error.ok() && description.displacement < 0)
    error = {MPI_ERR_ARG, base::format("the displacement {} is negative", description.displacement)};
  if (error.ok()) error = FileView::make(std::move(description), is_writable(), this_rank().types, &made);
  const std::int64_t etype_bytes = error.ok() ? made->etype_bytes() : 0;
  if (error = agree(std::move(error), {"size of the etype", etype_bytes}); !error.ok()) return error;
  view_ = std::move(made);
  position_ = 0;
  return do_at_first([&]() -> runtime::Task<Error> {
    co_await shared_pointer_.set(0);
    co_return Error();
  });
}

Error File::set_atomicity(bool is_atomic) {
  Error error = check_idle();
  if (error.ok() && is_atomic) {
    FileLock lock;
    error = lock.acquire(file_, is_writable(), 0, 1);
  }
  if (error = agree(std::move(error), {"flag", is_atomic ? 1 : 0}); !error.ok()) return error;
  is_atomic_ = is_atomic;
  return {};
}

Error File::check_resizing(MPI_Offset size_bytes) const {
  if (size_bytes < 0) return {MPI_ERR_ARG, base::format("the size {} is negative", size_bytes)};
  if (Error error = check_random_access(); !error.ok()) return error;
  if (!is_writable()) return {MPI_ERR_READ_ONLY, "the file was opened with MPI_MODE_RDONLY"};
  return {};
}

Error File::resize(MPI_Offset size_bytes) {
  if (Error error = agree(check_resizing(size_bytes), {"size", size_bytes}); !error.ok()) return error;
  return do_at_first([&]() -> runtime::Task<Error> { co_return file_.resize(size_bytes); });
}

Error File::preallocate(MPI_Offset size_bytes) {
  if (Error error = agree(check_resizing(size_bytes), {"size", size_bytes}); !error.ok()) return error;
  return do_at_first([&]() -> runtime::Task<Error> { co_return file_.preallocate(size_bytes); });
}

Error File::sync() {
  if (Error error = check_idle(); !error.ok()) return error;
  return is_writable() ? file_.sync() : Error();
}

Error File::close() {
  // Afterwards no process uses the file or the shared pointer.
  Error error = agree(file_.close(), {});
  if ((mode_ & MPI_MODE_DELETE_ON_CLOSE) == 0) return error;
  Error deleting = do_at_first([&]() -> runtime::Task<Error> {
    if (::unlink(file_.path().c_str()) == 0 || errno == ENOENT) co_return Error();
    co_return error_of_system(errno, "delete", file_.path());
  });
  return error.ok() ? deleting : error;
}

}  // namespace weft::mpi
