// Packing into a buffer of the program, in the form of this machine and in "external32".
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "collectives/device_copies.h"
#include "communication/communication.h"
#include "entry/entry.h"
#include "entry/type_handles.h"
#include "models/mpi/datatype/external32.h"
#include "models/mpi/objects/addresses.h"

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

namespace {

Error check_communicator(MPI_Comm comm) {
  if (error_scope(comm) != nullptr) return {};
  return {MPI_ERR_COMM, "the handle is no communicator; has it been freed?"};
}

Error check_representation(const char* datarep) {
  if (is_address(datarep) && std::strcmp(datarep, "external32") == 0) return {};
  return {MPI_ERR_UNSUPPORTED_DATAREP, "the data representation is not known; give \"external32\""};
}

Error too_many_elements() {
  return {MPI_ERR_COUNT, "the size of that many elements does not fit 64 bits; give a smaller count"};
}

// Checks that `size` bytes at *position are within a buffer of `room` bytes.
Error check_place(MPI_Count size, const MPI_Count* position, MPI_Count room) {
  if (Error error = check_result(position); !error.ok()) return error;
  if (*position < 0 || room < 0 || *position > room)
    return {MPI_ERR_ARG, weft::base::format("position {} is not in a buffer of {} bytes", *position, room)};
  if (size > room - *position)
    return {MPI_ERR_TRUNCATE,
            weft::base::format("{} bytes from position {} on do not fit a buffer of {} bytes", size,
                               *position, room)};
  return {};
}

// The datatype, and how many bytes `count` elements have in the representation that `size_of` knows.
template <class SizeOf>
Error find_type_and_size(MPI_Datatype handle, MPI_Count count, const SizeOf& size_of, Datatype** type,
                         MPI_Count* size) {
  if (Error error = check_count(count); !error.ok()) return error;
  if (Error error = find_committed_type(handle, type); !error.ok()) return error;
  const std::optional<MPI_Count> found = size_of(**type);
  if (!found) return too_many_elements();
  *size = *found;
  return {};
}

Error find_packed(MPI_Datatype handle, MPI_Count count, Datatype** type, MPI_Count* size) {
  return find_type_and_size(
      handle, count, [count](const Datatype& found) { return found.packed_size(count); }, type, size);
}

Error find_external(MPI_Datatype handle, MPI_Count count, Datatype** type, MPI_Count* size) {
  return find_type_and_size(
      handle, count, [count](const Datatype& found) { return external32_size(found, count); }, type, size);
}

// MPI_BYTE.
Datatype& bytes_type() {
  Datatype* type = nullptr;
  (void)find_committed_type(MPI_BYTE, &type);
  return *type;
}

bool is_device_memory(const std::byte* data, MPI_Count size) {
  return is_on_device(bytes_type(), data, size);
}

// Copies elements between two buffers, at least one of which is in device memory. Returns when the copy is done.
Error copy_elements(const void* from, MPI_Count from_count, MPI_Datatype from_type, void* to,
                    MPI_Count to_count, MPI_Datatype to_type, MPI_Comm comm) {
  DataView source;
  DataView destination;
  if (Error error = make_view(from, from_count, from_type, &source); !error.ok()) return error;
  if (Error error = make_view(to, to_count, to_type, &destination); !error.ok()) return error;
  const Communicator& communicator = *communicator_of(comm);
  for (DataView* const view : {&source, &destination})
    if (!view->place.is_host()) view->stream = communicator.stream;
  return copy_now(source, destination);
}

// Checks that elements and packed bytes have memory. MPI_BOTTOM is null, and then the datatype has the addresses.
Error check_memory(const Datatype& type, const void* buffer, const void* packed, MPI_Count size) {
  if (size == 0) return {};
  const auto* const first = reinterpret_cast<const void*>(
      reinterpret_cast<std::uintptr_t>(buffer) + static_cast<std::uintptr_t>(type.true_lower_bound()));
  if (!is_sentinel(buffer) && is_address(first) && is_address(packed)) return {};
  const void* wrong = is_address(buffer) ? first : buffer;
  if (!is_address(packed)) wrong = packed;
  return {MPI_ERR_BUFFER, weft::base::format("a buffer of {} packed bytes is {}; give its address", size,
                                             describe_sentinel(wrong))};
}

}  // namespace

int MPI_Pack_c(const void* inbuf, MPI_Count incount, MPI_Datatype datatype, void* outbuf, MPI_Count outsize,
               MPI_Count* position, MPI_Comm comm) {
  return guarded(__func__, comm, [&]() -> Error {
    Datatype* type = nullptr;
    MPI_Count size = 0;
    if (Error error = check_communicator(comm); !error.ok()) return error;
    if (Error error = find_packed(datatype, incount, &type, &size); !error.ok()) return error;
    if (Error error = check_place(size, position, outsize); !error.ok()) return error;
    if (Error error = check_memory(*type, inbuf, outbuf, size); !error.ok()) return error;
    std::byte* const packed = static_cast<std::byte*>(outbuf) + *position;
    if (is_on_device(*type, inbuf, incount) || is_device_memory(packed, size)) {
      if (Error error = copy_elements(inbuf, incount, datatype, packed, size, MPI_BYTE, comm); !error.ok())
        return error;
    } else {
      type->pack(inbuf, incount, packed);
    }
    *position += size;
    return {};
  });
}

int MPI_Unpack_c(const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf, MPI_Count outcount,
                 MPI_Datatype datatype, MPI_Comm comm) {
  return guarded(__func__, comm, [&]() -> Error {
    Datatype* type = nullptr;
    MPI_Count size = 0;
    if (Error error = check_communicator(comm); !error.ok()) return error;
    if (Error error = find_packed(datatype, outcount, &type, &size); !error.ok()) return error;
    if (Error error = check_place(size, position, insize); !error.ok()) return error;
    if (Error error = check_memory(*type, outbuf, inbuf, size); !error.ok()) return error;
    const std::byte* const packed = static_cast<const std::byte*>(inbuf) + *position;
    if (is_on_device(*type, outbuf, outcount) || is_device_memory(packed, size)) {
      if (Error error = copy_elements(packed, size, MPI_BYTE, outbuf, outcount, datatype, comm); !error.ok())
        return error;
    } else {
      type->unpack(outbuf, outcount, packed);
    }
    *position += size;
    return {};
  });
}

int MPI_Pack_size_c(MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm, MPI_Count* size) {
  return guarded(__func__, comm, [&]() -> Error {
    Datatype* type = nullptr;
    if (Error error = check_result(size); !error.ok()) return error;
    if (Error error = check_communicator(comm); !error.ok()) return error;
    return find_packed(datatype, incount, &type, size);
  });
}

int MPI_Pack_external_c(const char* datarep, const void* inbuf, MPI_Count incount, MPI_Datatype datatype,
                        void* outbuf, MPI_Count outsize, MPI_Count* position) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* type = nullptr;
    MPI_Count size = 0;
    if (Error error = check_representation(datarep); !error.ok()) return error;
    if (Error error = find_external(datatype, incount, &type, &size); !error.ok()) return error;
    if (Error error = check_place(size, position, outsize); !error.ok()) return error;
    if (Error error = check_memory(*type, inbuf, outbuf, size); !error.ok()) return error;
    const HostElements in(*type, const_cast<void*>(inbuf), incount);
    const HostElements out(bytes_type(), static_cast<std::byte*>(outbuf) + *position, size);
    if (Error error = in.read(); !error.ok()) return error;
    if (Error error = pack_external32(*type, in.buffer(), incount, static_cast<std::byte*>(out.buffer()));
        !error.ok())
      return error;
    *position += size;
    return out.write_back();
  });
}

int MPI_Unpack_external_c(const char datarep[], const void* inbuf, MPI_Count insize, MPI_Count* position,
                          void* outbuf, MPI_Count outcount, MPI_Datatype datatype) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* type = nullptr;
    MPI_Count size = 0;
    if (Error error = check_representation(datarep); !error.ok()) return error;
    if (Error error = find_external(datatype, outcount, &type, &size); !error.ok()) return error;
    if (Error error = check_place(size, position, insize); !error.ok()) return error;
    if (Error error = check_memory(*type, outbuf, inbuf, size); !error.ok()) return error;
    const std::byte* const packed = static_cast<const std::byte*>(inbuf) + *position;
    const HostElements in(bytes_type(), const_cast<std::byte*>(packed), size);
    const HostElements out(*type, outbuf, outcount);
    if (Error error = in.read(); !error.ok()) return error;
    unpack_external32(*type, out.buffer(), outcount, static_cast<const std::byte*>(in.buffer()));
    *position += size;
    return out.write_back();
  });
}

int MPI_Pack_external_size_c(const char* datarep, MPI_Count incount, MPI_Datatype datatype, MPI_Count* size) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* type = nullptr;
    if (Error error = check_result(size); !error.ok()) return error;
    if (Error error = check_representation(datarep); !error.ok()) return error;
    return find_external(datatype, incount, &type, size);
  });
}
