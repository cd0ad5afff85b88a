#include "buffers/arrays/array_interface.h"

#include <string>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "buffers/arrays/dtype.h"
#include "buffers/streams/stream.h"

namespace weft::python {

namespace {

constexpr const char* kName = "__cuda_array_interface__";
constexpr long kVersion = 3;

// Reads an object's interface dict. Errors name the object and the item.
class Interface {
 public:
  Interface(const BufferRequest& request, PyObject* dict) : request_(request), dict_(dict) {
    if (PyDict_Check(dict) == 0) bad("no dict");
  }

  // Null for an item that is absent or None.
  PyObject* item(const char* name) const {
    PyObject* found = PyDict_GetItemString(dict_, name);
    return found == Py_None ? nullptr : found;
  }
  PyObject* required(const char* name) const {
    PyObject* found = item(name);
    if (found == nullptr) bad(base::format("without '{}'", name));
    return found;
  }
  std::vector<std::int64_t> numbers(const char* name) const {
    PyObject* tuple = required(name);
    if (PyTuple_Check(tuple) == 0) bad(base::format("whose '{}' is {}", name, readable(tuple)));
    std::vector<std::int64_t> numbers;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
      numbers.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i)));
      if (PyErr_Occurred() == nullptr) continue;
      PyErr_Clear();
      bad(base::format("whose '{}' is {}", name, readable(tuple)));
    }
    return numbers;
  }
  [[noreturn]] void bad(const std::string& what) const {
    unusable(request_, base::format("with a {} that is broken: {}", kName, what));
  }

 private:
  const BufferRequest& request_;
  PyObject* dict_;
};

// A type that another package registered with NumPy, such as CuPy's bfloat16, has a typestr that says only its size,
// or that NumPy refuses. The array's attribute `dtype` then says more. Null if it does not.
Ref dtype_attribute(const BufferRequest& request) {
  Ref dtype = optional_attribute(request, "dtype");
  return dtype ? dtype_or_nothing(std::move(dtype)) : Ref();
}

Ref dtype_of_interface(const Interface& interface, const BufferRequest& request) {
  PyObject* type = interface.required("typestr");
  Ref dtype;
  std::string refusal;
  try {
    dtype = make_dtype(type);
  } catch (const PythonError&) {
    refusal = readable(PythonError::take().get());
  }
  if (dtype && dtype_letter(dtype) != 'V') return dtype;
  Ref attribute = dtype_attribute(request);
  if (attribute && (!dtype || item_size_bytes(attribute) == item_size_bytes(dtype))) return attribute;
  if (!dtype) interface.bad(base::format("typestr {} ({})", readable(type), refusal));
  return dtype;
}

ArrayForm form_of(const Interface& interface, const BufferRequest& request) {
  ArrayForm form;
  form.extents = interface.numbers("shape");
  for (std::int64_t extent : form.extents) {
    if (extent < 0) interface.bad("a negative extent");
  }
  form.dtype = dtype_of_interface(interface, request);
  std::size_t item_bytes = item_size_bytes(form.dtype);
  if (!total_bytes(form.extents, item_bytes, form.size_bytes)) interface.bad("a shape of too many bytes");
  if (interface.item("strides") == nullptr) return form;
  const std::vector<std::int64_t> strides = interface.numbers("strides");
  const auto stride = static_cast<std::int64_t>(item_bytes);
  if (!is_c_order(strides, stride, form.extents)) {
    not_contiguous(request, is_fortran_order(strides, stride, form.extents));
  }
  return form;
}

void* address_of(const Interface& interface, const BufferRequest& request) {
  PyObject* data = interface.required("data");
  if (PyTuple_Check(data) == 0 || PyTuple_GET_SIZE(data) != 2) {
    interface.bad(base::format("whose 'data' is {}, not (address, read-only)", readable(data)));
  }
  int is_read_only = PyObject_IsTrue(PyTuple_GET_ITEM(data, 1));
  void* address = is_read_only < 0 ? nullptr : PyLong_AsVoidPtr(PyTuple_GET_ITEM(data, 0));
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    interface.bad(base::format("whose 'data' is {}, not (address, read-only)", readable(data)));
  }
  if (is_read_only != 0 && request.access == Access::kWrite) {
    unusable(request, "that is read-only; pass a writable array");
  }
  return address;
}

// Null if there is none. PyTorch's property raises for element types that NumPy lacks and DLPack has.
Ref interface_of(const BufferRequest& request) {
  try {
    return optional_attribute(request, kName);
  } catch (const base::Error&) {
    if (PyObject_HasAttrString(request.object, "__dlpack__") == 0) throw;
    return {};
  }
}

bool prefers_dlpack(const BufferRequest& request, const Interface& interface) {
  PyObject* version = interface.item("version");
  long number = version == nullptr ? 0 : PyLong_AsLong(version);
  PyErr_Clear();
  return number < kVersion && PyObject_HasAttrString(request.object, "__dlpack__") != 0;
}

}  // namespace

bool find_cuda_array_memory(const BufferRequest& request, ObjectBuffer& found) {
  Ref dict = interface_of(request);
  if (!dict) return false;
  Interface interface(request, dict.get());
  if (prefers_dlpack(request, interface)) return false;
  if (interface.item("mask") != nullptr) {
    unusable(request, "with a mask; send the data and the mask as arrays of their own");
  }
  ArrayForm form = form_of(interface, request);
  void* address = address_of(interface, request);
  PyObject* stream = interface.item("stream");
  memory::StreamHandle handle =
      stream == nullptr ? nullptr : stream_from_handle(stream, "the 'stream' of a __cuda_array_interface__");
  found.keeper = Ref::borrow(request.object);
  if (form.size_bytes > 0) {
    if (address == nullptr) interface.bad("a null address");
    found.memory = {address, form.size_bytes, cuda_place_of(request, address), handle};
  }
  if (request.form != nullptr) *request.form = std::move(form);
  return true;
}

Ref make_cuda_array_interface(const ArrayForm& form, const memory::Buffer& memory) {
  Ref dict = checked(PyDict_New());
  const auto set = [&dict](const char* name, Ref value) {
    checked(PyDict_SetItemString(dict.get(), name, value.get()));
  };
  set("shape", number_tuple(form.extents));
  set("typestr", attribute(form.dtype.get(), "str"));
  set("data", checked(Py_BuildValue("(NO)", PyLong_FromVoidPtr(memory.data), Py_False)));
  set("version", checked(PyLong_FromLong(kVersion)));
  set("strides", Ref::borrow(Py_None));
  set("stream", memory.stream == nullptr ? Ref::borrow(Py_None) : checked(PyLong_FromVoidPtr(memory.stream)));
  if (dtype_letter(form.dtype) == 'V') set("descr", attribute(form.dtype.get(), "descr"));
  return dict;
}

}  // namespace weft::python
