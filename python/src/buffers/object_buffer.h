// Any object's memory as a buffer: weft.DeviceArray, NumPy arrays, the buffer protocol, the CUDA array
// interface (version 3) and DLPack (with and without version).
//
// Nothing is copied and nothing waits: a producer's stream becomes the buffer's, so that whatever uses the
// buffer starts after the work that is queued there. Only C-contiguous memory is a buffer.
#pragma once

#include <cstdint>
#include <string_view>

#include "weft/memory/buffer.h"

#include "buffers/array_form.h"
#include "support/support.h"

namespace weft::python {

void init_object_buffer(PyObject* module);

enum class Access : std::uint8_t { kRead, kWrite };

struct ObjectBuffer {
  memory::Buffer memory;
  // While it lives the memory stays what it is.
  Ref keeper;
};

// A question about an object's memory.
struct BufferRequest {
  PyObject* object;
  Access access;
  // What asks, for messages: "Channel.send".
  const char* use;
  // Receives the form where it is wanted.
  ArrayForm* form = nullptr;
};

// Throws PythonError or base::Error that names the fix: for memory that is not contiguous, is read-only where
// it is to be written, is of a kind that this process cannot use, or is none.
ObjectBuffer buffer_of(const BufferRequest& request);

// For the protocols: an attribute of the object, null where there is none; and where CUDA memory lies.
Ref optional_attribute(const BufferRequest& request, const char* name);
void expect_cuda(const BufferRequest& request);
memory::Place cuda_place_of(const BufferRequest& request, const void* address);

// Whether an object is device memory: one of ours, or of another library by the CUDA array interface or
// DLPack.
bool is_device_object(PyObject* object);

// "Channel.send got a numpy.ndarray that is read-only; ..."
[[noreturn]] void unusable(const BufferRequest& request, std::string_view why);

}  // namespace weft::python
