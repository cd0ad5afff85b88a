// A request for the memory of a Python object, its result, and helpers for the protocols that find the memory:
// arrays, the buffer protocol, the CUDA array interface and DLPack.
//
// Threads: the PE's thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "weft/memory/buffer.h"

#include "buffers/arrays/array_form.h"
#include "support/support.h"

namespace weft::python {

enum class Access : std::uint8_t { kRead, kWrite };

struct ObjectBuffer {
  memory::Buffer memory;
  // The memory is valid as long as this object lives.
  Ref keeper;
};

struct BufferRequest {
  PyObject* object;
  Access access;
  // The caller's name for error messages, such as "Channel.send".
  const char* use;
  // Receives the form if it is not null.
  ArrayForm* form = nullptr;
};

// Throws base::Error, such as "Channel.send got a numpy.ndarray that is read-only; ...".
[[noreturn]] void unusable(const BufferRequest& request, std::string_view why);

// Throws the error for memory that is not in C order. `is_fortran_order`: in Fortran order it is contiguous.
[[noreturn]] void not_contiguous(const BufferRequest& request, bool is_fortran_order);

// An attribute of the object; null if there is none.
Ref optional_attribute(const BufferRequest& request, const char* name);
// Throws base::Error if this process has no CUDA.
void expect_cuda(const BufferRequest& request);
// The device of an address of CUDA memory. Throws base::Error if the driver does not know the address.
memory::Place cuda_place_of(const BufferRequest& request, const void* address);

}  // namespace weft::python
