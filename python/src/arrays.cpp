#include "arrays.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "weft/base/error.h"

#include "attached.h"
#include "decoder.h"
#include "encoder.h"

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

[[noreturn]] void unusable(const char* use, PyObject* object, std::string_view why) {
  throw base::Error(base::StatusCode::kInvalidArgument,
                    fmt::format("{} got a {} {}", use, type_name_of(object), why));
}

}  // namespace

void init_arrays(PyObject*) {
  if (_import_array() < 0) throw PythonError();
}

bool is_plain_array(PyObject* object) {
  return PyArray_CheckExact(object) && is_number_type(PyArray_TYPE(as_array(object))) &&
         PyArray_ISNOTSWAPPED(as_array(object));
}

bool is_plain_number(PyObject* object) {
  // NumPy's own types are static; a timedelta64 counts as a number in NumPy but has a unit besides.
  return (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0 &&
         (PyArray_IsScalar(object, Number) || PyArray_IsScalar(object, Bool)) &&
         !PyArray_IsScalar(object, Timedelta);
}

void encode_array(Encoder& encoder, PyObject* object) {
  Ref array = Ref::borrow(object);
  if (!PyArray_IS_C_CONTIGUOUS(as_array(object)) && !PyArray_IS_F_CONTIGUOUS(as_array(object))) {
    array = checked(PyArray_NewCopy(as_array(object), NPY_CORDER));
  }
  PyArrayObject* source = as_array(array.get());
  auto size_bytes = static_cast<std::size_t>(PyArray_NBYTES(source));
  bool attached = encoder.attaches(size_bytes);
  encoder.tag(attached ? ValueTag::kAttachedArray : ValueTag::kArray);
  int num_dimensions = PyArray_NDIM(source);
  encoder.number(ArrayHeader{static_cast<std::uint8_t>(PyArray_TYPE(source)),
                             static_cast<std::uint8_t>(num_dimensions), !PyArray_IS_C_CONTIGUOUS(source)});
  for (int d = 0; d < num_dimensions; ++d) encoder.number(static_cast<std::int64_t>(PyArray_DIM(source, d)));
  const void* data = PyArray_DATA(source);
  if (attached) {
    encoder.write_attached(std::move(array), data, size_bytes);
  } else {
    encoder.block(std::move(array), data, size_bytes);
  }
}

namespace {

// What an array looks like, as its header says.
struct ArrayForm {
  explicit ArrayForm(Decoder& decoder) {
    auto header = decoder.number<ArrayHeader>();
    if (!is_number_type(header.type_number) || header.num_dimensions > kMaxDimensions) {
      corrupt("no such type or number of dimensions");
    }
    flags = header.fortran_order != 0 ? NPY_ARRAY_F_CONTIGUOUS : 0;
    num_dimensions = header.num_dimensions;
    descriptor = checked(reinterpret_cast<PyObject*>(PyArray_DescrFromType(header.type_number)));
    size_bytes =
        static_cast<std::uint64_t>(PyDataType_ELSIZE(reinterpret_cast<PyArray_Descr*>(descriptor.get())));
    bool empty = false;
    for (std::size_t d = 0; d < header.num_dimensions; ++d) {
      auto extent = decoder.number<std::int64_t>();
      if (extent < 0) corrupt("a negative extent");
      extents[d] = extent;
      empty |= extent == 0;
      // An array without elements may have extents that multiply to any number: NumPy limits them itself.
      if (extent != 0 &&
          __builtin_mul_overflow(size_bytes, static_cast<std::uint64_t>(extent), &size_bytes)) {
        corrupt("extents too large");
      }
    }
    if (empty) size_bytes = 0;
  }

  // With memory of its own where `data` is null.
  Ref make(void* data) {
    int wanted = data == nullptr ? flags : (flags != 0 ? NPY_ARRAY_FARRAY : NPY_ARRAY_CARRAY);
    PyObject* made =
        PyArray_NewFromDescr(&PyArray_Type, reinterpret_cast<PyArray_Descr*>(descriptor.release()),
                             num_dimensions, extents.data(), nullptr, data, wanted, nullptr);
    if (made == nullptr && PyErr_ExceptionMatches(PyExc_ValueError)) {
      PyErr_Clear();
      corrupt("extents too large");
    }
    return checked(made);
  }

  static constexpr int kMaxDimensions = 32;
  Ref descriptor;
  std::array<npy_intp, kMaxDimensions> extents{};
  std::uint64_t size_bytes;
  int num_dimensions;
  int flags;
};

Ref with_owner(Ref array, runtime::Attachment attachment) {
  Ref owner = make_memory_owner(Engine::current(), std::move(attachment));
  checked(PyArray_SetBaseObject(as_array(array.get()), owner.release()));
  return array;
}

}  // namespace

Ref decode_array(Decoder& decoder) {
  ArrayForm form(decoder);
  const std::byte* data = decoder.raw(form.size_bytes);
  Ref array = form.make(nullptr);
  if (form.size_bytes > 0) std::memcpy(PyArray_DATA(as_array(array.get())), data, form.size_bytes);
  return array;
}

Ref decode_attached_array(Decoder& decoder) {
  ArrayForm form(decoder);
  runtime::Attachment attachment = decoder.attachment(form.size_bytes);
  Ref array = form.make(attachment.buffer().data);
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

ObjectBuffer::ObjectBuffer(PyObject* object, bool writable, const char* use) {
  view_.obj = nullptr;
  if (is_plain_array(object)) {
    PyArrayObject* array = as_array(object);
    if (!PyArray_IS_C_CONTIGUOUS(array)) {
      unusable(use, object,
               writable
                   ? "that is not C-contiguous; receive into a contiguous array and assign that to the slice"
                   : "that is not C-contiguous; pass numpy.ascontiguousarray(array)");
    }
    if (writable && !PyArray_ISWRITEABLE(array))
      unusable(use, object, "that is read-only; pass a writable array");
    buffer_.data = PyArray_DATA(array);
    buffer_.size_bytes = static_cast<std::size_t>(PyArray_NBYTES(array));
    array_ = Ref::borrow(object);
    return;
  }
  if (!PyObject_CheckBuffer(object)) {
    unusable(use, object,
             "which has no buffer; pass a NumPy array, bytes, or another object with the buffer protocol");
  }
  if (PyArray_Check(object) && PyDataType_REFCHK(PyArray_DESCR(as_array(object)))) {
    unusable(use, object,
             "of Python objects; channels move plain bytes, so send such values with an entry method");
  }
  if (PyObject_GetBuffer(object, &view_, writable ? PyBUF_CONTIG : PyBUF_CONTIG_RO) < 0) {
    view_.obj = nullptr;
    Ref error = PythonError::take();
    unusable(use, object,
             fmt::format("that cannot be used ({}); pass contiguous{} memory", readable(error.get()),
                         writable ? ", writable" : ""));
  }
  buffer_.data = view_.buf;
  buffer_.size_bytes = static_cast<std::size_t>(view_.len);
}

ObjectBuffer::ObjectBuffer(ObjectBuffer&& other) noexcept
    : buffer_(other.buffer_), array_(std::move(other.array_)), view_(other.view_) {
  other.view_.obj = nullptr;
}

ObjectBuffer::~ObjectBuffer() {
  if (view_.obj != nullptr) PyBuffer_Release(&view_);
}

}  // namespace weft::python
