// Places and streams as Python names them: "cuda:1", weft.Stream, and the stream objects of other libraries.
#pragma once

#include "weft/memory/buffer.h"

#include "support/support.h"

namespace weft::python {

void init_stream(PyObject* module);

// "host", "cuda", "cuda:1", "emulated:0"; without a number this PE's own device. Throws base::Error, which
// begins with `use`.
memory::Place place_from(PyObject* kind, const char* use);

struct NamedStream {
  memory::StreamHandle handle = nullptr;
  Ref keeper;
};

// What a `stream` argument names for memory of `place`: null or None for no stream, a weft.Stream, an int (1:
// CUDA's legacy default stream, 2: its per-thread one), an object with __cuda_stream__(), .ptr or
// .cuda_stream. Throws base::Error, which begins with `use`.
NamedStream stream_from(PyObject* object, memory::Place place, const char* use);
// The same for a handle that a protocol gives; `what` is its name there. 0 is refused, being ambiguous.
memory::StreamHandle stream_from_handle(PyObject* number, const char* what);

}  // namespace weft::python
