// Files: opening and closing, sizes, hints, modes, pointers and views.
#include "files/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/format.h"
#include "entry/objects.h"
#include "models/mpi/file/file_opening.h"

namespace weft::mpi {

Error find_file(MPI_File handle, File** found) {
  *found = object_of<File>(handle, ObjectKind::kFile);
  if (*found != nullptr) return check_running();
  if (handle == MPI_FILE_NULL) return {MPI_ERR_FILE, "the file is MPI_FILE_NULL; give a file"};
  return {MPI_ERR_FILE, "the handle is no file; has it been closed?"};
}

namespace {

Error find_path(const char* name, std::string* path) {
  if (Error error = require({{name, "filename"}}); !error.ok()) return error;
  *path = name;
  // ROMIO's prefixes, which programs that were written for it may have.
  for (const std::string_view prefix : {"ufs:", "nfs:"})
    if (path->starts_with(prefix)) path->erase(0, prefix.size());
  if (!path->empty()) return {};
  return {MPI_ERR_BAD_FILE, "the name of the file is empty"};
}

Error open(MPI_Comm comm, const char* name, int mode, MPI_Info info, MPI_File* fh) {
  Communicator* communicator = nullptr;
  Info* hints = nullptr;
  std::string path;
  if (Error error = require({{fh, "fh"}}); !error.ok()) return error;
  *fh = MPI_FILE_NULL;
  if (Error error = find_intracommunicator(comm, &communicator); !error.ok()) return error;
  // The shared pointer is in memory of one job.
  if (Error error = check_is_of_one_job(*communicator, "files"); !error.ok()) return error;
  // From here on a process that fails tells the others.
  Error error = find_path(name, &path);
  if (error.ok()) error = find_optional(info, &hints);
  if (error.ok()) error = check_access_mode(mode);
  const Info::Pairs* const pairs = hints == nullptr ? nullptr : &hints->pairs();
  try {
    *fh = make_handle<MPI_File>(
        this_process().run(open_file(Ref<Communicator>(*communicator), std::move(path), mode, pairs,
                                     std::move(error), this_rank().no_file->error_handler())));
  } catch (const TransferFailed& failure) {
    return {failure.error_class(), failure.what()};
  }
  return {};
}

Error set_view(File& file, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep,
               MPI_Info info) {
  Datatype* element = nullptr;
  Datatype* tile = nullptr;
  Info* hints = nullptr;
  FileView::Description description;
  Error error = require({{datarep, "datarep"}});
  if (error.ok()) error = find_committed_type(etype, &element);
  if (error.ok()) error = find_committed_type(filetype, &tile);
  if (error.ok()) error = find_optional(info, &hints);
  if (error.ok()) {
    const std::string name(datarep, strnlen(datarep, MPI_MAX_DATAREP_STRING));
    description = {disp, Ref<Datatype>(*element), Ref<Datatype>(*tile),
                   this_rank().representations.find(name)};
    if (description.representation == nullptr)
      error = {MPI_ERR_UNSUPPORTED_DATAREP,
               base::format("there is no data representation \"{}\"; give \"native\", \"internal\", "
                            "\"external32\", or one of MPI_Register_datarep",
                            name)};
  }
  if (Error failed = file.set_view(std::move(description), std::move(error)); !failed.ok()) return failed;
  if (hints != nullptr) use_file_hints(hints->pairs(), file.communicator().size(), file.hints);
  return {};
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_File_open(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh) {
  return guarded(__func__, MPI_FILE_NULL, [&] { return open(comm, filename, amode, info, fh); });
}
int MPI_File_close(MPI_File* fh) {
  if (!is_address(static_cast<const void*>(fh))) return raise(__func__, MPI_FILE_NULL, require({{fh, "fh"}}));
  const LibraryRuns library;  // until the reference has gone
  Ref<File> kept;             // an error of the call belongs to the file
  return with_file(__func__, *fh, {}, [&](File& file) -> Error {
    if (Error error = file.check_idle(); !error.ok()) return error;
    kept = Ref<File>(file);
    file.release();
    *fh = MPI_FILE_NULL;
    return file.close();
  });
}
int MPI_File_delete(const char* filename, MPI_Info info) {
  return guarded(__func__, MPI_FILE_NULL, [&]() -> Error {
    std::string path;
    Info* hints = nullptr;
    if (Error error = find_path(filename, &path); !error.ok()) return error;
    if (Error error = find_optional(info, &hints); !error.ok()) return error;
    return ::unlink(path.c_str()) == 0 ? Error() : error_of_system(errno, "delete", path);
  });
}

int MPI_File_get_size(MPI_File fh, MPI_Offset* size) {
  return with_file(__func__, fh, {{size, "size"}}, [&](File& file) { return file.find_size(size); });
}
int MPI_File_set_size(MPI_File fh, MPI_Offset size) {
  return with_file(__func__, fh, {}, [&](File& file) { return file.resize(size); });
}
int MPI_File_preallocate(MPI_File fh, MPI_Offset size) {
  return with_file(__func__, fh, {}, [&](File& file) { return file.preallocate(size); });
}
int MPI_File_sync(MPI_File fh) {
  return with_file(__func__, fh, {}, [&](File& file) { return file.sync(); });
}

int MPI_File_get_amode(MPI_File fh, int* amode) {
  return with_file(__func__, fh, {{amode, "amode"}}, [&](File& file) -> Error {
    *amode = file.mode();
    return {};
  });
}
int MPI_File_get_group(MPI_File fh, MPI_Group* group) {
  return with_file(__func__, fh, {{group, "group"}}, [&](File& file) -> Error {
    *group = give_group(file.communicator().group(), file.communicator().session_space);
    return {};
  });
}
int MPI_File_get_atomicity(MPI_File fh, int* flag) {
  return with_file(__func__, fh, {{flag, "flag"}}, [&](File& file) -> Error {
    *flag = file.is_atomic() ? 1 : 0;
    return {};
  });
}
int MPI_File_set_atomicity(MPI_File fh, int flag) {
  return with_file(__func__, fh, {}, [&](File& file) { return file.set_atomicity(flag != 0); });
}
int MPI_File_set_info(MPI_File fh, MPI_Info info) {
  return with_file(__func__, fh, {}, [&](File& file) -> Error {
    Info* hints = nullptr;
    if (Error error = find_optional(info, &hints); !error.ok()) return error;
    if (hints != nullptr) use_file_hints(hints->pairs(), file.communicator().size(), file.hints);
    return {};
  });
}
int MPI_File_get_info(MPI_File fh, MPI_Info* info_used) {
  return with_file(__func__, fh, {{info_used, "info_used"}}, [&](File& file) -> Error {
    *info_used = make_handle<MPI_Info>(Ref<Info>::adopt(new Info(file.hints.pairs)));
    return {};
  });
}

int MPI_File_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                      const char* datarep, MPI_Info info) {
  return with_file(__func__, fh, {},
                   [&](File& file) { return set_view(file, disp, etype, filetype, datarep, info); });
}
int MPI_File_get_view(MPI_File fh, MPI_Offset* disp, MPI_Datatype* etype, MPI_Datatype* filetype,
                      char* datarep) {
  return with_file(__func__, fh,
                   {{disp, "disp"}, {etype, "etype"}, {filetype, "filetype"}, {datarep, "datarep"}},
                   [&](File& file) -> Error {
                     const FileView::Description& view = file.view().description();
                     *disp = view.displacement;
                     *etype = give_type(*view.etype);
                     *filetype = give_type(*view.filetype);
                     copy_string(view.representation->name(), MPI_MAX_DATAREP_STRING, datarep);
                     return {};
                   });
}
int MPI_File_get_byte_offset(MPI_File fh, MPI_Offset offset, MPI_Offset* disp) {
  return with_file(__func__, fh, {{disp, "disp"}}, [&](File& file) -> Error {
    if (Error error = file.check_random_access(); !error.ok()) return error;
    return file.find_byte_offset(offset, disp);
  });
}
int MPI_File_get_type_extent_c(MPI_File fh, MPI_Datatype datatype, MPI_Count* extent) {
  return with_file(__func__, fh, {{extent, "extent"}}, [&](File& file) -> Error {
    Datatype* type = nullptr;
    Ref<Datatype> in_file;
    if (Error error = find_type(datatype, &type); !error.ok()) return error;
    if (Error error = make_file_type(file.view().representation(), this_rank().types, *type, &in_file);
        !error.ok())
      return error;
    *extent = in_file->extent();
    return {};
  });
}

int MPI_File_seek(MPI_File fh, MPI_Offset offset, int whence) {
  return with_file(__func__, fh, {}, [&](File& file) { return file.seek(offset, whence); });
}
int MPI_File_seek_shared(MPI_File fh, MPI_Offset offset, int whence) {
  return with_file(__func__, fh, {}, [&](File& file) { return file.seek_shared(offset, whence); });
}
int MPI_File_get_position(MPI_File fh, MPI_Offset* offset) {
  return with_file(__func__, fh, {{offset, "offset"}}, [&](File& file) -> Error {
    if (Error error = file.check_random_access(); !error.ok()) return error;
    *offset = file.position();
    return {};
  });
}
int MPI_File_get_position_shared(MPI_File fh, MPI_Offset* offset) {
  return with_file(__func__, fh, {{offset, "offset"}}, [&](File& file) -> Error {
    if (Error error = file.check_random_access(); !error.ok()) return error;
    return file.find_shared_position(offset);
  });
}

}  // extern "C"
