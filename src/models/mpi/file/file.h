// File: what a handle of type MPI_File stands for, MPI 5.0, chapter 14.
//
// Positions count etypes of the view, as in the calls of the program, unless a name says bytes. The system's calls on files block the
// process: it serves no messages meanwhile. Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/mpi/mpi.h"
#include "weft/runtime/task.h"

#include "models/mpi/communicators/communicator.h"
#include "models/mpi/datatype/datatype.h"
#include "models/mpi/file/agreement.h"
#include "models/mpi/file/file_view.h"
#include "models/mpi/file/hints.h"
#include "models/mpi/file/posix_file.h"
#include "models/mpi/file/shared_pointer.h"
#include "models/mpi/objects/error_handler.h"
#include "models/mpi/p2p/data_view.h"
#include "models/mpi/p2p/request.h"

namespace weft::mpi {

// Which pointer an access uses and moves.
enum class FilePointer : std::uint8_t { kExplicit, kIndividual, kShared };

// One access of the program.
struct FileAccess {
  bool is_write = false;
  FilePointer pointer = FilePointer::kExplicit;
  bool is_collective = false;  // with kShared: in the order of ranks
  MPI_Offset offset = 0;       // of kExplicit
  DataView memory;             // of `count` elements of the type
  Ref<Datatype> type;
  MPI_Count count = 0;
  // Of the arguments. The process takes part in a blocking collective access without bytes, and the call returns the error.
  Error error;
};

class File final : public ErrorScope {
 public:
  // The parts that open_file() has made.
  struct Parts {
    Ref<Communicator> communicator;  // the file's own
    PosixFile file;
    SharedFilePointer shared_pointer;
    int mode = 0;  // MPI_MODE_*
    FileHints hints;
    std::shared_ptr<const FileView> view;
  };
  File(Parts parts, Ref<ErrorHandler> handler);

  // --- Queries
  Communicator& communicator() const { return *communicator_; }
  int mode() const { return mode_; }
  bool is_atomic() const { return is_atomic_; }
  const FileView& view() const { return *view_; }
  MPI_Offset position() const { return position_; }
  FileHints hints;
  // Errors: those of PosixFile.
  Error find_size(MPI_Offset* size_bytes) const { return file_.find_size(size_bytes); }
  // Where the etype at a position begins. Errors: MPI_ERR_ARG.
  Error find_byte_offset(MPI_Offset position, MPI_Offset* offset) const;

  // --- Pointers. Errors: MPI_ERR_ARG, MPI_ERR_UNSUPPORTED_OPERATION for files of MPI_MODE_SEQUENTIAL.
  Error seek(MPI_Offset offset, int whence);
  Error seek_shared(MPI_Offset offset, int whence);  // collective
  Error find_shared_position(MPI_Offset* position) const;
  Error check_random_access() const;

  // --- Collective. If a process finds an error in its arguments, all fail; MPI_ERR_NOT_SAME if the arguments differ.
  // `description.displacement` may be MPI_DISPLACEMENT_CURRENT. Errors: MPI_ERR_ARG, MPI_ERR_NOT_SAME, and those of FileView::make(). If a
  // process has `error` already, all fail.
  Error set_view(FileView::Description description, Error error);
  Error set_atomicity(bool is_atomic);
  Error resize(MPI_Offset size_bytes);
  Error preallocate(MPI_Offset size_bytes);
  Error sync();
  // The file is closed afterwards, also if there is an error.
  Error close();
  // Errors: MPI_ERR_OTHER while an access is under way.
  Error check_idle() const;

  // --- Accesses. Errors: MPI_ERR_ACCESS, MPI_ERR_READ_ONLY, MPI_ERR_UNSUPPORTED_OPERATION, MPI_ERR_ARG.
  // Returns when the access is over. `outcome` tells the bytes.
  Error run(FileAccess access, Outcome* outcome);
  // The memory of the access stays unchanged until the request is complete. An error of a collective access is that of the request.
  Error start(FileAccess access, Ref<Request>* request);
  // Split collectives: `kind` is any number that tells the pairs of calls apart. Errors: MPI_ERR_OTHER.
  Error begin(int kind, FileAccess access);
  Error end(int kind, Outcome* outcome);

 private:
  // An access as it is carried out.
  struct Operation {
    FileAccess access;
    std::shared_ptr<const FileView> view;
    std::int64_t first = 0;  // in bytes of the view
    std::int64_t size_bytes = 0;
    std::optional<CollectiveContext> context;
    Error error;  // the access moves no bytes
  };

  // --- access.cpp
  Error prepare(FileAccess access, bool waits, Operation* operation);
  Error check(const FileAccess& access, Operation* operation) const;
  Error check_mode(const FileAccess& access) const;
  Error find_bytes(const FileAccess& access, std::int64_t* size_bytes) const;
  static bool needs_no_copy(const Operation& operation);
  Error complete(Operation operation, Outcome* outcome);
  static runtime::Task<> carry_out(Ref<File> self, Operation operation, Outcome* outcome);
  runtime::Task<> place_shared(Operation& operation) const;
  class Staging;
  runtime::Task<std::size_t> move_bytes(const Operation& operation, std::span<std::byte> bytes,
                                        Error error) const;
  Error access_alone(const Operation& operation, std::span<std::byte> bytes, std::size_t* got) const;
  runtime::Task<> copy_locally(DataView from, DataView to) const;

  std::int64_t end_position(std::int64_t size_bytes) const;
  Error check_resizing(MPI_Offset size_bytes) const;
  // As agree() of agreement.h.
  Error agree(Error mine, SameArgument argument) const;
  // What rank 0 does alone. All processes get its error.
  template <class Work>
  Error do_at_first(const Work& work);
  bool is_writable() const { return (mode_ & MPI_MODE_RDONLY) == 0; }

  Ref<Communicator> communicator_;
  PosixFile file_;
  SharedFilePointer shared_pointer_;
  const int mode_;
  std::shared_ptr<const FileView> view_;
  MPI_Offset position_ = 0;
  bool is_atomic_ = false;
  int num_under_way_ = 0;

  struct Split {
    int kind;
    Ref<Request> request;
  };
  std::optional<Split> split_;
};

}  // namespace weft::mpi
