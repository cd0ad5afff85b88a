#include "chare/classes/call_arguments.h"

#include <utility>

#include "codec/encoder.h"
#include "codec/result.h"
#include "engine/ending.h"

namespace weft::python {

template <class Next>
[[gnu::always_inline]] inline std::size_t CallArguments::read(Decoder& decoder, const CallHeader& header,
                                                              Next next) {
  const auto argument = [&decoder] { return decoder.value(); };
  if (header.form == CallHeader::Form::kResult) {
    const std::size_t bound = decoder.number<std::uint8_t>();
    for (std::size_t i = 0; i < bound; ++i) push(next(argument));
    const auto form = static_cast<ResultForm>(header.result_form);
    if (form != ResultForm::kNothing) push(next([&] { return decode_result(decoder, form); }));
    num_positional_ = count_;
    return 0;
  }
  std::size_t positional = decoder.number<std::uint8_t>();
  std::size_t keywords = decoder.number<std::uint8_t>();
  num_positional_ = positional + 1;
  for (std::size_t i = 0; i < positional + keywords; ++i) push(next(argument));
  return keywords;
}

void CallArguments::read_names(Decoder& decoder, std::size_t count) {
  keyword_names_ = checked(PyTuple_New(static_cast<Py_ssize_t>(count)));
  for (std::size_t i = 0; i < count; ++i) {
    PyTuple_SET_ITEM(keyword_names_.get(), static_cast<Py_ssize_t>(i), make_text(decoder.name()).release());
  }
}

CallArguments::CallArguments(PyObject* self, Decoder& decoder, const CallHeader& header,
                             std::unique_ptr<chare::SharedCall>* shared)
    : CallArguments(self) {
  if (shared != nullptr) [[unlikely]] {
    read_shared(decoder, header, *shared);
    return;
  }
  const std::size_t keywords = read(decoder, header, [](auto decode) { return decode(); });
  if (keywords != 0) read_names(decoder, keywords);
}

void CallArguments::read_shared(Decoder& decoder, const CallHeader& header,
                                std::unique_ptr<chare::SharedCall>& shared) {
  if (shared != nullptr) return read_another(decoder, header, static_cast<const SharedArguments&>(*shared));
  auto made = std::make_unique<SharedArguments>();
  read_first(decoder, header, *made);
  shared = std::move(made);
}

void CallArguments::read_first(Decoder& decoder, const CallHeader& header, SharedArguments& shared) {
  decoder.watch_for_mutable_values();
  shared.places.reserve(4);
  const std::size_t keywords = read(decoder, header, [&](auto decode) {
    const std::size_t before = decoder.remaining_bytes();
    Ref argument = decode();
    const bool is_shared = decoder.take_immutable();
    shared.are_linked |= decoder.has_linked_arguments();
    if (!is_shared) ++shared.num_own;
    shared.places.push_back({is_shared ? argument : Ref(), before - decoder.remaining_bytes()});
    return argument;
  });
  if (keywords != 0) read_names(decoder, keywords);
  shared.num_positional = num_positional_;
  shared.keyword_names = keyword_names_;
}

void CallArguments::read_another(Decoder& decoder, const CallHeader& header, const SharedArguments& shared) {
  if (shared.num_own == 0) {
    for (const SharedArguments::Place& place : shared.places) push(place.argument);
    num_positional_ = shared.num_positional;
  } else if (shared.num_own == shared.places.size()) {
    read(decoder, header, [](auto decode) { return decode(); });
  } else {
    auto next_place = shared.places.begin();
    read(decoder, header, [&](auto decode) {
      const SharedArguments::Place& place = *next_place++;
      if (shared.are_linked) {
        Ref own = decode();
        return place.argument ? place.argument : own;
      }
      if (!place.argument) return decode();
      static_cast<void>(decoder.raw(place.encoded_bytes));
      return place.argument;
    });
  }
  keyword_names_ = shared.keyword_names;
}

void CallArguments::push_to_many(Ref argument) {
  if (many_.empty()) many_.assign(few_.begin(), few_.end());
  many_.push_back(argument.release());
  ++count_;
}

Ref CallArguments::call(PyObject* method_name) {
  PyObject* result =
      PyObject_VectorcallMethod(method_name, arguments(), num_positional_, keyword_names_.get());
  end_if_forked();
  return checked(result);
}

PyObject* CallArguments::keyword(PyObject* name) {
  for (std::size_t i = num_positional_; i < count_; ++i) {
    PyObject* given = PyTuple_GET_ITEM(keyword_names_.get(), static_cast<Py_ssize_t>(i - num_positional_));
    if (PyUnicode_Compare(given, name) == 0) return arguments()[i];
  }
  return nullptr;
}

void CallArguments::encode(Encoder& encoder) {
  encoder.number(static_cast<std::uint8_t>(num_positional_ - 1));
  encoder.number(static_cast<std::uint8_t>(count_ - num_positional_));
  encoder.arguments({arguments() + 1, count_ - 1});
  for (std::size_t i = num_positional_; i < count_; ++i) {
    encoder.name(
        text_of(PyTuple_GET_ITEM(keyword_names_.get(), static_cast<Py_ssize_t>(i - num_positional_))));
  }
}

}  // namespace weft::python
