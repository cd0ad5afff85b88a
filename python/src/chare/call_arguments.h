// The arguments of a call of an entry method, decoded, with the chare in front.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "chare/call_header.h"
#include "codec/decoder.h"
#include "support/support.h"

namespace weft::python {

class Encoder;

// On the stack for usual counts.
class CallArguments {
 public:
  // Delegates, so that the destructor drops what was decoded if a later value does not decode.
  CallArguments(PyObject* self, Decoder& decoder, const CallHeader& header);
  CallArguments(const CallArguments&) = delete;
  CallArguments& operator=(const CallArguments&) = delete;
  ~CallArguments() {
    for (std::size_t i = 0; i < count_; ++i) Py_DECREF(values()[i]);
  }

  // Throws PythonError.
  Ref call(PyObject* method_name);
  // The chare and the positional arguments.
  std::span<PyObject* const> positional() { return {values(), num_positional_}; }
  // The argument that the caller has given by that name; null if there is none.
  PyObject* keyword(PyObject* name);
  // Writes the counts, the values without the chare, and the keywords' names, as in CallHeader::Form::kArguments.
  void encode(Encoder& encoder);

 private:
  explicit CallArguments(PyObject* self) { push(Ref::borrow(self)); }
  PyObject** values() { return many_.empty() ? few_.data() : many_.data(); }
  void push(Ref value) {
    if (many_.empty() && count_ == few_.size()) many_.assign(few_.begin(), few_.end());
    if (many_.empty()) {
      few_[count_] = value.release();
    } else {
      many_.push_back(value.release());
    }
    ++count_;
  }

  std::array<PyObject*, 8> few_;
  std::vector<PyObject*> many_;
  std::size_t count_ = 0;
  std::size_t num_positional_ = 0;
  Ref keyword_names_;
};

}  // namespace weft::python
