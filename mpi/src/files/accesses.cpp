// Reads and writes of files, with each pointer: blocking, non-blocking, and split collectives.
#include "entry/type_handles.h"
#include "files/files.h"

namespace weft::mpi {

namespace {

// The pairs of calls of split collectives.
enum SplitKind : int { kReadAll, kReadAtAll, kReadOrdered, kWriteAll, kWriteAtAll, kWriteOrdered };

// The pointer of a call, and whether all processes make it.
struct Way {
  FilePointer pointer;
  bool is_collective = false;
  MPI_Offset offset = 0;
};
Way at(MPI_Offset offset) { return {FilePointer::kExplicit, false, offset}; }
Way at_all(MPI_Offset offset) { return {FilePointer::kExplicit, true, offset}; }
constexpr Way kIndividual{FilePointer::kIndividual, false};
constexpr Way kIndividualAll{FilePointer::kIndividual, true};
constexpr Way kShared{FilePointer::kShared, false};
constexpr Way kOrdered{FilePointer::kShared, true};

// The memory of the program.
struct Elements {
  const void* buffer;
  MPI_Count count;
  MPI_Datatype type;
};

FileAccess make_access(bool is_write, const Way& way, const Elements& elements) {
  FileAccess access;
  Datatype* type = nullptr;
  access.error = find_committed_type(elements.type, &type);
  if (access.error.ok())
    access.error = make_view(elements.buffer, elements.count, elements.type, &access.memory);
  access.is_write = is_write;
  access.pointer = way.pointer;
  access.is_collective = way.is_collective;
  access.offset = way.offset;
  if (access.error.ok()) access.type = Ref<Datatype>(*type);
  access.count = elements.count;
  return access;
}

int run(const char* function, MPI_File fh, bool is_write, const Way& way, const Elements& elements,
        MPI_Status* status) {
  return with_file(function, fh, {}, [&](File& file) -> Error {
    Outcome outcome;
    if (Error error = file.run(make_access(is_write, way, elements), &outcome); !error.ok()) return error;
    write_status(outcome, status);
    return {};
  });
}
int read(const char* function, MPI_File fh, const Way& way, const Elements& elements, MPI_Status* status) {
  return run(function, fh, false, way, elements, status);
}
int write(const char* function, MPI_File fh, const Way& way, const Elements& elements, MPI_Status* status) {
  return run(function, fh, true, way, elements, status);
}

int start(const char* function, MPI_File fh, bool is_write, const Way& way, const Elements& elements,
          MPI_Request* request) {
  if (!is_address(static_cast<const void*>(request)))
    return raise(function, fh, no_place_for_request(static_cast<const void*>(request)));
  return with_file(function, fh, {}, [&](File& file) -> Error {
    Ref<Request> started;
    if (Error error = file.start(make_access(is_write, way, elements), &started); !error.ok()) return error;
    *request = make_handle<MPI_Request>(std::move(started));
    return {};
  });
}
int start_read(const char* function, MPI_File fh, const Way& way, const Elements& elements,
               MPI_Request* request) {
  return start(function, fh, false, way, elements, request);
}
int start_write(const char* function, MPI_File fh, const Way& way, const Elements& elements,
                MPI_Request* request) {
  return start(function, fh, true, way, elements, request);
}

int begin(const char* function, MPI_File fh, SplitKind kind, const Way& way, const Elements& elements) {
  return with_file(function, fh, {}, [&](File& file) -> Error {
    return file.begin(kind, make_access(kind >= kWriteAll, way, elements));
  });
}
int end(const char* function, MPI_File fh, SplitKind kind, const void* buffer, MPI_Status* status) {
  return with_file(function, fh, {}, [&](File& file) -> Error {
    if (is_sentinel(buffer)) return require({{buffer, "buf"}});
    Outcome outcome;
    if (Error error = file.end(kind, &outcome); !error.ok()) return error;
    write_status(outcome, status);
    return {};
  });
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_File_read_at_c(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype,
                       MPI_Status* status) {
  return read(__func__, fh, at(offset), {buf, count, datatype}, status);
}
int MPI_File_read_at_all_c(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype,
                           MPI_Status* status) {
  return read(__func__, fh, at_all(offset), {buf, count, datatype}, status);
}
int MPI_File_read_c(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return read(__func__, fh, kIndividual, {buf, count, datatype}, status);
}
int MPI_File_read_all_c(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return read(__func__, fh, kIndividualAll, {buf, count, datatype}, status);
}
int MPI_File_read_shared_c(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype,
                           MPI_Status* status) {
  return read(__func__, fh, kShared, {buf, count, datatype}, status);
}
int MPI_File_read_ordered_c(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype,
                            MPI_Status* status) {
  return read(__func__, fh, kOrdered, {buf, count, datatype}, status);
}

int MPI_File_iread_at_c(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype,
                        MPI_Request* request) {
  return start_read(__func__, fh, at(offset), {buf, count, datatype}, request);
}
int MPI_File_iread_at_all_c(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype,
                            MPI_Request* request) {
  return start_read(__func__, fh, at_all(offset), {buf, count, datatype}, request);
}
int MPI_File_iread_c(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  return start_read(__func__, fh, kIndividual, {buf, count, datatype}, request);
}
int MPI_File_iread_all_c(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype,
                         MPI_Request* request) {
  return start_read(__func__, fh, kIndividualAll, {buf, count, datatype}, request);
}
int MPI_File_iread_shared_c(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype,
                            MPI_Request* request) {
  return start_read(__func__, fh, kShared, {buf, count, datatype}, request);
}

int MPI_File_read_at_all_begin_c(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count,
                                 MPI_Datatype datatype) {
  return begin(__func__, fh, kReadAtAll, at_all(offset), {buf, count, datatype});
}
int MPI_File_read_at_all_end(MPI_File fh, void* buf, MPI_Status* status) {
  return end(__func__, fh, kReadAtAll, buf, status);
}
int MPI_File_read_all_begin_c(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype) {
  return begin(__func__, fh, kReadAll, kIndividualAll, {buf, count, datatype});
}
int MPI_File_read_all_end(MPI_File fh, void* buf, MPI_Status* status) {
  return end(__func__, fh, kReadAll, buf, status);
}
int MPI_File_read_ordered_begin_c(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype) {
  return begin(__func__, fh, kReadOrdered, kOrdered, {buf, count, datatype});
}
int MPI_File_read_ordered_end(MPI_File fh, void* buf, MPI_Status* status) {
  return end(__func__, fh, kReadOrdered, buf, status);
}

int MPI_File_write_at_c(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count,
                        MPI_Datatype datatype, MPI_Status* status) {
  return write(__func__, fh, at(offset), {buf, count, datatype}, status);
}
int MPI_File_write_at_all_c(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count,
                            MPI_Datatype datatype, MPI_Status* status) {
  return write(__func__, fh, at_all(offset), {buf, count, datatype}, status);
}
int MPI_File_write_c(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype,
                     MPI_Status* status) {
  return write(__func__, fh, kIndividual, {buf, count, datatype}, status);
}
int MPI_File_write_all_c(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype,
                         MPI_Status* status) {
  return write(__func__, fh, kIndividualAll, {buf, count, datatype}, status);
}
int MPI_File_write_shared_c(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype,
                            MPI_Status* status) {
  return write(__func__, fh, kShared, {buf, count, datatype}, status);
}
int MPI_File_write_ordered_c(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype,
                             MPI_Status* status) {
  return write(__func__, fh, kOrdered, {buf, count, datatype}, status);
}

int MPI_File_iwrite_at_c(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count,
                         MPI_Datatype datatype, MPI_Request* request) {
  return start_write(__func__, fh, at(offset), {buf, count, datatype}, request);
}
int MPI_File_iwrite_at_all_c(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count,
                             MPI_Datatype datatype, MPI_Request* request) {
  return start_write(__func__, fh, at_all(offset), {buf, count, datatype}, request);
}
int MPI_File_iwrite_c(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype,
                      MPI_Request* request) {
  return start_write(__func__, fh, kIndividual, {buf, count, datatype}, request);
}
int MPI_File_iwrite_all_c(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype,
                          MPI_Request* request) {
  return start_write(__func__, fh, kIndividualAll, {buf, count, datatype}, request);
}
int MPI_File_iwrite_shared_c(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype,
                             MPI_Request* request) {
  return start_write(__func__, fh, kShared, {buf, count, datatype}, request);
}

int MPI_File_write_at_all_begin_c(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count,
                                  MPI_Datatype datatype) {
  return begin(__func__, fh, kWriteAtAll, at_all(offset), {buf, count, datatype});
}
int MPI_File_write_at_all_end(MPI_File fh, const void* buf, MPI_Status* status) {
  return end(__func__, fh, kWriteAtAll, buf, status);
}
int MPI_File_write_all_begin_c(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype) {
  return begin(__func__, fh, kWriteAll, kIndividualAll, {buf, count, datatype});
}
int MPI_File_write_all_end(MPI_File fh, const void* buf, MPI_Status* status) {
  return end(__func__, fh, kWriteAll, buf, status);
}
int MPI_File_write_ordered_begin_c(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype) {
  return begin(__func__, fh, kWriteOrdered, kOrdered, {buf, count, datatype});
}
int MPI_File_write_ordered_end(MPI_File fh, const void* buf, MPI_Status* status) {
  return end(__func__, fh, kWriteOrdered, buf, status);
}

}  // extern "C"
