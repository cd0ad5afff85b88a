#include "buffers/arrays/array_codec.h"

#include <array>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "buffers/arrays/arrays.h"
#include "buffers/arrays/dtype.h"
#include "buffers/arrays/numpy_api.h"
#include "buffers/arrays/numpy_loading.h"
#include "buffers/arrays/read_only.h"
#include "codec/decoder.h"
#include "codec/forms.h"
#include "codec/landed_memory.h"

namespace weft::python {

namespace {

PyArrayObject* as_array(PyObject* object) { return reinterpret_cast<PyArrayObject*>(object); }

[[noreturn]] void corrupt(const std::string& what) {
  throw base::Error(base::StatusCode::kCorrupt, base::format("an array arrived damaged: {}", what));
}

// REQUIRES: is_plain_array(array).
std::uint8_t type_number_of(PyArrayObject* array) {
  const int number = PyArray_TYPE(array);
  if (is_number_type(number)) return static_cast<std::uint8_t>(number);
  const Ref dtype = Ref::borrow(reinterpret_cast<PyObject*>(PyArray_DESCR(array)));
  return static_cast<std::uint8_t>(encoded_type_number(dtype));
}

// Writes the form of the array, which precedes its elements. REQUIRES: contiguous, in C or Fortran order.
void encode_form(Encoder& encoder, PyObject* array, ValueTag tag) {
  PyArrayObject* source = as_array(array);
  encoder.tag(tag);
  int num_dimensions = PyArray_NDIM(source);
  encoder.number(ArrayHeader{type_number_of(source), static_cast<std::uint8_t>(num_dimensions),
                             !PyArray_IS_C_CONTIGUOUS(source)});
  for (int d = 0; d < num_dimensions; ++d) encoder.number(static_cast<std::int64_t>(PyArray_DIM(source, d)));
}

memory::Buffer memory_of(PyObject* array) {
  PyArrayObject* source = as_array(array);
  return {PyArray_DATA(source), static_cast<std::size_t>(PyArray_NBYTES(source)), {}, nullptr};
}

bool is_contiguous(PyObject* array) {
  return PyArray_IS_C_CONTIGUOUS(as_array(array)) || PyArray_IS_F_CONTIGUOUS(as_array(array));
}

// Contiguous arrays, in C or Fortran order, are sent as they are. Others are copied into C order first.
bool encode_array(Encoder& encoder, PyObject* object) {
  if (!is_plain_array(object)) return false;
  if (encoder.is_copy_here()) {
    encoder.keep(checked(PyArray_NewCopy(as_array(object), NPY_KEEPORDER)));
    return true;
  }
  const bool is_as_it_is = is_contiguous(object);
  Ref array = is_as_it_is ? Ref::borrow(object) : checked(PyArray_NewCopy(as_array(object), NPY_CORDER));
  const memory::Buffer memory = memory_of(array.get());
  if (encoder.attaches(memory.size_bytes, true)) {
    encode_form(encoder, array.get(), ValueTag::kAttachedArray);
    const bool is_own = !is_as_it_is || encoder.owns(object);
    encoder.write_attached(std::move(array), memory, is_own ? Attach::kOwn : Attach::kCopy);
  } else {
    encode_form(encoder, array.get(), ValueTag::kArray);
    encoder.block(std::move(array), memory.data, memory.size_bytes);
  }
  return true;
}

// The decoded form of an array. It comes from the header, which is a claim of the peer and is checked.
struct DecodedForm {
  explicit DecodedForm(Decoder& decoder) {
    load_numpy();
    auto header = decoder.number<ArrayHeader>();
    form.dtype = is_number_type(header.type_number)
                     ? checked(reinterpret_cast<PyObject*>(PyArray_DescrFromType(header.type_number)))
                     : dtype_of_number(header.type_number);
    if (!form.dtype || header.num_dimensions > kMaxDimensions) {
      corrupt("an element type or number of dimensions that does not exist");
    }
    fortran_order = header.fortran_order != 0;
    form.size_bytes = item_size_bytes(form.dtype);
    form.extents.resize(header.num_dimensions);
    bool empty = false;
    for (std::int64_t& extent : form.extents) {
      extent = decoder.number<std::int64_t>();
      if (extent < 0) corrupt("a negative extent");
      empty |= extent == 0;
      // A zero extent is left out: NumPy limits the product of the other extents even if there are no elements.
      if (extent != 0 &&
          __builtin_mul_overflow(form.size_bytes, static_cast<std::uint64_t>(extent), &form.size_bytes)) {
        corrupt("extents too large");
      }
    }
    if (empty) form.size_bytes = 0;
  }

  // Calls `make`, which makes the array. A ValueError of NumPy means that the message is corrupt.
  template <class Make>
  Ref checked_by_numpy(Make make) const {
    try {
      return make();
    } catch (const PythonError&) {
      if (PyErr_ExceptionMatches(PyExc_ValueError) == 0) throw;
      PyErr_Clear();
      corrupt("extents too large");
    }
  }

  static constexpr int kMaxDimensions = 32;
  ArrayForm form;
  bool fortran_order;
};

Ref decode_array(Decoder& decoder) {
  DecodedForm decoded(decoder);
  std::size_t size_bytes = decoded.form.size_bytes;
  const std::byte* data = decoder.raw(size_bytes);
  Ref array = decoded.checked_by_numpy([&] { return make_array(decoded.form, decoded.fortran_order); });
  if (size_bytes > 0) std::memcpy(PyArray_DATA(as_array(array.get())), data, size_bytes);
  return array;
}

Ref decode_attached_array(Decoder& decoder) {
  DecodedForm decoded(decoder);
  std::size_t which = decoder.attachment_number();
  if (Ref other = decoder.in_place_of(which, decoded.form)) return other;
  runtime::Attachment attachment = decoder.host_attachment(which, decoded.form.size_bytes);
  void* data = attachment.buffer().data;
  Ref owner = make_landed_bytes(Engine::current(), std::move(attachment));
  return decoded.checked_by_numpy(
      [&] { return make_array_over(decoded.form, data, std::move(owner), decoded.fortran_order); });
}

bool encode_number(Encoder& encoder, PyObject* number) {
  Ref descriptor = checked(reinterpret_cast<PyObject*>(PyArray_DescrFromScalar(number)));
  auto* type = reinterpret_cast<PyArray_Descr*>(descriptor.get());
  alignas(16) std::array<std::byte, 64> bytes{};
  PyArray_ScalarAsCtype(number, bytes.data());
  encoder.tag(ValueTag::kNumber);
  encoder.number(static_cast<std::uint8_t>(type->type_num));
  encoder.raw(bytes.data(), static_cast<std::size_t>(PyDataType_ELSIZE(type)));
  return true;
}

Ref decode_number(Decoder& decoder) {
  load_numpy();
  auto type_number = decoder.number<std::uint8_t>();
  if (!is_number_type(type_number)) corrupt("no such number type");
  Ref descriptor = checked(reinterpret_cast<PyObject*>(PyArray_DescrFromType(type_number)));
  auto* type = reinterpret_cast<PyArray_Descr*>(descriptor.get());
  auto size_bytes = static_cast<std::size_t>(PyDataType_ELSIZE(type));
  alignas(16) std::array<std::byte, 64> bytes{};
  std::memcpy(bytes.data(), decoder.raw(size_bytes), size_bytes);
  return checked(PyArray_Scalar(bytes.data(), type, nullptr));
}

// Registers NumPy's types, which live as long as the process.
void add_encodings() {
  add_encoding(&PyArray_Type, &encode_array, Nature::kData);
  for (int number = 0; number <= NPY_HALF; ++number) {
    if (!is_number_type(number)) continue;
    Ref type = checked(PyArray_TypeObjectFromType(number));
    add_encoding(reinterpret_cast<PyTypeObject*>(type.get()), &encode_number);
  }
}

// Encodes the first array of the process: NumPy's types have no encodings until NumPy is loaded.
bool encode_first_array(Encoder& encoder, PyObject* object) {
  if (numpy_is_loaded() || !has_numpy()) return false;
  const Encoding& form = encoding_of(Py_TYPE(object));
  return form.encode != nullptr && form.encode(encoder, object);
}

}  // namespace

void init_array_codec(PyObject*) {
  when_numpy_is_loaded(&add_encodings);
  add_protocol_encoding(&encode_first_array);
  add_decoding(ValueTag::kArray, &decode_array);
  add_decoding(ValueTag::kAttachedArray, &decode_attached_array);
  add_decoding(ValueTag::kNumber, &decode_number);
}

void encode_array_in_place(Encoder& encoder, PyObject* array) {
  if (!is_contiguous(array)) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        "weft.nocopy got an array that is not contiguous, which only a copy can travel as; pass "
        "weft.nocopy(weft.pack(array))");
  }
  const memory::Buffer memory = memory_of(array);
  if (memory.size_bytes > 0) {
    encode_form(encoder, array, ValueTag::kAttachedArray);
    encoder.write_attached(keep_read_only(Ref::borrow(array)), memory, Attach::kInPlace);
  } else {
    encode_form(encoder, array, ValueTag::kArray);
    encoder.block(Ref::borrow(array), memory.data, 0);
  }
}

}  // namespace weft::python
