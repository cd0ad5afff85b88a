#include "chare/call_arguments.h"

#include "codec/encoder.h"
#include "codec/result.h"
#include "engine/ending.h"

namespace weft::python {

template <class Next>
std::size_t CallArguments::read(Decoder& decoder, const CallHeader& header, Next next) {
  const auto value = [&decoder] { return decoder.value(); };
  if (header.form == CallHeader::Form::kResult) {
    const std::size_t bound = decoder.number<std::uint8_t>();
    for (std::size_t i = 0; i < bound; ++i) push(next(value));
    const auto form = static_cast<ResultForm>(header.result_form);
    if (form != ResultForm::kNothing) push(next([&] { return decode_result(decoder, form); }));
    num_positional_ = count_;
    return 0;
  }
  std::size_t positional = decoder.number<std::uint8_t>();
  std::size_t keywords = decoder.number<std::uint8_t>();
  num_positional_ = positional + 1;
  for (std::size_t i = 0; i < positional + keywords; ++i) push(next(value));
  return keywords;
}

void CallArguments::read_names(Decoder& decoder, std::size_t count) {
  if (count == 0) return;
  keyword_names_ = checked(PyTuple_New(static_cast<Py_ssize_t>(count)));
  for (std::size_t i = 0; i < count; ++i) {
    PyTuple_SET_ITEM(keyword_names_.get(), static_cast<Py_ssize_t>(i), make_text(decoder.name()).release());
  }
}

CallArguments::CallArguments(PyObject* self, Decoder& decoder, const CallHeader& header)
    : CallArguments(self) {
  read_names(decoder, read(decoder, header, [](auto decode) { return decode(); }));
}

CallArguments::CallArguments(PyObject* self, Decoder& decoder, const CallHeader& header,
                             std::unique_ptr<chare::SharedCall>& shared)
    : CallArguments(self) {
  if (shared == nullptr) {
    auto made = std::make_unique<SharedArguments>();
    decoder.watch_for_mutable_values();
    read_names(decoder, read(decoder, header, [&](auto decode) {
                 const std::size_t before = decoder.remaining_bytes();
                 Ref value = decode();
                 made->arguments.push_back(
                     {decoder.take_immutable() ? value : Ref(), before - decoder.remaining_bytes()});
                 return value;
               }));
    made->keyword_names = keyword_names_;
    shared = std::move(made);
    return;
  }
  const auto& known = static_cast<const SharedArguments&>(*shared);
  auto argument = known.arguments.begin();
  read(decoder, header, [&](auto decode) {
    const SharedArguments::Argument& one = *argument++;
    if (!one.value) return decode();
    static_cast<void>(decoder.raw(one.size_bytes));
    return one.value;
  });
  keyword_names_ = known.keyword_names;
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
