#include "buffers/arrays.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "weft/base/error.h"

#include "buffers/attached.h"
#include "codec/decoder.h"
#include "codec/encoder.h"

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>

namespace weft::python {

namespace {

bool is_number_type(int type_number) {
  return PyTypeNum_ISNUMBER(type_number) || PyTypeNum_ISBOOL(type_number);
}

PyArrayObject* as_array(PyObject* object) { return reinterpret_cast<PyArrayObject*>(object); }

[[noreturn]] void corrupt(const std::string& what) {
  throw base::Error(base::StatusCode::kCorrupt, fmt::format("an array arrived damaged: {}", what));
}

PyArray_Descr* as_descriptor(const Ref& dtype) { return reinterpret_cast<PyArray_Descr*>(dtype.get()); }

// With memory of its own where `data` is null. Null with Python's error set where NumPy cannot.
PyObject* new_array(const ArrayForm& form, void* data, bool fortran_order) {
  int flags = fortran_order ? NPY_ARRAY_F_CONTIGUOUS : 0;
  if (data != nullptr) flags = fortran_order ? NPY_ARRAY_FARRAY : NPY_ARRAY_CARRAY;
  Ref dtype = form.dtype;  // the call takes a reference of its own
  return PyArray_NewFromDescr(&PyArray_Type, reinterpret_cast<PyArray_Descr*>(dtype.release()),
                              static_cast<int>(form.extents.size()),
                              const_cast<npy_intp*>(form.extents.data()), nullptr, data, flags, nullptr);
}
static_assert(sizeof(npy_intp) == sizeof(std::int64_t));

}  // namespace

void init_arrays(PyObject*) {
  if (_import_array() < 0) throw PythonError();
}

bool is_plain_array(PyObject* object) {
  return PyArray_CheckExact(object) && is_number_type(PyArray_TYPE(as_array(object))) &&
         PyArray_ISNOTSWAPPED(as_array(object));
}

bool is_sole_owner(PyObject* object) {
  return is_plain_array(object) && Py_REFCNT(object) == 1 && PyArray_BASE(as_array(object)) == nullptr;
}

bool is_plain_number(PyObject* object) {
  // NumPy's own types are static; a timedelta64 counts as a number in NumPy but has a unit besides.
  return (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0 &&
         (PyArray_IsScalar(object, Number) || PyArray_IsScalar(object, Bool)) &&
         !PyArray_IsScalar(object, Timedelta);
}

namespace {

// REQUIRES: contiguous, in C or Fortran order.
void encode_contiguous(Encoder& encoder, Ref array, bool in_place) {
  PyArrayObject* source = as_array(array.get());
  auto size_bytes = static_cast<std::size_t>(PyArray_NBYTES(source));
  encoder.tag(in_place ? ValueTag::kAttachedArray : ValueTag::kArray);
  int num_dimensions = PyArray_NDIM(source);
  encoder.number(ArrayHeader{static_cast<std::uint8_t>(PyArray_TYPE(source)),
                             static_cast<std::uint8_t>(num_dimensions), !PyArray_IS_C_CONTIGUOUS(source)});
  for (int d = 0; d < num_dimensions; ++d) encoder.number(static_cast<std::int64_t>(PyArray_DIM(source, d)));
  void* data = PyArray_DATA(source);
  if (in_place) {
    encoder.write_attached(std::move(array), {data, size_bytes, {}, nullptr});
  } else {
    encoder.block(std::move(array), data, size_bytes);
  }
}

bool is_contiguous(PyObject* array) {
  return PyArray_IS_C_CONTIGUOUS(as_array(array)) || PyArray_IS_F_CONTIGUOUS(as_array(array));
}

}  // namespace

void encode_array(Encoder& encoder, PyObject* object) {
  Ref array =
      is_contiguous(object) ? Ref::borrow(object) : checked(PyArray_NewCopy(as_array(object), NPY_CORDER));
  bool in_place = encoder.attaches(static_cast<std::size_t>(PyArray_NBYTES(as_array(array.get()))), true);
  encode_contiguous(encoder, std::move(array), in_place);
}

void encode_array_in_place(Encoder& encoder, PyObject* array) {
  if (!is_contiguous(array)) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        "weft.nocopy got an array that is not contiguous, which only a copy can travel as; pass "
        "numpy.ascontiguousarray(array)");
  }
  encode_contiguous(encoder, Ref::borrow(array), PyArray_NBYTES(as_array(array)) > 0);
}

namespace {

// What an array that arrives looks like, as its header says.
struct ArrivingForm {
  explicit ArrivingForm(Decoder& decoder) {
    auto header = decoder.number<ArrayHeader>();
    if (!is_number_type(header.type_number) || header.num_dimensions > kMaxDimensions) {
      corrupt("no such type or number of dimensions");
    }
    fortran_order = header.fortran_order != 0;
    form.dtype = checked(reinterpret_cast<PyObject*>(PyArray_DescrFromType(header.type_number)));
    form.size_bytes = item_size_bytes(form.dtype);
    form.extents.resize(header.num_dimensions);
    bool empty = false;
    for (std::int64_t& extent : form.extents) {
      extent = decoder.number<std::int64_t>();
      if (extent < 0) corrupt("a negative extent");
      empty |= extent == 0;
      // An array without elements may have extents that multiply to any number: NumPy limits them itself.
      if (extent != 0 &&
          __builtin_mul_overflow(form.size_bytes, static_cast<std::uint64_t>(extent), &form.size_bytes)) {
        corrupt("extents too large");
      }
    }
    if (empty) form.size_bytes = 0;
  }

  // With memory of its own where `data` is null.
  Ref make(void* data) const {
    PyObject* made = new_array(form, data, fortran_order);
    if (made == nullptr && PyErr_ExceptionMatches(PyExc_ValueError)) {
      PyErr_Clear();
      corrupt("extents too large");
    }
    return checked(made);
  }

  static constexpr int kMaxDimensions = 32;
  ArrayForm form;
  bool fortran_order;
};

Ref with_base(Ref array, Ref owner) {
  checked(PyArray_SetBaseObject(as_array(array.get()), owner.release()));
  return array;
}

Ref with_owner(Ref array, runtime::Attachment attachment) {
  return with_base(std::move(array), make_memory_owner(Engine::current(), std::move(attachment)));
}

}  // namespace

Ref decode_array(Decoder& decoder) {
  ArrivingForm arriving(decoder);
  std::size_t size_bytes = arriving.form.size_bytes;
  const std::byte* data = decoder.raw(size_bytes);
  Ref array = arriving.make(nullptr);
  if (size_bytes > 0) std::memcpy(PyArray_DATA(as_array(array.get())), data, size_bytes);
  return array;
}

Ref decode_attached_array(Decoder& decoder) {
  ArrivingForm arriving(decoder);
  std::size_t which = decoder.attachment_number();
  if (Ref other = decoder.in_place_of(which, arriving.form)) return other;
  runtime::Attachment attachment = decoder.attachment(which, arriving.form.size_bytes);
  Ref array = arriving.make(attachment.buffer().data);
  return with_owner(std::move(array), std::move(attachment));
}

Ref make_byte_array(runtime::Attachment attachment) {
  auto size = static_cast<npy_intp>(attachment.buffer().size_bytes);
  Ref array = checked(PyArray_SimpleNewFromData(1, &size, NPY_UINT8, attachment.buffer().data));
  return with_owner(std::move(array), std::move(attachment));
}

void encode_number(Encoder& encoder, PyObject* number) {
  Ref descriptor = checked(reinterpret_cast<PyObject*>(PyArray_DescrFromScalar(number)));
  auto* type = reinterpret_cast<PyArray_Descr*>(descriptor.get());
  alignas(16) std::array<std::byte, 64> bytes{};
  PyArray_ScalarAsCtype(number, bytes.data());
  encoder.number(static_cast<std::uint8_t>(type->type_num));
  encoder.raw(bytes.data(), static_cast<std::size_t>(PyDataType_ELSIZE(type)));
}

Ref decode_number(Decoder& decoder) {
  auto type_number = decoder.number<std::uint8_t>();
  if (!is_number_type(type_number)) corrupt("no such number type");
  Ref descriptor = checked(reinterpret_cast<PyObject*>(PyArray_DescrFromType(type_number)));
  auto* type = reinterpret_cast<PyArray_Descr*>(descriptor.get());
  auto size_bytes = static_cast<std::size_t>(PyDataType_ELSIZE(type));
  alignas(16) std::array<std::byte, 64> bytes{};
  std::memcpy(bytes.data(), decoder.raw(size_bytes), size_bytes);
  return checked(PyArray_Scalar(bytes.data(), type, nullptr));
}

// --- Element types and shapes

Ref make_dtype(PyObject* description) {
  PyArray_Descr* descriptor = nullptr;
  if (PyArray_DescrConverter(description, &descriptor) == 0) throw PythonError();
  Ref dtype = Ref::steal(reinterpret_cast<PyObject*>(descriptor));
  if (PyDataType_REFCHK(descriptor)) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        fmt::format("elements of type {} are Python objects, which device memory and channels cannot hold; "
                    "use a type of plain bytes",
                    readable(dtype.get())));
  }
  return dtype;
}

std::size_t item_size_bytes(const Ref& dtype) {
  return static_cast<std::size_t>(PyDataType_ELSIZE(as_descriptor(dtype)));
}

std::string dtype_name(const Ref& dtype) { return readable(dtype.get()); }

int plain_type_number(const Ref& dtype) {
  int number = as_descriptor(dtype)->type_num;
  return is_number_type(number) && is_native_byte_order(dtype) ? number : -1;
}

Ref plain_dtype(int type_number) {
  if (!is_number_type(type_number)) return {};
  return checked(reinterpret_cast<PyObject*>(PyArray_DescrFromType(type_number)));
}

Ref dtype_or_nothing(Ref object) {
  bool usable = PyArray_DescrCheck(object.get()) && !PyDataType_REFCHK(as_descriptor(object));
  return usable ? std::move(object) : Ref();
}

char dtype_letter(const Ref& dtype) { return as_descriptor(dtype)->kind; }

bool is_native_byte_order(const Ref& dtype) { return PyDataType_ISNOTSWAPPED(as_descriptor(dtype)); }

Ref make_array(const ArrayForm& form) { return checked(new_array(form, nullptr, false)); }

Ref make_array_over(const ArrayForm& form, void* data, Ref owner) {
  return with_base(checked(new_array(form, data, false)), std::move(owner));
}

namespace {

ArrayForm form_of(PyArrayObject* array) {
  ArrayForm form;
  form.dtype = Ref::borrow(reinterpret_cast<PyObject*>(PyArray_DESCR(array)));
  form.extents.assign(PyArray_DIMS(array), PyArray_DIMS(array) + PyArray_NDIM(array));
  form.size_bytes = static_cast<std::size_t>(PyArray_NBYTES(array));
  return form;
}

}  // namespace

bool find_array_memory(const BufferRequest& request, ObjectBuffer& found) {
  if (!PyArray_Check(request.object)) return false;
  PyArrayObject* array = as_array(request.object);
  bool is_written = request.access == Access::kWrite;
  if (!PyArray_IS_C_CONTIGUOUS(array)) {
    unusable(request,
             is_written
                 ? "that is not C-contiguous; receive into a contiguous array and assign that to the slice"
                 : "that is not C-contiguous; pass numpy.ascontiguousarray(array)");
  }
  if (is_written && !PyArray_ISWRITEABLE(array))
    unusable(request, "that is read-only; pass a writable array");
  if (PyDataType_REFCHK(PyArray_DESCR(array))) {
    unusable(request, "of Python objects, which are no plain bytes; send such values with an entry method");
  }
  found.memory.data = PyArray_DATA(array);
  found.memory.size_bytes = static_cast<std::size_t>(PyArray_NBYTES(array));
  found.keeper = Ref::borrow(request.object);
  if (request.form != nullptr) *request.form = form_of(array);
  return true;
}

}  // namespace weft::python
