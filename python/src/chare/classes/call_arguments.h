// The arguments of a call of an entry method, decoded, with the chare in front.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "weft/chare/chares.h"

#include "chare/classes/call_header.h"
#include "codec/decoder.h"
#include "support/support.h"

namespace weft::python {

class Encoder;

// The arguments that the elements of a PE share in a call to several of them: the objects that nothing can change.
class SharedArguments final : public chare::SharedCall {
 public:
  struct Place {
    Ref argument;  // null: each element decodes its own
    std::size_t encoded_bytes = 0;
  };
  std::vector<Place> places;  // by argument
  std::size_t num_own = 0;    // those that are not shared
  bool are_linked = false;    // decoded all together
  std::size_t num_positional = 0;
  Ref keyword_names;
};

// On the stack for usual counts.
class CallArguments {
 public:
  // `shared`: for one of several elements that get this call, see chare::EntryInfo::invoke_shared; or null. Delegates, so that
  // the destructor releases the arguments that were decoded if a later one does not decode.
  CallArguments(PyObject* self, Decoder& decoder, const CallHeader& header,
                std::unique_ptr<chare::SharedCall>* shared = nullptr);
  CallArguments(const CallArguments&) = delete;
  CallArguments& operator=(const CallArguments&) = delete;
  ~CallArguments() {
    for (std::size_t i = 0; i < count_; ++i) Py_DECREF(arguments()[i]);
  }

  // Throws PythonError.
  Ref call(PyObject* method_name);
  // The chare and the positional arguments.
  std::span<PyObject* const> positional() { return {arguments(), num_positional_}; }
  // The argument that the caller has given by that name; null if there is none.
  PyObject* keyword(PyObject* name);
  // Writes the counts, the arguments without the chare, and the keywords' names, as in CallHeader::Form::kArguments.
  void encode(Encoder& encoder);

 private:
  explicit CallArguments(PyObject* self) { push(Ref::borrow(self)); }
  // Calls `next` for each argument: it gets a function that decodes the argument, and returns the argument. Returns the number of
  // keywords, whose names are the next bytes.
  template <class Next>
  std::size_t read(Decoder& decoder, const CallHeader& header, Next next);
  void read_names(Decoder& decoder, std::size_t count);
  [[gnu::noinline]] void read_shared(Decoder& decoder, const CallHeader& header,
                                     std::unique_ptr<chare::SharedCall>& shared);
  void read_first(Decoder& decoder, const CallHeader& header, SharedArguments& shared);
  void read_another(Decoder& decoder, const CallHeader& header, const SharedArguments& shared);
  PyObject** arguments() { return many_.empty() ? few_.data() : many_.data(); }
  // Inline, because it runs for each argument of each call.
  [[gnu::always_inline]] void push(Ref argument) {
    if (count_ < few_.size()) [[likely]] {
      few_[count_++] = argument.release();
    } else {
      push_to_many(std::move(argument));
    }
  }
  [[gnu::noinline]] void push_to_many(Ref argument);

  std::array<PyObject*, 8> few_;
  std::vector<PyObject*> many_;
  std::size_t count_ = 0;
  std::size_t num_positional_ = 0;
  Ref keyword_names_;
};

}  // namespace weft::python
