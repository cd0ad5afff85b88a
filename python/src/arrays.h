// NumPy arrays and scalars as values, and any object's memory as a buffer. The only file that knows NumPy's C
// API.
#pragma once

#include <cstddef>

#include "weft/memory/buffer.h"
#include "weft/runtime/attachment.h"

#include "support.h"

namespace weft::python {

class Decoder;
class Encoder;

// Imports NumPy.
void init_arrays(PyObject* module);

// An ndarray (no subclass) of a number type in native byte order; others are pickled.
bool is_plain_array(PyObject* object);
bool is_plain_number(PyObject* object);
// Contiguous ones, in C or Fortran order, as they are; others are copied into C order first.
void encode_array(Encoder& encoder, PyObject* array);
void encode_number(Encoder& encoder, PyObject* number);
Ref decode_array(Decoder& decoder);
Ref decode_attached_array(Decoder& decoder);
// A one-dimensional array of bytes that owns the memory.
Ref make_byte_array(runtime::Attachment attachment);
Ref decode_number(Decoder& decoder);

// The memory of an object, and what keeps it there.
class ObjectBuffer {
 public:
  // Throws PythonError or base::Error naming the fix for memory that is not C-contiguous, is read-only where
  // `writable` is asked for, or is none. `use` says what for: "Channel.send".
  ObjectBuffer(PyObject* object, bool writable, const char* use);
  ObjectBuffer(ObjectBuffer&& other) noexcept;
  ObjectBuffer& operator=(ObjectBuffer&&) = delete;
  ~ObjectBuffer();

  const memory::Buffer& buffer() const { return buffer_; }

 private:
  memory::Buffer buffer_;
  Ref array_;       // the fast path: an ndarray that stays referenced
  Py_buffer view_;  // else the buffer protocol; view_.obj is null when unused
};

}  // namespace weft::python
