#include "pgas/memory/global_pointer.h"

#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "weft/base/error.h"
#include "weft/pgas/pgas.h"

#include "await/operation.h"
#include "base/format.h"
#include "buffers/arrays/arrays.h"
#include "buffers/arrays/dtype.h"
#include "buffers/device/device_array.h"
#include "buffers/streams/stream.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "codec/forms.h"
#include "support/errors.h"

namespace weft::python {

namespace {

using rma::GlobalAddress;

PyTypeObject* pointer_type = nullptr;

[[noreturn]] void invalid(const std::string& message) {
  throw base::Error(base::StatusCode::kInvalidArgument, message);
}

// Reads an address that a peer or a pickle has sent. Operations check the PE and the segment; the kind has a name.
GlobalAddress address_from(const std::byte* bytes) {
  GlobalAddress address;
  std::memcpy(static_cast<void*>(&address), bytes, sizeof address);
  if (static_cast<int>(address.kind()) >= memory::kNumKinds) Decoder::corrupt("a global pointer");
  return address;
}

// Keeps memory of a segment for an array.
struct HeldSegment {
  EngineRef engine;  // declared first, so that it is destroyed after `keeper`
  std::shared_ptr<void> keeper;
};

constexpr const char* kHeld = "weft.pgas segment memory";

void drop_held(PyObject* capsule) {
  auto* const held = static_cast<std::shared_ptr<void>*>(PyCapsule_GetPointer(capsule, kHeld));
  Engine::drop_on_pe_thread(std::move(*held));
  delete held;
}

Ref keeper_object(std::shared_ptr<void> held) {
  auto own = std::make_unique<std::shared_ptr<void>>(std::move(held));
  Ref capsule = checked(PyCapsule_New(own.get(), kHeld, &drop_held));
  static_cast<void>(own.release());
  return capsule;
}

std::ptrdiff_t count_from(PyObject* number) {
  const Py_ssize_t count = PyNumber_AsSsize_t(number, PyExc_OverflowError);
  if (count == -1 && PyErr_Occurred() != nullptr) throw PythonError();
  return count;
}

Ref moved_by(const GlobalPointerObject* pointer, std::ptrdiff_t count) {
  std::ptrdiff_t size_bytes = 0;
  if (__builtin_mul_overflow(count, static_cast<std::ptrdiff_t>(pointer->item_bytes), &size_bytes)) {
    throw base::Error(
        base::StatusCode::kOutOfRange,
        base::format("{} elements from {} are outside of every segment", count, pointer_text(pointer)));
  }
  return make_global_pointer(pointer->address.moved_by(size_bytes), pointer->dtype);
}

// --- Slots

PyObject* make(PyTypeObject*, PyObject* positional, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    static const char* const names[] = {"dtype", nullptr};
    PyObject* dtype = nullptr;
    if (PyArg_ParseTupleAndKeywords(positional, keywords, "O:GlobalPointer", const_cast<char**>(names),
                                    &dtype) == 0) {
      throw PythonError();
    }
    return make_global_pointer({}, make_dtype(dtype)).release();
  });
}

void deallocate(PyObject* self) {
  as_global_pointer(self)->~GlobalPointerObject();
  free_object(self);
}

PyObject* represent(PyObject* self) {
  return guarded([self] {
    return make_text(base::format("<weft.pgas.GlobalPointer: {}>", pointer_text(as_global_pointer(self))))
        .release();
  });
}

PyObject* add(PyObject* left, PyObject* right) {
  return guarded([&]() -> PyObject* {
    if (!is_global_pointer(left)) std::swap(left, right);
    if (PyIndex_Check(right) == 0) Py_RETURN_NOTIMPLEMENTED;
    return moved_by(as_global_pointer(left), count_from(right)).release();
  });
}

PyObject* distance(const GlobalPointerObject* left, const GlobalPointerObject* right) {
  if (left->address.segment_word() != right->address.segment_word() ||
      !is_same_type(left->dtype, right->dtype)) {
    invalid(base::format("{} and {} have no distance: give pointers of one type into one segment",
                         pointer_text(left), pointer_text(right)));
  }
  const auto bytes = static_cast<std::int64_t>(left->address.offset_bytes() - right->address.offset_bytes());
  return PyLong_FromLongLong(bytes / static_cast<std::int64_t>(left->item_bytes));
}

PyObject* subtract(PyObject* left, PyObject* right) {
  return guarded([&]() -> PyObject* {
    if (!is_global_pointer(left)) Py_RETURN_NOTIMPLEMENTED;
    if (is_global_pointer(right)) return distance(as_global_pointer(left), as_global_pointer(right));
    if (PyIndex_Check(right) == 0) Py_RETURN_NOTIMPLEMENTED;
    const std::ptrdiff_t count = count_from(right);
    if (count == std::numeric_limits<std::ptrdiff_t>::min()) invalid("a pointer cannot move so far");
    return moved_by(as_global_pointer(left), -count).release();
  });
}

int is_not_null(PyObject* self) { return as_global_pointer(self)->address.is_null() ? 0 : 1; }

PyObject* compare(PyObject* self, PyObject* other, int operation) {
  if (!is_global_pointer(other)) Py_RETURN_NOTIMPLEMENTED;
  const GlobalPointerObject* const left = as_global_pointer(self);
  const GlobalPointerObject* const right = as_global_pointer(other);
  const bool same_type = is_same_type(left->dtype, right->dtype);
  if (operation == Py_EQ || operation == Py_NE) {
    const bool same = same_type && left->address == right->address;
    return PyBool_FromLong(same == (operation == Py_EQ) ? 1 : 0);
  }
  if (!same_type) Py_RETURN_NOTIMPLEMENTED;
  Py_RETURN_RICHCOMPARE(left->address, right->address, operation);
}

Py_hash_t hash(PyObject* self) {
  const GlobalAddress& address = as_global_pointer(self)->address;
  std::uint64_t mixed = address.segment_word() * 0x9e3779b97f4a7c15ULL ^ address.offset_bytes();
  mixed = (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9ULL;
  const auto value = static_cast<Py_hash_t>(mixed ^ mixed >> 32);
  return value == -1 ? -2 : value;
}

// --- Attributes

PyObject* get_pe(PyObject* self, void*) { return PyLong_FromLong(as_global_pointer(self)->address.pe()); }
PyObject* get_segment(PyObject* self, void*) {
  return PyLong_FromUnsignedLong(as_global_pointer(self)->address.segment());
}
PyObject* get_offset(PyObject* self, void*) {
  return PyLong_FromLongLong(static_cast<std::int64_t>(as_global_pointer(self)->address.offset_bytes()));
}
PyObject* get_kind(PyObject* self, void*) {
  return guarded(
      [self] { return make_text(memory::kind_name(as_global_pointer(self)->address.kind())).release(); });
}
PyObject* get_dtype(PyObject* self, void*) { return Py_NewRef(as_global_pointer(self)->dtype.get()); }
PyObject* get_is_local(PyObject* self, void*) {
  return guarded([self] {
    return PyBool_FromLong(Engine::current().pgas().is_local(as_global_pointer(self)->address) ? 1 : 0);
  });
}

// --- Methods

ArrayForm form_at(const GlobalPointerObject* pointer, const Arguments& arguments, const char* use) {
  return make_form(pointer->dtype,
                   arguments[0] == nullptr ? std::vector<std::int64_t>{1} : extents_from(arguments[0], use));
}

PyObject* local(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    constexpr const char* kUse = "GlobalPointer.local";
    const Arguments arguments(kUse, {"shape"}, 0, values, count, names);
    Engine& engine = Engine::current();
    const GlobalPointerObject* const pointer = as_global_pointer(self);
    ArrayForm form = form_at(pointer, arguments, kUse);
    if (!engine.pgas().is_local(pointer->address)) Py_RETURN_NONE;
    return reached_array(engine, pointer->address, std::move(form)).release();
  });
}

PyObject* mapped(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    constexpr const char* kUse = "GlobalPointer.mapped";
    const Arguments arguments(kUse, {"shape"}, 0, values, count, names);
    const GlobalPointerObject* const pointer = as_global_pointer(self);
    return reached_array(Engine::current(), pointer->address, form_at(pointer, arguments, kUse)).release();
  });
}

// The element as kernels of a device reach it, for weft.pgas.peer_addresses().
PyObject* for_kernels(PyObject* self, PyObject* kind) {
  return guarded([&]() -> PyObject* {
    Engine& engine = Engine::current();
    const GlobalPointerObject* const pointer = as_global_pointer(self);
    ArrayForm form = make_form(pointer->dtype, {});
    rma::GlobalMemory::HeldMemory held = engine.pgas().hold_for_kernels(
        pointer->address, form.size_bytes, place_from(kind, "weft.pgas.peer_addresses"));
    auto keeper = std::make_shared<HeldSegment>(EngineRef(engine), std::move(held.keeper));
    return make_device_array_over(std::move(form), held.memory, std::move(keeper)).release();
  });
}

PyObject* learn(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Engine& engine = Engine::current();
    runtime::OperationState* const state = engine.pgas().learn(as_global_pointer(self)->address).release();
    if (state == nullptr) return finished_operation().release();
    return make_operation_object(engine, state, Ref(), Ref::borrow(Py_None)).release();
  });
}

PyObject* cast(PyObject* self, PyObject* dtype) {
  return guarded(
      [&] { return make_global_pointer(as_global_pointer(self)->address, make_dtype(dtype)).release(); });
}

PyObject* to_bytes(PyObject* self, PyObject*) {
  const GlobalAddress& address = as_global_pointer(self)->address;
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(&address), sizeof address);
}

PyObject* from_bytes(PyObject*, PyObject* const* values, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    const Arguments arguments("GlobalPointer.from_bytes", {"data", "dtype"}, 2, values, count, nullptr);
    Py_buffer view;
    checked(PyObject_GetBuffer(arguments[0], &view, PyBUF_SIMPLE));
    std::byte bytes[sizeof(GlobalAddress)];
    const bool fits = view.len == static_cast<Py_ssize_t>(sizeof bytes);
    if (fits) std::memcpy(bytes, view.buf, sizeof bytes);
    const Py_ssize_t size_bytes = view.len;
    PyBuffer_Release(&view);
    if (!fits) invalid(base::format("GlobalPointer.from_bytes takes 16 bytes, not {}", size_bytes));
    return make_global_pointer(address_from(bytes), make_dtype(arguments[1])).release();
  });
}

PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    as_global_pointer(self)->address.expect_packable();
    const Ref maker = attribute(reinterpret_cast<PyObject*>(pointer_type), "from_bytes");
    return Py_BuildValue("(O(NO))", maker.get(), to_bytes(self, nullptr),
                         as_global_pointer(self)->dtype.get());
  });
}

// --- As an argument

bool encode(Encoder& encoder, PyObject* object) {
  const GlobalPointerObject* const pointer = as_global_pointer(object);
  const int number = encoded_type_number(pointer->dtype);
  pointer->address.expect_packable();
  encoder.tag(ValueTag::kGlobalPointer);
  encoder.raw(&pointer->address, sizeof pointer->address);
  encoder.number(static_cast<std::int16_t>(number));
  if (number < 0) encoder.value(pointer->dtype.get());
  return true;
}

Ref decode(Decoder& decoder) {
  const GlobalAddress address = address_from(decoder.raw(sizeof(GlobalAddress)));
  const auto number = decoder.number<std::int16_t>();
  Ref dtype = number < 0 ? dtype_or_nothing(decoder.value()) : dtype_of_number(number);
  if (!dtype || item_size_bytes(dtype) == 0) Decoder::corrupt("the type of a global pointer");
  return make_global_pointer(address, std::move(dtype));
}

PyGetSetDef attributes[] = {
    {"pe", &get_pe, nullptr, "The PE that owns the memory.", nullptr},
    {"segment", &get_segment, nullptr, "The number of the segment on its PE; 0 for the null pointer.",
     nullptr},
    {"offset_bytes", &get_offset, nullptr, "The distance from the begin of the segment.", nullptr},
    {"kind", &get_kind, nullptr, "The kind of the memory: ``\"host\"``, ``\"cuda\"`` or ``\"emulated\"``.",
     nullptr},
    {"dtype", &get_dtype, nullptr, "The type of the elements, a numpy.dtype.", nullptr},
    {"is_local", &get_is_local, nullptr, "Whether this PE owns the memory.", nullptr},
    {},
};

PyMethodDef methods[] = {
    {"local", as_method(&local), METH_FASTCALL | METH_KEYWORDS, R"(local($self, shape=1)
--

The elements from here on as an array over the memory itself, if this PE owns it.

The array keeps the memory: a segment that is released is reclaimed only after its last array. Host memory stays valid
after the job; device memory does not.

Args:
    shape: an int, or a tuple of ints.

Returns:
    a NumPy array for host memory, a weft.DeviceArray for device memory; None if another PE owns the memory.

Raises:
    weft.Error: the elements are not all inside of the segment, the segment has been freed, or the job has ended.)"},
    {"mapped", as_method(&mapped), METH_FASTCALL | METH_KEYWORDS, R"(mapped($self, shape=1)
--

Like local(), also for memory of other PEs that this PE, or its device, reaches by loads and stores.

``await pointer.learn()`` first: a PE does not know segments of others before it uses them.

Returns:
    an array as local() gives it; None if the hardware does not allow it, or if this PE has not learned the segment.

Raises:
    weft.Error: as local().)"},
    {"_for_kernels", &for_kernels, METH_O, nullptr},
    {"learn", &learn, METH_NOARGS, R"(learn($self, /)
--

Awaitable: this PE knows afterwards how to reach the segment.

Raises:
    weft.Error: the pointer leads to no segment.)"},
    {"cast", &cast, METH_O, R"(cast($self, dtype, /)
--

A pointer of another element type to the same byte.)"},
    {"__bytes__", &to_bytes, METH_NOARGS, R"(__bytes__($self, /)
--

The 16 bytes of the pointer, for global pointers that lie in memory; from_bytes() is the way back.)"},
    {"from_bytes", as_method(&from_bytes), METH_FASTCALL | METH_STATIC, R"(from_bytes(data, dtype, /)
--

The pointer of these 16 bytes.

Raises:
    weft.Error: these are not the bytes of a global pointer.)"},
    {"__reduce__", &reduce, METH_NOARGS, nullptr},
    {"__class_getitem__", &Py_GenericAlias, METH_O | METH_CLASS, nullptr},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(&make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
    {Py_tp_repr, reinterpret_cast<void*>(&represent)},
    {Py_tp_richcompare, reinterpret_cast<void*>(&compare)},
    {Py_tp_hash, reinterpret_cast<void*>(&hash)},
    {Py_nb_add, reinterpret_cast<void*>(&add)},
    {Py_nb_subtract, reinterpret_cast<void*>(&subtract)},
    {Py_nb_bool, reinterpret_cast<void*>(&is_not_null)},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char*>(R"(GlobalPointer(dtype)
--

A pointer to elements in a segment of any PE; ``GlobalPointer(dtype)`` is the null pointer.

``segment.pointer()`` gives others. A pointer has 16 bytes, never changes, travels as an argument, and can be a key of a
dict. ``pointer + 3`` counts in elements and checks nothing: an operation on memory outside of the segment is an error of
that operation. Pointers into one segment are ordered by their place.

Args:
    dtype: as numpy.dtype takes it.)")},
    {0, nullptr},
};
PyType_Spec spec = {"weft.pgas.GlobalPointer", sizeof(GlobalPointerObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

void init_global_pointer(PyObject* module) {
  pointer_type = add_type(module, spec);
  add_encoding(pointer_type, &encode);
  add_decoding(ValueTag::kGlobalPointer, &decode);
}

bool is_global_pointer(PyObject* object) { return Py_TYPE(object) == pointer_type; }

GlobalPointerObject* global_pointer_from(PyObject* object, const char* use) {
  if (is_global_pointer(object)) return as_global_pointer(object);
  invalid(base::format("{} takes a weft.pgas.GlobalPointer, not a {}", use, type_name_of(object)));
}

Ref make_global_pointer(const rma::GlobalAddress& address, Ref dtype) {
  const std::size_t item_bytes = item_size_bytes(dtype);
  if (item_bytes == 0) invalid(base::format("elements of type {} have no bytes", dtype_name(dtype)));
  const ElementCode code = element_code(dtype);
  Ref object = checked(PyType_GenericAlloc(pointer_type, 0));
  GlobalPointerObject* const pointer = as_global_pointer(object.get());
  pointer->address = address;
  new (&pointer->dtype) Ref(std::move(dtype));
  pointer->item_bytes = item_bytes;
  pointer->code = code;
  return object;
}

std::string pointer_text(const GlobalPointerObject* pointer) {
  return base::format("{} at {}", dtype_name(pointer->dtype), rma::describe(pointer->address));
}

void store_for(const GlobalPointerObject* pointer, PyObject* value, std::byte* to, const char* use) {
  try {
    store_element(value, pointer->code, pointer->dtype, to);
  } catch (const PythonError&) {
    const std::string why = readable(PythonError::take().get());
    invalid(base::format("{} got {} for {}: {}", use, readable(value), pointer_text(pointer), why));
  }
}

Ref reached_array(Engine& engine, const rma::GlobalAddress& address, ArrayForm form) {
  rma::GlobalMemory::HeldMemory held = engine.pgas().hold(address, form.size_bytes);
  if (held.keeper == nullptr) return Ref::borrow(Py_None);
  auto keeper = std::make_shared<HeldSegment>(EngineRef(engine), std::move(held.keeper));
  if (!held.memory.place.is_host()) {
    return make_device_array_over(std::move(form), held.memory, std::move(keeper));
  }
  return make_array_over(form, held.memory.data, keeper_object(std::move(keeper)));
}

}  // namespace weft::python
