#include "chare/call_arguments.h"

#include "codec/encoder.h"
#include "codec/result.h"
#include "engine/ending.h"

namespace weft::python {

CallArguments::CallArguments(PyObject* self, Decoder& decoder, const CallHeader& header)
    : CallArguments(self) {
  if (header.form == CallHeader::Form::kResult) {
    const std::size_t bound = decoder.number<std::uint8_t>();
    for (std::size_t i = 0; i < bound; ++i) push(decoder.value());
    const auto form = static_cast<ResultForm>(header.result_form);
    if (form != ResultForm::kNothing) push(decode_result(decoder, form));
    num_positional_ = count_;
    return;
  }
  std::size_t positional = decoder.number<std::uint8_t>();
  std::size_t keywords = decoder.number<std::uint8_t>();
  num_positional_ = positional + 1;
  for (std::size_t i = 0; i < positional + keywords; ++i) push(decoder.value());
  if (keywords == 0) return;
  keyword_names_ = checked(PyTuple_New(static_cast<Py_ssize_t>(keywords)));
  for (std::size_t i = 0; i < keywords; ++i) {
    PyTuple_SET_ITEM(keyword_names_.get(), static_cast<Py_ssize_t>(i), make_text(decoder.name()).release());
  }
}

Ref CallArguments::call(PyObject* method_name) {
  PyObject* result = PyObject_VectorcallMethod(method_name, values(), num_positional_, keyword_names_.get());
  end_if_forked();
  return checked(result);
}

PyObject* CallArguments::keyword(PyObject* name) {
  for (std::size_t i = num_positional_; i < count_; ++i) {
    PyObject* given = PyTuple_GET_ITEM(keyword_names_.get(), static_cast<Py_ssize_t>(i - num_positional_));
    if (PyUnicode_Compare(given, name) == 0) return values()[i];
  }
  return nullptr;
}

void CallArguments::encode(Encoder& encoder) {
  encoder.number(static_cast<std::uint8_t>(num_positional_ - 1));
  encoder.number(static_cast<std::uint8_t>(count_ - num_positional_));
  for (std::size_t i = 1; i < count_; ++i) encoder.value(values()[i]);
  for (std::size_t i = num_positional_; i < count_; ++i) {
    encoder.name(
        text_of(PyTuple_GET_ITEM(keyword_names_.get(), static_cast<Py_ssize_t>(i - num_positional_))));
  }
}

}  // namespace weft::python
