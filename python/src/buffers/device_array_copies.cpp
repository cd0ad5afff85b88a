#include "buffers/device_array_copies.h"

#include <cstdint>

#include "weft/base/error.h"

#include "await/memory_operation.h"
#include "base/format.h"
#include "buffers/arrays/arrays.h"
#include "buffers/arrays/dtype.h"
#include "buffers/device/device_array.h"
#include "buffers/object_buffer.h"
#include "buffers/streams/stream.h"
#include "engine/engine.h"
#include "support/errors.h"

namespace weft::python {

namespace {

[[noreturn]] void invalid(const std::string& message) {
  throw base::Error(base::StatusCode::kInvalidArgument, message);
}

void expect_same_form(const ArrayForm& to, const ArrayForm& from, PyObject* source) {
  bool same = to.size_bytes == from.size_bytes;
  if (same && from.dtype) {
    same = is_same_type(to.dtype, from.dtype) && to.extents == from.extents;
  }
  if (same) return;
  invalid(base::format("DeviceArray.copy_from copies {} and got a {} of {}; both must have the same form",
                       form_text(to), type_name_of(source), form_text(from)));
}

bool overlap(const memory::Buffer& a, const memory::Buffer& b) {
  auto a_start = reinterpret_cast<std::uintptr_t>(a.data);
  auto b_start = reinterpret_cast<std::uintptr_t>(b.data);
  return a_start < b_start + b.size_bytes && b_start < a_start + a.size_bytes;
}

// Sets `stream` on `preferred`, or on `other` if `preferred` is host memory. The copy starts after its work.
Ref name_stream(PyObject* stream, memory::Buffer& preferred, memory::Buffer& other, const char* use) {
  memory::Buffer& side = preferred.place.is_host() ? other : preferred;
  NamedStream named = stream_from(stream, side.place, use);
  if (named.handle != nullptr) side.stream = named.handle;
  return std::move(named.keeper);
}

}  // namespace

PyObject* copy_into_device_array(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("DeviceArray.copy_from", {"source", "stream"}, 1, values, count, names);
    DeviceArrayObject* array = as_device_array(self);
    ArrayForm form;
    ObjectBuffer source = buffer_of({arguments[0], Access::kRead, "DeviceArray.copy_from", &form});
    expect_same_form(array->form, form, arguments[0]);
    memory::Buffer destination = array->memory;
    if (overlap(destination, source.memory)) {
      invalid("DeviceArray.copy_from got a part of its own memory; copy by way of another array");
    }
    Ref stream = name_stream(arguments[1], destination, source.memory, "DeviceArray.copy_from");
    Ref keepers = checked(Py_BuildValue("(OOO)", self, source.keeper.get(), stream ? stream.get() : Py_None));
    return start_copy(Engine::current(), destination, source.memory, std::move(keepers), Ref::borrow(self))
        .release();
  });
}

PyObject* copy_device_array_to_host(PyObject* self, PyObject* const* values, Py_ssize_t count,
                                    PyObject* names) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("DeviceArray.to_host", {"stream"}, 0, values, count, names);
    DeviceArrayObject* array = as_device_array(self);
    Ref result = make_array(array->form);
    ObjectBuffer destination = buffer_of({result.get(), Access::kWrite, "DeviceArray.to_host"});
    memory::Buffer source = array->memory;
    Ref stream = name_stream(arguments[0], source, destination.memory, "DeviceArray.to_host");
    Ref keepers = checked(Py_BuildValue("(OOO)", self, result.get(), stream ? stream.get() : Py_None));
    return start_copy(Engine::current(), destination.memory, source, std::move(keepers), result).release();
  });
}

}  // namespace weft::python
