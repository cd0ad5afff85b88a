#include "codec/byte_values.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "codec/forms.h"

namespace weft::python {

namespace {

constexpr int kMaxDimensions = 64;  // PyBUF_MAX_NDIM

Ref decode_attached_bytes(Decoder& decoder) {
  auto size_bytes = decoder.number<std::uint64_t>();
  runtime::Attachment attachment = decoder.host_attachment(decoder.attachment_number(), size_bytes);
  return checked(PyBytes_FromStringAndSize(static_cast<const char*>(attachment.buffer().data),
                                           static_cast<Py_ssize_t>(size_bytes)));
}

// The letter of a native element type, for memoryview.cast; empty for any other format.
std::string_view native_letter(const char* format) {
  std::string_view letter = format == nullptr ? "B" : format;
  if (letter.starts_with('@')) letter.remove_prefix(1);
  constexpr std::string_view known = "cbB?hHiIlLqQnNefd";
  return letter.size() == 1 && known.find(letter[0]) != std::string_view::npos ? letter : std::string_view();
}

bool encode_memoryview(Encoder& encoder, PyObject* object) {
  // A view of our own. Making it raises ValueError if `object` was released. It holds the memory if user
  // code, called by the pickling of other arguments, releases `object` later.
  Ref own_view = checked(PyMemoryView_FromObject(object));
  const ViewedBuffer view(own_view.get());
  if (PyBuffer_IsContiguous(view.get(), 'C') == 0) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      "a memoryview that is not C-contiguous cannot be sent; send view.tobytes()");
  }
  std::string_view letter = native_letter(view->format);
  if (letter.empty()) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format(
            "a memoryview of the format '{}' cannot be sent: Weft sends those of one native type, such as "
            "'B' or 'd'; send view.tobytes()",
            view->format));
  }
  encoder.tag(ValueTag::kMemoryView);
  encoder.name(letter);
  encoder.number(static_cast<std::uint8_t>(view->ndim));
  for (int d = 0; d < view->ndim; ++d) encoder.number(static_cast<std::int64_t>(view->shape[d]));
  encoder.number(static_cast<std::uint64_t>(view->len));
  encoder.block(std::move(own_view), view->buf, static_cast<std::size_t>(view->len));
  return true;
}

Ref decode_memoryview(Decoder& decoder) {
  std::string_view letter = decoder.name();
  int num_dimensions = decoder.number<std::uint8_t>();
  if (num_dimensions > kMaxDimensions) decoder.corrupt("a memoryview of too many dimensions");
  Ref shape = checked(PyTuple_New(num_dimensions));
  for (int d = 0; d < num_dimensions; ++d) {
    PyTuple_SET_ITEM(shape.get(), d, checked(PyLong_FromLongLong(decoder.number<std::int64_t>())).release());
  }
  auto size_bytes = decoder.number<std::uint64_t>();
  const std::byte* data = decoder.raw(size_bytes);
  Ref memory = checked(PyByteArray_FromStringAndSize(reinterpret_cast<const char*>(data),
                                                     static_cast<Py_ssize_t>(size_bytes)));
  Ref view = checked(PyMemoryView_FromObject(memory.get()));
  // memoryview.cast cannot give an empty view a shape, so it stays a view of bytes.
  if (size_bytes == 0 || (letter == "B" && num_dimensions == 1)) return view;
  Ref format = make_text(letter);
  Ref cast = Ref::steal(num_dimensions == 1
                            ? PyObject_CallMethod(view.get(), "cast", "O", format.get())
                            : PyObject_CallMethod(view.get(), "cast", "OO", format.get(), shape.get()));
  if (cast) return cast;
  PyErr_Clear();
  decoder.corrupt("a memoryview whose format or shape does not fit its size");
}

// array.array.
PyTypeObject* standard_array_type = nullptr;

// The type codes of numbers. The others are text, which is pickled.
bool is_number_code(char code) {
  return std::string_view("bBhHiIlLqQfd").find(code) != std::string_view::npos;
}

bool encode_standard_array(Encoder& encoder, PyObject* object) {
  // The view holds the memory: an array cannot change its size as long as it has one.
  Ref own_view = checked(PyMemoryView_FromObject(object));
  const ViewedBuffer view(own_view.get());
  const char code = view->format[0];  // the format of a buffer of numbers is the type code
  if (!is_number_code(code)) return false;
  encoder.tag(ValueTag::kStandardArray);
  encoder.number(code);
  encoder.number(static_cast<std::uint64_t>(view->len));
  encoder.block(std::move(own_view), view->buf, static_cast<std::size_t>(view->len));
  return true;
}

Ref decode_standard_array(Decoder& decoder) {
  const char code = decoder.number<char>();
  if (!is_number_code(code)) decoder.corrupt("an array.array of an unknown type code");
  const auto size_bytes = decoder.number<std::uint64_t>();
  const std::byte* const data = decoder.raw(size_bytes);
  Ref array = checked(
      PyObject_CallFunction(reinterpret_cast<PyObject*>(standard_array_type), "C", static_cast<int>(code)));
  if (size_bytes == 0) return array;
  const Ref memory = checked(PyMemoryView_FromMemory(const_cast<char*>(reinterpret_cast<const char*>(data)),
                                                     static_cast<Py_ssize_t>(size_bytes), PyBUF_READ));
  if (Ref::steal(PyObject_CallMethod(array.get(), "frombytes", "O", memory.get()))) return array;
  if (PyErr_ExceptionMatches(PyExc_ValueError) == 0) throw PythonError();
  PyErr_Clear();
  decoder.corrupt("an array.array whose size is no multiple of its elements'");
}

}  // namespace

void init_byte_values(PyObject*) {
  const Ref array_module = checked(PyImport_ImportModule("array"));
  standard_array_type = reinterpret_cast<PyTypeObject*>(attribute(array_module.get(), "array").release());
  add_encoding(standard_array_type, &encode_standard_array, Nature::kData);
  add_decoding(ValueTag::kStandardArray, &decode_standard_array);
  add_encoding(&PyMemoryView_Type, &encode_memoryview, Nature::kData);
  add_decoding(ValueTag::kMemoryView, &decode_memoryview);
  add_decoding(ValueTag::kAttachedBytes, &decode_attached_bytes);
}

}  // namespace weft::python
