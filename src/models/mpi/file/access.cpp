// Reads and writes of a file.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "base/format.h"
#include "models/mpi/collective/collective_request.h"
#include "models/mpi/datatype/checked.h"
#include "models/mpi/file/file.h"
#include "models/mpi/process.h"

namespace weft::mpi {

namespace {

constexpr int kFileCopyTag = 0;

Error no_memory() { return {MPI_ERR_NO_MEM, "there is no memory to copy the data of the access"}; }
Error error_of(const TransferFailed& failure) { return {failure.error_class(), failure.what()}; }

}  // namespace

// --- Checks

Error File::check_mode(const FileAccess& access) const {
  if (access.pointer != FilePointer::kShared)
    if (Error error = check_random_access(); !error.ok()) return error;
  if (access.is_write && (mode_ & MPI_MODE_RDONLY) != 0)
    return {MPI_ERR_READ_ONLY, "the file was opened with MPI_MODE_RDONLY; open it for writing"};
  if (!access.is_write && (mode_ & MPI_MODE_WRONLY) != 0)
    return {MPI_ERR_ACCESS, "the file was opened with MPI_MODE_WRONLY; open it for reading"};
  return {};
}

Error File::find_bytes(const FileAccess& access, std::int64_t* size_bytes) const {
  MPI_Count element_bytes = access.type->size_bytes();
  if (!view_->representation().is_native())
    if (Error error = find_file_size(view_->representation(), access.type->signature(), &element_bytes);
        !error.ok())
      return error;
  const Wide size = Wide{element_bytes} * access.count;
  if (!fits_count(size))
    return {MPI_ERR_COUNT, base::format("{} elements have too many bytes", access.count)};
  *size_bytes = static_cast<std::int64_t>(size);
  if (*size_bytes == 0) return {};
  if (!view_->has_bytes()) return {MPI_ERR_ARG, "the filetype of the view has no bytes"};
  if (*size_bytes % view_->etype_bytes() == 0) return {};
  return {MPI_ERR_ARG, base::format("the {} bytes of the access are not a whole number of etypes of {} bytes",
                                    *size_bytes, view_->etype_bytes())};
}

Error File::check(const FileAccess& access, Operation* operation) const {
  if (!access.error.ok()) return access.error;
  if (Error error = check_mode(access); !error.ok()) return error;
  if (Error error = find_bytes(access, &operation->size_bytes); !error.ok()) return error;
  if (access.pointer == FilePointer::kShared) return {};
  const bool is_explicit = access.pointer == FilePointer::kExplicit;
  if (is_explicit && access.offset < 0)
    return {MPI_ERR_ARG, base::format("the offset {} is negative", access.offset)};
  const Wide first = Wide{is_explicit ? access.offset : position_} * view_->etype_bytes();
  if (!fits_count(first + operation->size_bytes) ||
      !view_->fits(static_cast<std::int64_t>(first),
                   static_cast<std::int64_t>(first) + operation->size_bytes))
    return {MPI_ERR_ARG, "the access ends at an offset that does not fit 64 bits"};
  operation->first = static_cast<std::int64_t>(first);
  return {};
}

Error File::prepare(FileAccess access, bool waits, Operation* operation) {
  operation->error = check(access, operation);
  if (!operation->error.ok()) {
    // The other processes wait for this one, so it takes part without bytes. The error is that of the end of the access.
    if (!access.is_collective) return operation->error;
    operation->size_bytes = 0;
  }
  if (access.is_collective) {
    using Kind = Communicator::CallKind;
    operation->context.emplace(
        communicator_->next_collective_contexts(waits ? Kind::kWaits : Kind::kGivesRequest).local);
  }
  if (access.pointer == FilePointer::kIndividual && operation->size_bytes > 0)
    position_ += operation->size_bytes / view_->etype_bytes();
  operation->view = view_;
  operation->access = std::move(access);
  return {};
}

// --- Calls

Error File::run(FileAccess access, Outcome* outcome) {
  const bool is_individual = access.pointer == FilePointer::kIndividual;
  const MPI_Offset before = position_;
  Operation operation;
  if (Error error = prepare(std::move(access), true, &operation); !error.ok()) return error;
  const std::int64_t wanted = operation.size_bytes;
  const auto memory_bytes = static_cast<std::int64_t>(operation.access.memory.size_bytes);
  if (Error error = complete(std::move(operation), outcome); !error.ok()) {
    if (is_individual) position_ = before;
    return error;
  }
  // At the end of the file the pointer stops behind the last etype.
  if (is_individual && outcome->size_bytes < memory_bytes)
    position_ = before + static_cast<MPI_Offset>(Wide{outcome->size_bytes} * wanted / memory_bytes /
                                                 view_->etype_bytes());
  return {};
}

// Most accesses of one process need no coroutine.
Error File::complete(Operation operation, Outcome* outcome) {
  try {
    if (!operation.context && operation.access.pointer != FilePointer::kShared && needs_no_copy(operation)) {
      std::size_t moved = operation.access.memory.size_bytes;
      Error error = access_alone(operation, {operation.access.memory.data, moved}, &moved);
      outcome->size_bytes = static_cast<std::int64_t>(moved);
      return error;
    }
    this_process().run(carry_out(Ref<File>(*this), std::move(operation), outcome));
  } catch (const TransferFailed& failure) {
    return error_of(failure);
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
  return {};
}

Error File::start(FileAccess access, Ref<Request>* request) {
  const auto operation = std::make_shared<Operation>();
  if (Error error = prepare(std::move(access), false, operation.get()); !error.ok()) return error;
  const auto body = [self = Ref<File>(*this), operation](Outcome* outcome) -> runtime::Task<> {
    try {
      co_await carry_out(self, *operation, outcome);
    } catch (const TransferFailed& failure) {
      outcome->error = failure.error_class();
    }
  };
  auto made = Request::make<CollectiveRequest>(communicator_->engine().messenger(), body);
  made->set_scope(*this);
  made->start();
  *request = as_request(std::move(made));
  return {};
}

Error File::begin(int kind, FileAccess access) {
  if (split_) return {MPI_ERR_OTHER, "a split collective access of the file is under way; end it before"};
  Ref<Request> request;
  if (Error error = start(std::move(access), &request); !error.ok()) return error;
  split_ = Split{kind, std::move(request)};
  return {};
}

Error File::end(int kind, Outcome* outcome) {
  if (!split_ || split_->kind != kind)
    return {MPI_ERR_OTHER,
            "no split collective access of that kind is under way on the file; begin it before"};
  this_process().wait(*split_->request);
  *outcome = split_->request->outcome();
  split_.reset();
  return outcome->error == MPI_SUCCESS ? Error() : Error(outcome->error, {});
}

// --- The work

// The memory of the program has the bytes of the file.
bool File::needs_no_copy(const Operation& operation) {
  const DataView& memory = operation.access.memory;
  return memory.is_dense() && memory.place.is_host() && operation.view->representation().is_native();
}

// The bytes of an access in host memory, as they are in the file.
class File::Staging {
 public:
  Staging(const File& file, const Operation& operation)
      : file_(file),
        operation_(operation),
        memory_(operation.access.memory),
        is_native_(operation.view->representation().is_native()) {}

  std::span<std::byte> bytes() { return bytes_; }

  // Makes room. If the access writes, the bytes are there afterwards.
  runtime::Task<> prepare() {
    const auto size = static_cast<std::size_t>(operation_.size_bytes);
    if (needs_no_copy(operation_)) {
      bytes_ = {memory_.data, size};
      co_return;
    }
    in_file_.resize(size);
    bytes_ = in_file_;
    if (!is_native_) packed_.resize(memory_.size_bytes);
    if (!operation_.access.is_write) co_return;
    std::vector<std::byte>& packed = is_native_ ? in_file_ : packed_;
    co_await file_.copy_locally(memory_, DataView::of_bytes(packed.data(), packed.size()));
    if (is_native_) co_return;
    const FileAccess& access = operation_.access;
    check(convert_to_file(operation_.view->representation(), access.type->signature(), access.count,
                          packed_.data(), in_file_.data()));
  }

  // The leading bytes have been read: they go to the memory of the program. Returns how many bytes that gives there.
  runtime::Task<std::size_t> deliver(std::size_t got) {
    if (in_file_.empty() || got == 0) co_return got;
    if (is_native_) {
      co_await deliver_native(in_file_, got);
      co_return got;
    }
    const FileAccess& access = operation_.access;
    const std::size_t in_file_bytes = in_file_.size() / static_cast<std::size_t>(access.count);
    const auto begun = static_cast<MPI_Count>((got + in_file_bytes - 1) / in_file_bytes);
    check(convert_from_file(operation_.view->representation(), access.type->signature(), begun,
                            in_file_.data(), packed_.data()));
    // A part of an element counts only if its bytes are as many in the file.
    const std::size_t size = in_file_.size() == packed_.size()
                                 ? got
                                 : got / in_file_bytes * static_cast<std::size_t>(access.type->size_bytes());
    co_await deliver_native(packed_, size);
    co_return size;
  }

 private:
  static void check(const Error& error) {
    if (!error.ok()) throw TransferFailed(error.error_class, error.text);
  }
  runtime::Task<> deliver_native(const std::vector<std::byte>& from, std::size_t size_bytes) {
    return file_.copy_locally(DataView::of_bytes(from.data(), size_bytes), memory_);
  }

  const File& file_;
  const Operation& operation_;
  const DataView& memory_;
  const bool is_native_;
  std::vector<std::byte> in_file_;  // empty if the memory of the program serves
  std::vector<std::byte> packed_;   // as in memory, if the representation is another one
  std::span<std::byte> bytes_;
};

runtime::Task<> File::copy_locally(DataView from, DataView to) const {
  if (from.place.is_host() && to.place.is_host()) {
    from.copy_to(to);
    co_return;
  }
  PointToPoint& engine = communicator_->engine();
  const int self = communicator_->rank();
  const auto landing = engine.receive(communicator_->key(self, kFileCopyTag), to);
  const auto leaving = engine.send(communicator_->address(self, kFileCopyTag), from, SendMode::kStandard);
  const Outcome landed = co_await Completed(*landing, engine.messenger());
  const Outcome left = co_await Completed(*leaving, engine.messenger());
  if (landed.error != MPI_SUCCESS) throw TransferFailed(landed.error);
  if (left.error != MPI_SUCCESS) throw TransferFailed(left.error);
}

namespace {

// The accesses of the file under way.
class Count {
 public:
  explicit Count(int& number) : number_(number) { ++number_; }
  ~Count() { --number_; }
  Count(const Count&) = delete;
  Count& operator=(const Count&) = delete;

 private:
  int& number_;
};

}  // namespace

runtime::Task<> File::carry_out(Ref<File> self, Operation operation, Outcome* outcome) {
  const Count count(self->num_under_way_);
  Staging staging(*self, operation);
  Error error = operation.error;
  try {
    if (error.ok()) co_await staging.prepare();
  } catch (const TransferFailed& failure) {
    error = error_of(failure);
  } catch (const std::bad_alloc&) {
    error = no_memory();
  }
  // All processes of a collective access take part, also if one has failed.
  if (!error.ok() && !operation.context) throw TransferFailed(error.error_class, error.text);
  if (operation.access.pointer == FilePointer::kShared) co_await self->place_shared(operation);
  const std::span<std::byte> bytes = error.ok() ? staging.bytes() : std::span<std::byte>();
  const std::size_t moved = co_await self->move_bytes(operation, bytes, error);
  const std::size_t size =
      operation.access.is_write ? operation.access.memory.size_bytes : co_await staging.deliver(moved);
  outcome->size_bytes = static_cast<std::int64_t>(size);
}

// Takes the bytes of the access from the shared pointer: those of all processes in the order of ranks, if the access is collective.
runtime::Task<> File::place_shared(Operation& operation) const {
  const std::int64_t etype_bytes = std::max<std::int64_t>(operation.view->etype_bytes(), 1);
  const std::int64_t mine = operation.size_bytes / etype_bytes;
  Wide position = 0;
  if (!operation.context) {
    position = co_await shared_pointer_.advance(mine);
  } else {
    const CollectiveContext& context = *operation.context;
    std::int64_t own = mine;
    const std::vector<std::byte> all = co_await allgather_bytes(context, bytes_of_value(own));
    std::int64_t sum = 0;
    for (int rank = 0; rank < context.size(); ++rank) {
      std::int64_t one = 0;
      std::memcpy(&one, all.data() + static_cast<std::size_t>(rank) * sizeof one, sizeof one);
      if (rank == context.rank()) position = sum;
      if (one < 0 || __builtin_add_overflow(sum, one, &sum))
        throw TransferFailed(MPI_ERR_ARG, "the bytes of all processes together do not fit 64 bits");
    }
    std::int64_t before = 0;
    if (context.rank() == 0) before = co_await shared_pointer_.advance(sum);
    co_await broadcast_bytes(context, 0, bytes_of_value(before));
    position += before;
  }
  const Wide first = position * etype_bytes;
  const bool fits = first >= 0 && fits_count(first + operation.size_bytes);
  operation.first = fits ? static_cast<std::int64_t>(first) : -1;
}

runtime::Task<std::size_t> File::move_bytes(const Operation& operation, std::span<std::byte> bytes,
                                            Error error) const {
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (error.ok() && !operation.view->fits(operation.first, operation.first + size))
    error = {MPI_ERR_ARG, "the access ends at an offset that does not fit 64 bits"};
  // An atomic access of a process must not lie between those of others, so no other process makes a part of it.
  if (operation.context && !is_atomic_) {
    CollectiveAccess access;
    access.file = &file_;
    access.view = operation.view.get();
    access.is_write = operation.access.is_write;
    access.first = operation.first;
    access.bytes = bytes;
    access.sieving = hints.sieving;
    access.use = access.is_write ? hints.write_use : hints.read_use;
    access.num_aggregators = hints.num_aggregators;
    access.buffer_bytes = hints.buffer_bytes;
    access.error = std::move(error);
    co_return co_await access_collectively(*operation.context, std::move(access));
  }
  std::size_t got = bytes.size();
  if (error.ok()) error = access_alone(operation, bytes, &got);
  if (!error.ok()) throw TransferFailed(error.error_class, error.text);
  co_return got;
}

Error File::access_alone(const Operation& operation, std::span<std::byte> bytes, std::size_t* got) const {
  if (bytes.empty()) return {};
  FileLock lock;
  if (is_atomic_) {
    const FileView& view = *operation.view;
    const std::int64_t last = operation.first + static_cast<std::int64_t>(bytes.size()) - 1;
    const std::int64_t begin = view.is_monotonic() ? view.offset_of(operation.first) : 0;
    // A length of 0: all that follows.
    const std::int64_t length = view.is_monotonic() ? view.offset_of(last) + 1 - begin : 0;
    if (Error error = lock.acquire(file_, operation.access.is_write, begin, length); !error.ok())
      return error;
  }
  if (operation.access.is_write) return write_view(file_, *operation.view, operation.first, bytes);
  return read_view(file_, *operation.view, operation.first, bytes, hints.sieving, got);
}

}  // namespace weft::mpi
