#include "codec/result.h"

#include "weft/base/error.h"

namespace weft::python {

namespace {

Ref decode_all(Decoder& decoder) {
  auto count = decoder.number<std::uint64_t>();
  // A value takes at least one byte.
  if (count > decoder.remaining_bytes()) {
    throw base::Error(base::StatusCode::kCorrupt, "a gathered list arrived damaged");
  }
  decoder.note_mutable_value();
  Ref list = checked(PyList_New(static_cast<Py_ssize_t>(count)));
  for (std::uint64_t i = 0; i < count; ++i) {
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), decoder.value().release());
  }
  return list;
}

}  // namespace

Ref decode_result(Decoder& decoder, ResultForm form) {
  switch (form) {
    case ResultForm::kValue:
      return decoder.value();
    case ResultForm::kGather:
      return decode_all(decoder);
    case ResultForm::kConcat: {
      Ref parts = decode_all(decoder);
      return checked(PyObject_CallOneArg(import_from("weft._chare.reducers", "concat").get(), parts.get()));
    }
    case ResultForm::kReduced:
      static_cast<void>(decoder.name());
      return decoder.value();
    case ResultForm::kNothing:
      return Ref::borrow(Py_None);
  }
  throw base::Error(base::StatusCode::kCorrupt, "a result arrived damaged: it has no known form");
}

}  // namespace weft::python
