// Places and streams from Python objects: "cuda:1", weft.Stream, and the stream objects of other libraries.
//
// Threads: the PE's thread.
#pragma once

#include "weft/memory/buffer.h"

#include "support/support.h"

namespace weft::python {

void init_stream(PyObject* module);

// The place from a text such as "host", "cuda", "cuda:1" or "emulated:0". Without a number: this PE's own device.
// Throws base::Error, whose message begins with `use`.
memory::Place place_from(PyObject* kind, const char* use);

struct NamedStream {
  memory::StreamHandle handle = nullptr;
  Ref keeper;
};

// The stream from a `stream` argument, for memory of `place`. The argument is one of
//   - null or None: no stream,
//   - a weft.Stream,
//   - an int (1: CUDA's legacy default stream, 2: the per-thread default stream),
//   - an object with __cuda_stream__(), .ptr or .cuda_stream.
// Throws base::Error, whose message begins with `use`.
NamedStream stream_from(PyObject* object, memory::Place place, const char* use);
// The stream from a `stream` argument and its place: the one that the argument `kind` names, else the stream's, else this PE's own
// GPU. Throws base::Error, whose message begins with `use`. REQUIRES: `stream` is neither null nor None.
struct PlacedStream {
  memory::Place place;
  NamedStream stream;
};
PlacedStream placed_stream_from(PyObject* stream, PyObject* kind, const char* use);
// The stream and its place, of arguments that may be null or None. Throws base::Error also if this process cannot use the kind.
//   - Without a stream: the one of programs that name none. That is CUDA's legacy default stream, or on an emulated device the
//     one that all launches without a stream share.
//   - Without a kind: this PE's own GPU, or its emulated device if the process can use no GPU.
PlacedStream placed_stream_or_default(PyObject* stream, PyObject* kind, const char* use);
// The stream of a handle that comes from a protocol, which calls it `what`. Throws base::Error as stream_from() does. 0 is refused, because it is ambiguous.
memory::StreamHandle stream_from_handle(PyObject* number, const char* what);
// CUDA's legacy default stream. A null handle names no stream.
memory::StreamHandle legacy_default_stream();

}  // namespace weft::python
