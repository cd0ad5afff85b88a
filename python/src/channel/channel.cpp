#include "weft/channel/channel.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "await/operation.h"
#include "base/format.h"
#include "buffers/object_buffer.h"
#include "channel/channel.h"
#include "channel/objects.h"
#include "chare/classes/chare.h"
#include "chare/collections/element_proxy.h"
#include "engine/engine.h"
#include "support/errors.h"

namespace weft::python {

namespace {

struct ChannelObject {
  PyObject_HEAD EngineRef engine;
  channel::Channel channel;
  std::shared_ptr<void> held;  // keeps the end
  bool is_checked;             // in check mode, which a job is in or not
};

ChannelObject* as_channel(PyObject* object) { return reinterpret_cast<ChannelObject*>(object); }

PyTypeObject* channel_type = nullptr;

Ref make_object(PyTypeObject* type, Engine& engine, const channel::Channel& channel) {
  std::shared_ptr<void> held = channel.hold();
  Ref object = checked(PyType_GenericAlloc(type, 0));
  new (&as_channel(object.get())->engine) EngineRef(engine);
  new (&as_channel(object.get())->channel) channel::Channel(channel);
  new (&as_channel(object.get())->held) std::shared_ptr<void>(std::move(held));
  as_channel(object.get())->is_checked = channel.is_checked();
  return object;
}

PyObject* make(PyTypeObject* type, PyObject* positional, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    static const char* const names[] = {"self", "peer", "id", nullptr};
    PyObject* self = nullptr;
    PyObject* peer = nullptr;
    PyObject* number = nullptr;
    if (PyArg_ParseTupleAndKeywords(positional, keywords, "OO|O:Channel", const_cast<char**>(names), &self,
                                    &peer, &number) == 0) {
      throw PythonError();
    }
    const ChannelName name = channel_name_of(self, peer, number, "weft.Channel(self, peer)");
    return make_object(type, Engine::current(), channel::Channel(name.self, name.peer, name.id)).release();
  });
}

// The end stays for the rest of the job if another thread drops the object.
void deallocate(PyObject* self) {
  ChannelObject& object = *as_channel(self);
  if (object.held != nullptr && !object.engine->is_closed() && !object.engine->is_on_this_thread()) {
    static_cast<void>(new std::shared_ptr<void>(std::move(object.held)));  // never released
  }
  as_channel(self)->~ChannelObject();
  free_object(self);
}

// The contents of an array's memory, by the name of its dtype. Without check mode the form is empty: plain bytes.
class FormContents {
 public:
  explicit FormContents(const ArrayForm& form) {
    if (!form.dtype) return;  // plain bytes
    const Ref name = checked(PyObject_GetAttrString(form.dtype.get(), "name"));
    Py_ssize_t length = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(name.get(), &length);
    if (text == nullptr) throw PythonError();
    type_.assign(text, static_cast<std::size_t>(length));
    // Memory without dimensions, and structures, are taken as bytes.
    if (form.extents.empty() || type_.starts_with("void")) type_.clear();
    contents_ = {type_, 1, form.extents};
  }
  FormContents(const FormContents&) = delete;
  FormContents& operator=(const FormContents&) = delete;
  const channel::Contents* get() const { return &contents_; }

 private:
  std::string type_;
  channel::Contents contents_;
};

PyObject* send(PyObject* self, PyObject* data) {
  return guarded([&]() -> PyObject* {
    ChannelObject& object = *as_channel(self);
    object.engine->expect_open();
    ArrayForm form;
    ObjectBuffer buffer =
        buffer_of({data, Access::kRead, "Channel.send", object.is_checked ? &form : nullptr});
    runtime::OperationState* state = object.channel.send(buffer.memory, FormContents(form).get()).release();
    bool copied = buffer.memory.place.is_host() && buffer.memory.size_bytes <= channel::kCopyLimitBytes;
    return make_operation_object(*object.engine, state, copied ? Ref() : std::move(buffer.keeper),
                                 Ref::borrow(Py_None))
        .release();
  });
}

PyObject* recv(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    ChannelObject& object = *as_channel(self);
    object.engine->expect_open();
    Arguments arguments("Channel.recv", {"into"}, 0, values, count, names);
    if (arguments[0] == nullptr) {
      PyErr_SetString(PyExc_TypeError,
                      "Channel.recv needs the argument 'into'; recv_object() receives an object of any size, "
                      "which the other chare has sent with send_object(value)");
      throw PythonError();
    }
    ArrayForm form;
    ObjectBuffer buffer =
        buffer_of({arguments[0], Access::kWrite, "Channel.recv", object.is_checked ? &form : nullptr});
    runtime::OperationState* state = object.channel.recv(buffer.memory, FormContents(form).get()).release();
    return make_operation_object(*object.engine, state, std::move(buffer.keeper), Ref::borrow(arguments[0]))
        .release();
  });
}

PyObject* send_object(PyObject* self, PyObject* value) {
  return guarded([&]() -> PyObject* {
    ChannelObject& object = *as_channel(self);
    object.engine->expect_open();
    return ObjectStream::of(object.channel).send(*object.engine, value).release();
  });
}

PyObject* recv_object(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    ChannelObject& object = *as_channel(self);
    object.engine->expect_open();
    return ObjectStream::of(object.channel).receive(*object.engine).release();
  });
}

// The key stands for a channel in the state of a chare that moves, see weft/_chare/migration.py.
PyObject* key(PyObject* self, PyObject*) {
  return guarded([self]() -> PyObject* {
    ChannelObject& object = *as_channel(self);
    object.engine->expect_open();
    const std::vector<std::byte> bytes = base::pack(object.channel, &object.engine->runtime());
    return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(bytes.data()),
                                     static_cast<Py_ssize_t>(bytes.size()));
  });
}

PyObject* moved_channel(PyObject*, PyObject* bytes) {
  return guarded([bytes]() -> PyObject* {
    char* data = nullptr;
    Py_ssize_t size_bytes = 0;
    if (PyBytes_AsStringAndSize(bytes, &data, &size_bytes) != 0) throw PythonError();
    Engine& engine = Engine::current();
    Pup p = Pup::unpacker(data, static_cast<std::size_t>(size_bytes), &engine.runtime());
    channel::Channel moved;
    p | moved;
    return make_object(channel_type, engine, moved).release();
  });
}

PyObject* text(PyObject* self) {
  return guarded([self]() -> PyObject* {
    as_channel(self)->engine->expect_open();
    return make_text(base::format("<weft.Channel: {}>", as_channel(self)->channel.description())).release();
  });
}

PyMethodDef methods[] = {
    {"send", &send, METH_O, R"(send($self, buffer, /)
--

Starts sending the bytes of `buffer` and returns a weft.Operation, which may be dropped. Does not block.

Up to 4096 bytes of host memory are copied at once, so the buffer may be changed when send returns. More, and all
device memory, is sent in place: it must not be changed before the operation is complete (``await
channel.send(a)``) and is kept alive until then. A NumPy array stays writable meanwhile. Device memory is sent after
the work that is queued on the stream that it names.

A send in place may be complete only when the peer has posted the matching receive. If both ends await a send before
they receive, both may wait for ever; start the send, receive, then await the send.

Args:
    buffer: C-contiguous memory of any shape and dtype: a weft.DeviceArray, a NumPy array, or an object with the
        buffer protocol, ``__cuda_array_interface__`` (CuPy, Numba) or ``__dlpack__`` (PyTorch, JAX).

Raises:
    weft.Error: not such a buffer, or the job or this chare's collection has ended (code 'closed'); when awaited: the
        buffer could not be sent, or the other chare's collection has been destroyed (code 'closed').)"},
    {"recv", as_method(&recv), METH_FASTCALL | METH_KEYWORDS, R"(recv($self, into)
--

Starts receiving the next message into `into` and returns a weft.Operation; awaiting it gives `into`. Does not
block.

`into` belongs to the runtime until the operation is complete, and is then visible to every stream.

Args:
    into: writable, C-contiguous memory as for send, of exactly the size in bytes that is sent. The sender's may be
        of another memory kind.

Raises:
    weft.Error: not such a buffer, or the job or this chare's collection has ended (code 'closed'); when awaited: the
        message has another size, the peer could not send it, or one of the two collections has been destroyed (code
        'closed').)"},
    {"send_object", &send_object, METH_O, R"(send_object($self, value, /)
--

Sends any Python object to a ``recv_object`` of the other chare. Does not block.

The value travels like an argument of an entry method: it is copied when send_object is called. Objects and plain memory
share the order of the channel. An object costs more than plain memory of the same size: for arrays that are exchanged
again and again use send and recv.

Args:
    value: any object that travels, without device memory.

Returns:
    A weft.Operation, which may be dropped. It is over when the object has been sent; a large one may be sent only when
    the other chare receives it.

Raises:
    weft.Error: the value cannot travel, or the job or this chare's collection has ended (code 'closed'); when awaited:
        the other chare's collection has been destroyed (code 'closed').)"},
    {"recv_object", &recv_object, METH_NOARGS, R"(recv_object($self, /)
--

Receives the next object, which the other chare has sent with ``send_object``. Does not block.

Returns:
    A weft.Future of the object. Several may be in flight: each gets the next object.

Raises:
    weft.Error: the job or this chare's collection has ended (code 'closed'); when awaited: the other chare has sent
        plain memory, or one of the two collections has been destroyed (code 'closed').
    weft.RemoteError: when awaited: the object could not be unpickled.)"},
    {"_key", &key, METH_NOARGS, nullptr},
    {},
};
PyMethodDef functions[] = {{"_moved_channel", &moved_channel, METH_O, nullptr}, {}};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(&make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
    {Py_tp_methods, methods},
    {Py_tp_repr, reinterpret_cast<void*>(&text)},
    {Py_tp_doc, const_cast<char*>(R"(Channel(self, peer, id=0)
--

An ordered two-sided stream between two chares: of plain memory, and of objects.

Both chares name each other and the same id; then the sends of each meet the receives of the other in order. Either
side may come first, and many operations may be in flight. Naming the same peer and id again gives the same end.
A chare that names itself receives what it sends. A chare that moves takes its ends along: an attribute that is a
channel is the same end on the new PE.

Args:
    self: the chare that this end belongs to.
    peer: the proxy of the other chare, of any collection.
    id: distinguishes several channels between the same two chares; from 0 to 2**32 - 1.

Raises:
    weft.Error: not a chare, not the proxy of one chare, the id is out of range, or no job is running.)")},
    {0, nullptr},
};
PyType_Spec spec = {"weft.Channel", sizeof(ChannelObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

ChannelName channel_name_of(PyObject* self, PyObject* peer, PyObject* id, const char* use) {
  std::uint32_t number = 0;
  if (id != nullptr) {
    int overflow = 0;
    const Ref index = checked(PyNumber_Index(id));
    const long long value = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
    if (overflow != 0 || value < 0 || value > std::numeric_limits<std::uint32_t>::max()) {
      throw base::Error(base::StatusCode::kOutOfRange,
                        base::format("{}: an id is from 0 to 2**32 - 1, and {} is not", use, readable(id)));
    }
    number = static_cast<std::uint32_t>(value);
  }
  if (PyObject_TypeCheck(self, chare_type()) == 0) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("{} takes the chare that this end belongs to, not a {}", use, type_name_of(self)));
  }
  PyChare& chare = chare_of(self);
  const ElementName name = element_of(peer, use);
  return {chare, channel::Peer(*name.collection, name.index), number};
}

void init_channel(PyObject* module) {
  channel_type = add_type(module, spec);
  add_functions(module, functions);
}

}  // namespace weft::python
