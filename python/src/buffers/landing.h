// weft.Landing: a buffer that is on its way to an entry method, as its post entry method sees it.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "weft/runtime/attachment.h"

#include "buffers/array_form.h"
#include "codec/decoder.h"
#include "support/support.h"

namespace weft::python {

void init_landing(PyObject* module);

// One run of a post entry method. Its Landings are valid that long.
class Posting final : public ArraySubstitute {
 public:
  explicit Posting(std::span<runtime::Landing> landings) : landings_(landings), chosen_(landings.size()) {}
  ~Posting();
  Posting(const Posting&) = delete;
  Posting& operator=(const Posting&) = delete;

  // A Landing. Throws base::Error if no such buffer came.
  Ref in_place_of(std::size_t which, const ArrayForm& form) override;
  void into(std::size_t which, PyObject* array, PyObject* stream);
  // What the method chose, by buffer; null if it left the place to the runtime.
  std::vector<Ref> take_chosen() { return std::move(chosen_); }

 private:
  std::span<runtime::Landing> landings_;
  std::vector<Ref> chosen_;
  std::vector<Ref> objects_;
};

// The arguments of the entry method after it: what the post entry method chose.
class ChosenArrays final : public ArraySubstitute {
 public:
  explicit ChosenArrays(std::span<const Ref> chosen) : chosen_(chosen) {}
  Ref in_place_of(std::size_t which, const ArrayForm&) override {
    return which < chosen_.size() ? chosen_[which] : Ref();
  }

 private:
  std::span<const Ref> chosen_;
};

}  // namespace weft::python
