#include "buffers/receive_buffer.h"

#include <new>

#include "weft/base/error.h"

#include "base/format.h"
#include "buffers/arrays/dtype.h"
#include "buffers/object_buffer.h"
#include "buffers/streams/stream.h"
#include "codec/attach.h"
#include "support/errors.h"

namespace weft::python {

namespace {

struct ReceiveBufferObject {
  PyObject_HEAD Posting* posting;  // null once the post entry method has returned
  std::size_t which;
  ArrayForm form;
  memory::Place place;
};

PyTypeObject* type = nullptr;

ReceiveBufferObject* as_receive_buffer(PyObject* object) {
  return reinterpret_cast<ReceiveBufferObject*>(object);
}

void deallocate(PyObject* self) {
  as_receive_buffer(self)->form.~ArrayForm();
  free_object(self);
}

PyObject* into(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("ReceiveBuffer.into", {"array", "stream"}, 1, values, count, names);
    if (as_receive_buffer(self)->posting == nullptr) {
      throw base::Error(
          base::StatusCode::kInvalidArgument,
          "ReceiveBuffer.into was called after the post entry method; the buffer has its place by then");
    }
    as_receive_buffer(self)->posting->into(as_receive_buffer(self)->which, as_receive_buffer(self)->form,
                                           arguments[0], arguments[1]);
    Py_RETURN_NONE;
  });
}

PyObject* get_shape(PyObject* self, void*) {
  return guarded([self] { return number_tuple(as_receive_buffer(self)->form.extents).release(); });
}
PyObject* get_dtype(PyObject* self, void*) { return Py_NewRef(as_receive_buffer(self)->form.dtype.get()); }
PyObject* get_num_bytes(PyObject* self, void*) {
  return PyLong_FromSize_t(as_receive_buffer(self)->form.size_bytes);
}
PyObject* get_kind(PyObject* self, void*) {
  return guarded([self] { return make_text(memory::place_name(as_receive_buffer(self)->place)).release(); });
}

PyObject* text(PyObject* self) {
  return guarded([self] {
    return make_text(base::format("<weft.ReceiveBuffer {} from {}>", form_text(as_receive_buffer(self)->form),
                                  memory::kind_name(as_receive_buffer(self)->place.kind)))
        .release();
  });
}

PyGetSetDef properties[] = {
    {"shape", &get_shape, nullptr, "The shape of what was sent, a tuple.", nullptr},
    {"dtype", &get_dtype, nullptr, "Its element type, a numpy.dtype.", nullptr},
    {"nbytes", &get_num_bytes, nullptr, "How many bytes come.", nullptr},
    {"kind", &get_kind, nullptr,
     "Where the runtime would land it: on this PE's device of the sender's kind, or ``\"host\"``.", nullptr},
    {},
};
PyMethodDef methods[] = {
    {"into", as_method(&into), METH_FASTCALL | METH_KEYWORDS, R"(into($self, array, stream=None)
--

Chooses where the buffer lands; the entry method then gets `array` itself. Does not block.

A larger array is filled at its beginning, and the entry method gets all of it; pass a slice, such as
``buffer.into(room[:buffer.shape[0]])``, for the method to get only what has arrived. The array belongs to the
runtime until the entry method runs. If another call lands in that memory already, this one waits until the other's
entry method has returned, or has suspended for the first time. If into is not called, the runtime allocates memory.

Args:
    array: writable, C-contiguous memory of any kind, as for Channel.recv, of at least ``nbytes`` bytes. Its elements
        are of the type ``dtype``. Plain bytes take every type: an array of uint8, or an object that has only the
        buffer protocol, such as a bytearray or a memoryview.
    stream: the buffer lands after the work that is queued on it, such as the last kernel that reads `array`.

Raises:
    weft.Error: not such memory, too small, of another element type, or the post entry method has returned.)"},
    {},
};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {Py_tp_repr, reinterpret_cast<void*>(&text)},
    {Py_tp_doc,
     const_cast<char*>(
         R"(An array on its way to an entry method: its post entry method gets this in the array's place.

Valid until the post entry method returns. See weft.post_entry.)")},
    {0, nullptr},
};
PyType_Spec spec = {"weft.ReceiveBuffer", sizeof(ReceiveBufferObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

// Throws base::Error if the argument does not fit into the memory `room`, or if its bytes would become elements of
// another type there. Memory without an element type, and uint8, take any bytes.
void expect_room_for(const ArrayForm& argument, const ArrayForm& room) {
  if (room.size_bytes < argument.size_bytes) {
    throw base::Error(
        base::StatusCode::kTruncated,
        base::format("ReceiveBuffer.into got memory of {} bytes ({}) for an array of {} bytes ({}); choose "
                     "memory that holds all of it",
                     room.size_bytes, form_text(room), argument.size_bytes, form_text(argument)));
  }
  if (!room.dtype || is_byte_type(room.dtype) || is_same_type(room.dtype, argument.dtype)) return;
  throw base::Error(base::StatusCode::kInvalidArgument,
                    base::format("ReceiveBuffer.into got elements of type {} for an array of {}, which would "
                                 "be reinterpreted; choose "
                                 "memory of that type, or of uint8 for its bytes",
                                 dtype_name(room.dtype), dtype_name(argument.dtype)));
}

}  // namespace

Posting::~Posting() {
  for (Ref& object : objects_) as_receive_buffer(object.get())->posting = nullptr;
}

Ref Posting::in_place_of(std::size_t which, const ArrayForm& form) {
  if (which >= receive_buffers_.size() || receive_buffers_[which].size_bytes != form.size_bytes) {
    throw base::Error(base::StatusCode::kCorrupt,
                      "a call arrived damaged: a buffer that did not come with it");
  }
  Ref object = checked(PyType_GenericAlloc(type, 0));
  ReceiveBufferObject* buffer = as_receive_buffer(object.get());
  buffer->posting = this;
  buffer->which = which;
  new (&buffer->form) ArrayForm(form);
  new (&buffer->place) memory::Place(receive_buffers_[which].place);
  objects_.push_back(object);
  return object;
}

void Posting::into(std::size_t which, const ArrayForm& argument, PyObject* array, PyObject* stream) {
  ArrayForm form;
  ObjectBuffer room = buffer_of({array, Access::kWrite, "ReceiveBuffer.into", &form});
  expect_room_for(argument, form);
  NamedStream named = stream_from(stream, room.memory.place, "ReceiveBuffer.into");
  if (named.handle != nullptr) room.memory.stream = named.handle;
  Ref keepers = checked(PyTuple_Pack(2, room.keeper.get(), named.keeper ? named.keeper.get() : Py_None));
  receive_buffers_[which].into = attach(std::move(keepers), room.memory);
  chosen_[which] = Ref::borrow(array);
}

void init_receive_buffer(PyObject* module) { type = add_type(module, spec); }

}  // namespace weft::python
