#include "channel/queued_channel.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "weft/channel/queued_channel.h"

#include "await/future_operation.h"
#include "base/format.h"
#include "buffers/object_buffer.h"
#include "buffers/streams/stream.h"
#include "channel/channel.h"
#include "engine/engine.h"
#include "memory/kinds/kind.h"
#include "memory/memory.h"
#include "support/errors.h"

namespace weft::python {

namespace {

constexpr const char* kUse = "weft.QueuedChannel(self, peer, landings)";

struct QueuedChannelObject {
  PyObject_HEAD EngineRef engine;
  channel::QueuedChannel channel;
  memory::Place device;
  std::vector<void*> addresses;                 // of the landings
  Ref landings;                                 // a tuple of the program's objects
  Ref keepers;                                  // of their memory
  std::map<memory::StreamHandle, Ref> streams;  // that were used, with what keeps them
};

QueuedChannelObject* as_queued(PyObject* object) { return reinterpret_cast<QueuedChannelObject*>(object); }

PyObject* make(PyTypeObject* type, PyObject* positional, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    static const char* const names[] = {"self", "peer", "landings", "id", "kind", nullptr};
    PyObject* self = nullptr;
    PyObject* peer = nullptr;
    PyObject* landings = nullptr;
    PyObject* number = nullptr;
    PyObject* kind = nullptr;
    if (PyArg_ParseTupleAndKeywords(positional, keywords, "OO|OOO:QueuedChannel", const_cast<char**>(names),
                                    &self, &peer, &landings, &number, &kind) == 0) {
      throw PythonError();
    }
    const ChannelName name = channel_name_of(self, peer, number, kUse);
    Engine& engine = Engine::current();
    const Ref listed = landings == nullptr ? checked(PyTuple_New(0)) : checked(PySequence_Tuple(landings));
    const Ref keepers = checked(PyList_New(0));
    std::vector<memory::Buffer> places;
    std::vector<void*> addresses;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(listed.get()); ++i) {
      ObjectBuffer buffer = buffer_of({PyTuple_GET_ITEM(listed.get(), i), Access::kWrite, kUse, nullptr});
      places.push_back(buffer.memory);
      addresses.push_back(buffer.memory.data);
      if (buffer.keeper && PyList_Append(keepers.get(), buffer.keeper.get()) != 0) throw PythonError();
    }
    const memory::Place device = kind == nullptr && !places.empty()
                                     ? places.front().place
                                     : placed_stream_or_default(nullptr, kind, kUse).place;
    channel::QueuedChannel channel(name.self, name.peer, device, std::move(places), name.id);
    Ref object = checked(PyType_GenericAlloc(type, 0));
    QueuedChannelObject& made = *as_queued(object.get());
    new (&made.engine) EngineRef(engine);
    new (&made.channel) channel::QueuedChannel(std::move(channel));
    made.device = device;
    new (&made.addresses) std::vector<void*>(std::move(addresses));
    new (&made.landings) Ref(listed);
    new (&made.keepers) Ref(keepers);
    new (&made.streams) std::map<memory::StreamHandle, Ref>();
    return object.release();
  });
}

void deallocate(PyObject* self) {
  QueuedChannelObject& object = *as_queued(self);
  if (!object.engine->is_closed() && !object.engine->is_on_this_thread()) {
    static_cast<void>(new channel::QueuedChannel(std::move(object.channel)));  // never released
  }
  object.~QueuedChannelObject();
  free_object(self);
}

// The stream of an argument, else the one that the array names, else the one of programs that name none. The object keeps it: it is
// asked later whether it is done.
memory::StreamHandle stream_of(QueuedChannelObject& object, PyObject* stream, memory::StreamHandle of_array,
                               const char* use) {
  if (stream != nullptr && stream != Py_None) {
    NamedStream named = stream_from(stream, object.device, use);
    object.streams.insert_or_assign(named.handle, std::move(named.keeper));
    return named.handle;
  }
  if (of_array != nullptr) return of_array;
  memory::KindBackend* const kind = object.engine->runtime().memory().backend(object.device.kind);
  return kind->default_stream() != nullptr ? kind->default_stream()
                                           : object.engine->own_stream(object.device);
}

PyObject* send(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    QueuedChannelObject& object = *as_queued(self);
    object.engine->expect_open();
    const Arguments arguments("QueuedChannel.send", {"array", "stream"}, 1, values, count, names);
    const ObjectBuffer buffer = buffer_of({arguments[0], Access::kRead, "QueuedChannel.send", nullptr});
    object.channel.send(buffer.memory,
                        stream_of(object, arguments[1], buffer.memory.stream, "QueuedChannel.send"));
    Py_RETURN_NONE;
  });
}

// The program's object for it.
Ref landing_of(const QueuedChannelObject& object, const memory::Buffer& landing) {
  const auto found = std::ranges::find(object.addresses, landing.data);
  return Ref::borrow(PyTuple_GET_ITEM(object.landings.get(), found - object.addresses.begin()));
}

PyObject* recv(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    QueuedChannelObject& object = *as_queued(self);
    object.engine->expect_open();
    const Arguments arguments("QueuedChannel.recv", {"stream"}, 0, values, count, names);
    return landing_of(object,
                      object.channel.recv(stream_of(object, arguments[0], nullptr, "QueuedChannel.recv")))
        .release();
  });
}

PyObject* exchange(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    static constexpr const char* kThis = "QueuedChannel.exchange";
    QueuedChannelObject& object = *as_queued(self);
    object.engine->expect_open();
    const Arguments arguments(kThis, {"array", "stream"}, 1, values, count, names);
    const ObjectBuffer buffer = buffer_of({arguments[0], Access::kRead, kThis, nullptr});
    const memory::StreamHandle stream = stream_of(object, arguments[1], buffer.memory.stream, kThis);
    return landing_of(object, object.channel.exchange(buffer.memory, stream)).release();
  });
}

PyObject* exchange_all(PyObject* type, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    static constexpr const char* kThis = "QueuedChannel.exchange_all";
    const Arguments arguments(kThis, {"channels", "arrays", "stream"}, 2, values, count, names);
    const Ref channels = checked(PySequence_Tuple(arguments[0]));
    const Ref arrays = checked(PySequence_Tuple(arguments[1]));
    const Py_ssize_t size = PyTuple_GET_SIZE(channels.get());
    if (PyTuple_GET_SIZE(arrays.get()) != size) {
      throw base::Error(base::StatusCode::kInvalidArgument,
                        base::format("{}: {} channels and {} arrays: give an array for each channel", kThis,
                                     size, PyTuple_GET_SIZE(arrays.get())));
    }
    std::vector<channel::QueuedChannel::Side> sides;
    memory::StreamHandle stream = nullptr;
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyObject* const one = PyTuple_GET_ITEM(channels.get(), i);
      if (PyObject_IsInstance(one, type) != 1) {
        throw base::Error(base::StatusCode::kInvalidArgument,
                          base::format("{}: a channel is not a {}", kThis, type_name_of(one)));
      }
      QueuedChannelObject& object = *as_queued(one);
      object.engine->expect_open();
      const memory::Buffer array =
          buffer_of({PyTuple_GET_ITEM(arrays.get(), i), Access::kRead, kThis, nullptr}).memory;
      const memory::StreamHandle named = stream_of(object, arguments[2], array.stream, kThis);
      if (i == 0) stream = named;
      sides.push_back({&object.channel, array});
    }
    const std::vector<memory::Buffer> landings = channel::QueuedChannel::exchange_all(sides, stream);
    Ref result = checked(PyList_New(size));
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyList_SET_ITEM(
          result.get(), i,
          landing_of(*as_queued(PyTuple_GET_ITEM(channels.get(), i)), landings[static_cast<std::size_t>(i)])
              .release());
    }
    return result.release();
  });
}

using Start = runtime::Future<> (channel::QueuedChannel::*)();

template <Start start>
PyObject* start_operation(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    QueuedChannelObject& object = *as_queued(self);
    object.engine->expect_open();
    return operation_of(*object.engine, (object.channel.*start)(), Ref::borrow(self)).release();
  });
}

PyMethodDef methods[] = {
    {"connect", &start_operation<&channel::QueuedChannel::connect>, METH_NOARGS, R"(connect($self, /)
--

Agrees with the peer on the places of messages, once. The peer calls it too. Await it before anything is queued.

Returns:
    A weft.Operation of None.

Raises:
    weft.Error: it is connected; when awaited: one of the two devices does not reach the other's memory (code 'unsupported').)"},
    {"send", as_method(&send), METH_FASTCALL | METH_KEYWORDS, R"(send($self, array, stream=None)
--

Queues a message behind the work on a stream, and returns at once. The CPU takes no further part.

Args:
    array: C-contiguous memory of this end's device, of exactly the size in bytes of the peer's landings. It stays unchanged, and is
        kept by the program, until the stream has done the work.
    stream: as weft.stream_done() takes it; None for the stream that the array names, else the default stream.

Raises:
    weft.Error: not connected, another size, or memory of another device.)"},
    {"recv", as_method(&recv), METH_FASTCALL | METH_KEYWORDS, R"(recv($self, stream=None)
--

Queues a wait for the next message on a stream, and returns at once. The CPU takes no further part.

Args:
    stream: as weft.stream_done() takes it; None for the default stream.

Returns:
    The landing, one of the objects that were given: work that is queued on the stream between this call and the next recv()
    finds the message there.

Raises:
    weft.Error: not connected, or this end has no landings.)"},
    {"exchange", as_method(&exchange), METH_FASTCALL | METH_KEYWORDS, R"(exchange($self, array, stream=None)
--

Queues a send of `array` and then a recv(), in one launch, which takes about half the time of the CPU.

Args:
    array: as send() takes it.
    stream: as send() takes it.

Returns:
    The landing, as recv().

Raises:
    weft.Error: as send() and recv().)"},
    {"exchange_all", as_method(&exchange_all), METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
     R"(exchange_all($type, channels, arrays, stream=None)
--

Queues a send on each channel, and then a recv() on each: the halos of a stencil.

It is one launch for up to 8 channels whose arrays have 64 KiB together. Larger arrays are copied by the device's copy engine,
between two launches.

Args:
    channels: connected QueuedChannels of one device, each once.
    arrays: what each sends, as send() takes it.
    stream: as send() takes it; None for the stream that the first array names, else the default stream.

Returns:
    A list of the landings, in the order of the channels.

Raises:
    weft.Error: as send() and recv(); or the channels are of different devices, or not as many as the arrays.)"},
    {"over", &start_operation<&channel::QueuedChannel::over>, METH_NOARGS, R"(over($self, /)
--

When all that was queued is over. Launches of graphs are not counted: use weft.stream_done() for them.

Returns:
    A weft.Operation of None.

Raises:
    weft.Error: when awaited: a device has failed, or the job ended.)"},
    {"close", &start_operation<&channel::QueuedChannel::close>, METH_NOARGS, R"(close($self, /)
--

Waits for all that was queued, and for the close() of the peer. Then the landings are the program's again, the chare can move, and
connect() may follow.

Returns:
    A weft.Operation of None.)"},
    {},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(&make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char*>(R"(QueuedChannel(self, peer, landings=(), id=0, kind=None)
--

Messages of device memory between two chares that are queued on streams: a loop of kernels, sends and receives needs the CPU
for nothing but queueing, and can be captured in a CUDA graph.

Both chares name each other and the same id. The n-th message lands in ``landings[n % len(landings)]`` of the receiver, and is
valid for work that is queued before the next recv(). A graph has a multiple of ``len(landings)`` messages of a direction. A stream
whose message does not come waits; queue what the peer needs first. See docs/streams.md.

A chare with a channel that is connected does not move and is not saved.

Args:
    self: the chare that this end belongs to.
    peer: the proxy of the other chare, on a PE of the same host.
    landings: 2 to 8 writable arrays of one device and one size; none if this end only sends.
    id: distinguishes several queued channels between the same two chares; from 0 to 2**32 - 1.
    kind: the device, such as ``"cuda:1"``; by default that of the landings, else this PE's own.

Raises:
    weft.Error: not a chare, not the proxy of one chare, other landings, or no job is running.)")},
    {0, nullptr},
};
PyType_Spec spec = {"weft.QueuedChannel", sizeof(QueuedChannelObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

void init_queued_channel(PyObject* module) { add_type(module, spec); }

}  // namespace weft::python
