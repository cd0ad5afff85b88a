// weft.Landing: a buffer that is on its way to an entry method, as its post entry method sees it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "weft/runtime/attachment.h"

#include "buffers/array_form.h"
#include "support/support.h"

namespace weft::python {

void init_landing(PyObject* module);

// One run of a post entry method. Its Landings are good for that long.
class Posting {
 public:
  explicit Posting(std::span<runtime::Landing> landings) : landings_(landings), chosen_(landings.size()) {}
  ~Posting();
  Posting(const Posting&) = delete;
  Posting& operator=(const Posting&) = delete;

  // Throws base::Error when no such buffer came.
  Ref landing(std::size_t which, const ArrayForm& form);
  void into(std::size_t which, PyObject* array, PyObject* stream);
  // By buffer, what the method gave for it; null where it left that to the runtime.
  std::vector<Ref> take_chosen() { return std::move(chosen_); }

 private:
  std::span<runtime::Landing> landings_;
  std::vector<Ref> chosen_;
  std::vector<Ref> objects_;
};

}  // namespace weft::python
