#include "pgas/memory/stream_signals.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "weft/base/error.h"
#include "weft/pgas/pgas.h"

#include "base/format.h"
#include "buffers/streams/stream.h"
#include "engine/engine.h"
#include "pgas/memory/global_operations.h"
#include "pgas/memory/global_pointer.h"
#include "support/errors.h"

namespace weft::python {

namespace {

using Word = std::uint32_t;
using StartWord = rma::Done (rma::GlobalMemory::*)(rma::GlobalPtr<Word>, Word, memory::Place,
                                                   memory::StreamHandle);

[[noreturn]] void invalid_word(const std::string& message) {
  throw base::Error(base::StatusCode::kInvalidArgument, message);
}

struct WordArguments {
  rma::GlobalPtr<Word> word;
  Word value = 0;
};

WordArguments word_arguments(const Arguments& arguments, const char* use) {
  const GlobalPointerObject* const pointer = global_pointer_from(arguments[0], use);
  if (pointer->code != ElementCode::kUint32) {
    invalid_word(
        base::format("{} got {}; it works on uint32 in native byte order", use, pointer_text(pointer)));
  }
  std::byte bytes[sizeof(Word)];
  store_for(pointer, arguments[1], bytes, use);
  Word value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return {rma::GlobalPtr<Word>(pointer->address), value};
}

PyObject* queue_word(const Arguments& arguments, const char* use, StartWord start) {
  Engine& engine = Engine::current();
  const WordArguments given = word_arguments(arguments, use);
  if (arguments[2] == nullptr || arguments[2] == Py_None)
    invalid_word(base::format("{} takes a stream", use));
  PlacedStream named = placed_stream_from(arguments[2], arguments[3], use);
  rma::Done done = (engine.pgas().*start)(given.word, given.value, named.place, named.stream.handle);
  return operation_of(engine, std::move(done), std::move(named.stream.keeper), Ref::borrow(Py_None))
      .release();
}

PyObject* signal_on_stream(PyObject*, PyObject* const* values, Py_ssize_t num_values, PyObject* names) {
  return guarded([&]() -> PyObject* {
    const Arguments arguments("signal_on_stream", {"to", "value", "stream", "kind"}, 3, values, num_values,
                              names);
    return queue_word(arguments, "weft.pgas.signal_on_stream", &rma::GlobalMemory::signal_on_stream);
  });
}

PyObject* wait_on_stream(PyObject*, PyObject* const* values, Py_ssize_t num_values, PyObject* names) {
  return guarded([&]() -> PyObject* {
    const Arguments arguments("wait_on_stream", {"at", "value", "stream", "kind"}, 3, values, num_values,
                              names);
    return queue_word(arguments, "weft.pgas.wait_on_stream", &rma::GlobalMemory::wait_on_stream);
  });
}

PyObject* wait_for(PyObject*, PyObject* const* values, Py_ssize_t num_values, PyObject* names) {
  return guarded([&]() -> PyObject* {
    constexpr const char* kUse = "weft.pgas.wait_for";
    const Arguments arguments("wait_for", {"at", "value"}, 2, values, num_values, names);
    Engine& engine = Engine::current();
    const WordArguments given = word_arguments(arguments, kUse);
    return operation_of(engine, engine.pgas().wait_for(given.word, given.value), Ref(), Ref::borrow(Py_None))
        .release();
  });
}

PyMethodDef functions[] = {
    {"signal_on_stream", as_method(&signal_on_stream), METH_FASTCALL | METH_KEYWORDS,
     R"(signal_on_stream(to, value, stream, kind=None)
--

Queues the writing of a word on a stream of a device, behind the work that is queued there. The CPU takes no part.

What the stream has written before, copies to other PEs included, is visible to a stream that has seen the value by
wait_on_stream(). With copy_on_stream() it is for streams what NVSHMEM's put with signal is. On GPUs it is a kernel of Weft's own. The
call does not block.

Args:
    to: a GlobalPointer of type uint32 into a device segment of any PE, which has been learned, see GlobalPointer.learn(). The
        operation keeps the segment.
    value: the number to write, from 0 to 2**32 - 1.
    stream: as weft.stream_done() takes it, of the device that has the word, or has mapped it.
    kind: the device of the stream, such as ``"cuda:1"``, if the stream does not name it.

Returns:
    a weft.Operation of None, which is over when the stream has written the value.

Raises:
    weft.Error: another type, a pointer that is not aligned, host memory, a segment that is freed, that this PE has not learned,
        or that the device does not reach; a GPU before Volta.)"},
    {"wait_on_stream", as_method(&wait_on_stream), METH_FASTCALL | METH_KEYWORDS,
     R"(wait_on_stream(at, value, stream, kind=None)
--

Queues a wait on a stream of a device: work that is queued there later waits until the word is at least `value`. The CPU takes no
part, and the call does not block.

The comparison is cyclic: the word has reached the value if it is fewer than 2**31 steps past it. So a counter may pass 2**32:
give it as ``count % 2**32``. On GPUs it is a kernel of Weft's own, which occupies a part of one multiprocessor. If no PE sends the
signal, the job waits for the stream for up to 10 s at its end and then ends the wait. Meanwhile calls of the GPU's libraries that wait
for the device do not return; those that allocate or free memory may wait for it.

Args:
    at: a GlobalPointer of type uint32 into a device segment of this PE. The operation keeps the segment.
    value: the number that the word has to reach, from 0 to 2**32 - 1.
    stream: as weft.stream_done() takes it, of the word's device.
    kind: the device of the stream, such as ``"cuda:1"``, if the stream does not name it.

Returns:
    a weft.Operation of None, which is over when the stream has gone on. It fails with code "closed" if the job ends first.

Raises:
    weft.Error: as signal_on_stream(); also a word of another PE: keep the word on the PE that waits.)"},
    {"wait_for", as_method(&wait_for), METH_FASTCALL | METH_KEYWORDS,
     R"(wait_for(at, value)
--

Waits until a word is at least `value`, compared cyclically as wait_on_stream() does: a counter may pass 2**32.

For flags that others raise without a message: a kernel on a GPU of another PE, a stream by signal_on_stream(), a put. What the
writer has written before its signal is visible then. This PE polls the word, so it does not sleep meanwhile; it takes its turns.
weft.quiescence() does not count the wait.

Args:
    at: a GlobalPointer of type uint32 into a segment of this PE, in memory of any kind. The operation keeps the segment.
    value: the number that the word has to reach, from 0 to 2**32 - 1.

Returns:
    a weft.Operation of None. It fails with code "closed" if the job ends first. The first one for a word in GPU memory allocates
    memory of the GPU's driver, which may block while a kernel runs: begin it before a kernel of this PE that waits.

Raises:
    weft.Error: another type; a word of another PE: keep the word on the PE that waits; a pointer that is not aligned or that leads to
        no memory.)"},
    {},
};

}  // namespace

void init_stream_signals(PyObject* module) { add_functions(module, functions); }

}  // namespace weft::python
