#include "pgas/memory/segment_object.h"

#include <memory>
#include <new>
#include <utility>

#include "weft/base/error.h"
#include "weft/pgas/pgas.h"

#include "await/future.h"
#include "base/format.h"
#include "buffers/arrays/dtype.h"
#include "buffers/object_buffer.h"
#include "buffers/streams/stream.h"
#include "engine/engine.h"
#include "memory/memory.h"
#include "pgas/memory/global_pointer.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// An array of the program under a segment.
struct ArrayUnder {
  Ref array;   // null for none
  Ref keeper;  // keeps its memory where it is: a bytearray, for example, cannot be resized meanwhile
};

// The segment, and the array of the program under it if there is one. The array stays until no PE uses its memory.
class OwnedSegment {
 public:
  OwnedSegment(Engine& engine, rma::Segment segment, ArrayUnder under)
      : engine_(engine), segment_(std::move(segment)), under_(std::move(under)) {}
  ~OwnedSegment() {
    if (under_.array && segment_ && !engine_->is_closed()) keep_array(std::move(segment_).release());
  }
  OwnedSegment(const OwnedSegment&) = delete;
  OwnedSegment& operator=(const OwnedSegment&) = delete;

  const rma::Segment& segment() const { return segment_; }
  const ArrayUnder& under() const { return under_; }
  // Throws base::Error if it was released before.
  runtime::Future<> release() {
    runtime::Future<> released = std::move(segment_).release();
    if (under_.array) keep_array(released);
    return released;
  }

 private:
  void keep_array(const runtime::Future<>& released) {
    released.then([under = std::move(under_)](const runtime::Future<>&) {});
  }

  EngineRef engine_;  // declared first, so that it is destroyed last
  rma::Segment segment_;
  ArrayUnder under_;
};

struct SegmentParts {
  EngineRef engine;
  std::shared_ptr<OwnedSegment> own;  // null after a garbage collection has cleared the object
  ArrayForm form;
  rma::GlobalAddress address;
  memory::Place place;
  Ref local;  // what `local` gave
};
struct SegmentObject {
  PyObject_HEAD SegmentParts parts;
};

PyTypeObject* segment_type = nullptr;

SegmentParts& parts_of(PyObject* self) { return reinterpret_cast<SegmentObject*>(self)->parts; }
SegmentParts& open_parts_of(PyObject* self) {
  SegmentParts& parts = parts_of(self);
  parts.engine->expect_open();
  return parts;
}

Ref make_object(Engine& engine, ArrayForm form, rma::Segment segment, ArrayUnder under) {
  const rma::GlobalAddress address = segment.address();
  const memory::Place place = segment.place();
  auto own = std::make_shared<OwnedSegment>(engine, std::move(segment), std::move(under));
  Ref object = checked(PyType_GenericAlloc(segment_type, 0));
  new (&parts_of(object.get()))
      SegmentParts{EngineRef(engine), std::move(own), std::move(form), address, place, Ref()};
  return object;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  const SegmentParts& parts = parts_of(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(parts.local.get());
  if (parts.own == nullptr) return 0;
  Py_VISIT(parts.own->under().array.get());
  Py_VISIT(parts.own->under().keeper.get());
  return 0;
}

// Frees the segment, which keeps the array until no PE uses its memory.
int clear(PyObject* self) {
  SegmentParts& parts = parts_of(self);
  parts.local = Ref();
  Engine::drop_on_pe_thread(std::move(parts.own));
  return 0;
}

void deallocate(PyObject* self) {
  PyObject_GC_UnTrack(self);
  SegmentParts& parts = parts_of(self);
  clear(self);
  parts.~SegmentParts();
  free_object(self);
}

// --- Attributes

PyObject* get_shape(PyObject* self, void*) {
  return guarded([self] { return number_tuple(parts_of(self).form.extents).release(); });
}
PyObject* get_dtype(PyObject* self, void*) { return Py_NewRef(parts_of(self).form.dtype.get()); }
PyObject* get_nbytes(PyObject* self, void*) { return PyLong_FromSize_t(parts_of(self).form.size_bytes); }
PyObject* get_kind(PyObject* self, void*) {
  return guarded([self] { return make_text(memory::place_name(parts_of(self).place)).release(); });
}

[[noreturn]] void refuse_released(const SegmentParts& parts) {
  throw base::Error(base::StatusCode::kNotFound, base::format("{} cannot be used: the segment has been freed",
                                                              rma::describe(parts.address)));
}

OwnedSegment& own_of(const SegmentParts& parts) {
  if (parts.own == nullptr || !parts.own->segment()) refuse_released(parts);
  return *parts.own;
}

PyObject* get_local(PyObject* self, void*) {
  return guarded([self]() -> PyObject* {
    SegmentParts& parts = parts_of(self);
    if (parts.local) return Py_NewRef(parts.local.get());
    const Ref& array = own_of(parts).under().array;
    if (array) return Py_NewRef(array.get());
    parts.engine->expect_open();
    parts.local = reached_array(*parts.engine, parts.address, parts.form);
    return Py_NewRef(parts.local.get());
  });
}

// --- Methods

// The element that an int, or a tuple of one int for each dimension, names.
std::int64_t element_from(const ArrayForm& form, PyObject* index) {
  const auto number = [](PyObject* object) -> std::int64_t {
    const Py_ssize_t found = PyNumber_AsSsize_t(object, PyExc_OverflowError);
    if (found == -1 && PyErr_Occurred() != nullptr) throw PythonError();
    return found;
  };
  const auto expect_below = [&](std::int64_t found, std::int64_t end) {
    if (found >= 0 && found < end) return;
    throw base::Error(
        base::StatusCode::kOutOfRange,
        base::format("Segment.pointer: {} is outside of a segment of {}", readable(index), form_text(form)));
  };
  if (PyTuple_Check(index) == 0) {
    const std::int64_t found = number(index);
    expect_below(found, num_elements(form) + 1);  // the pointer behind the last element is one to count from
    return found;
  }
  if (PyTuple_GET_SIZE(index) != static_cast<Py_ssize_t>(form.extents.size())) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("Segment.pointer got {} for a segment of {}; give one int for each dimension",
                     readable(index), form_text(form)));
  }
  std::int64_t element = 0;
  for (std::size_t d = 0; d < form.extents.size(); ++d) {
    const std::int64_t found = number(PyTuple_GET_ITEM(index, static_cast<Py_ssize_t>(d)));
    expect_below(found, form.extents[d]);
    element = element * form.extents[d] + found;
  }
  return element;
}

PyObject* pointer(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    const Arguments arguments("Segment.pointer", {"index"}, 0, values, count, names);
    const SegmentParts& parts = parts_of(self);
    const std::int64_t element = arguments[0] == nullptr ? 0 : element_from(parts.form, arguments[0]);
    const auto item = static_cast<std::int64_t>(item_size_bytes(parts.form.dtype));
    return make_global_pointer(parts.address.moved_by(element * item), parts.form.dtype).release();
  });
}

PyObject* publish(PyObject* self, PyObject*) {
  return guarded([self]() -> PyObject* {
    const SegmentParts& parts = open_parts_of(self);
    own_of(parts).segment().publish();
    Py_RETURN_NONE;
  });
}

PyObject* release(PyObject* self, PyObject*) {
  return guarded([self]() -> PyObject* {
    SegmentParts& parts = open_parts_of(self);
    OwnedSegment& own = own_of(parts);
    parts.local = Ref();
    return wrap_future(*parts.engine, own.release()).release();
  });
}

PyObject* represent(PyObject* self) {
  return guarded([self]() -> PyObject* {
    const SegmentParts& parts = parts_of(self);
    return make_text(base::format("<weft.pgas.Segment {} of PE {}: {}, {}>", parts.address.segment(),
                                  parts.address.pe(), form_text(parts.form), memory::place_name(parts.place)))
        .release();
  });
}

// --- Making

PyObject* make_segment(PyObject*, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    constexpr const char* kUse = "weft.pgas.make_segment";
    const Arguments arguments(kUse, {"shape", "dtype", "kind"}, 1, values, count, names);
    Engine& engine = Engine::current();
    const Ref double_type = make_text("float64");
    ArrayForm form = make_form(make_dtype(arguments[1] == nullptr ? double_type.get() : arguments[1]),
                               extents_from(arguments[0], kUse));
    const memory::Place place = arguments[2] == nullptr ? memory::Place() : place_from(arguments[2], kUse);
    rma::Segment segment = engine.pgas().make_segment(form.size_bytes, place);
    return make_object(engine, std::move(form), std::move(segment), {}).release();
  });
}

PyObject* make_segment_at(PyObject*, PyObject* array) {
  return guarded([&]() -> PyObject* {
    constexpr const char* kUse = "weft.pgas.make_segment_at";
    Engine& engine = Engine::current();
    ArrayForm form;
    ObjectBuffer buffer = buffer_of({array, Access::kWrite, kUse, &form});
    if (!form.dtype) {  // plain bytes
      const Ref byte_type = make_text("uint8");
      form = make_form(make_dtype(byte_type.get()), {static_cast<std::int64_t>(form.size_bytes)});
    }
    rma::Segment segment = engine.pgas().make_segment_at(buffer.memory.data, buffer.memory.size_bytes);
    return make_object(engine, std::move(form), std::move(segment),
                       {Ref::borrow(array), std::move(buffer.keeper)})
        .release();
  });
}

PyGetSetDef attributes[] = {
    {"shape", &get_shape, nullptr, "The extents of the memory as an array in C order.", nullptr},
    {"dtype", &get_dtype, nullptr, "The type of the elements, a numpy.dtype.", nullptr},
    {"nbytes", &get_nbytes, nullptr, "The size in bytes.", nullptr},
    {"kind", &get_kind, nullptr, "The kind of the memory and its device: ``\"host\"`` or ``\"cuda:0\"``.",
     nullptr},
    {"local", &get_local, nullptr,
     "The memory as an array of this PE: a NumPy array, a weft.DeviceArray, or what make_segment_at() got. "
     "Nothing is copied.\n\n"
     "The array keeps the memory, so a segment that is released is reclaimed only after it.",
     nullptr},
    {},
};

PyMethodDef methods[] = {
    {"pointer", as_method(&pointer), METH_FASTCALL | METH_KEYWORDS, R"(pointer($self, index=0)
--

A global pointer to an element, which any PE may use.

Args:
    index: the number of the element in C order, or a tuple of one int for each dimension.

Raises:
    weft.Error: there is no such element.)"},
    {"publish", &publish, METH_NOARGS, R"(publish($self, /)
--

Tells all PEs how to reach the segment, so that their first use of a pointer need not ask. Optional, and not collective.)"},
    {"release", &release, METH_NOARGS, R"(release($self, /)
--

Frees the segment: a later use of a pointer into it is an error.

Operations that have begun on PEs that know the segment end well. A PE that must ask for it first may be too late, and
its operation fails: have others await their operations before.

A Segment that is dropped is freed too, and nothing waits for that.

Returns:
    a weft.Future of None, which is ready when no PE uses the memory any more. It waits for the arrays that ``local``,
    GlobalPointer.local() and GlobalPointer.mapped() gave on any PE.

Raises:
    weft.Error: the segment was released before, or the job has ended.)"},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
    {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(&clear)},
    {Py_tp_repr, reinterpret_cast<void*>(&represent)},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char*>(R"(Memory of this PE that every PE of the job may reach by global pointers.

make_segment() and make_segment_at() make them. The segment is freed when this object is dropped.)")},
    {0, nullptr},
};
PyType_Spec spec = {"weft.pgas.Segment", sizeof(SegmentObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_HAVE_GC, slots};

PyMethodDef functions[] = {
    {"make_segment", as_method(&make_segment), METH_FASTCALL | METH_KEYWORDS,
     R"(make_segment(shape, dtype='float64', kind='host')
--

Makes a segment of this PE, without the others.

Host memory is filled with zeros, device memory is not. The PEs of one host map host memory: their operations on it are
loads, stores and CPU atomics, and need nothing of this PE.

Args:
    shape: an int, or a sequence of ints.
    dtype: as numpy.dtype takes it; plain bytes, no Python objects.
    kind: ``"host"``, ``"cuda"`` or ``"emulated"`` for this PE's own device, or a device by number, such as ``"cuda:1"``.

Returns:
    a Segment.

Raises:
    weft.Error: no such kind or device in this process, no elements, or not enough memory.)"},
    {"make_segment_at", &make_segment_at, METH_O, R"(make_segment_at(array, /)
--

Makes a segment over memory of the program, of any kind, without a copy.

Other PEs reach host memory through the network layer, and not by loads and stores. The array stays alive until no PE uses
the segment. An array with the buffer protocol, such as a bytearray, cannot be resized until then.

Args:
    array: contiguous and writable: a NumPy array, a weft.DeviceArray, an array of CuPy or PyTorch, or an object with the
        buffer protocol.

Raises:
    weft.Error: the memory cannot be used, or it has no elements.)"},
    {},
};

}  // namespace

void init_segment(PyObject* module) {
  segment_type = add_type(module, spec);
  add_functions(module, functions);
}

}  // namespace weft::python
