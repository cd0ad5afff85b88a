#define WEFT_IMPORTS_NUMPY
#include "buffers/arrays/numpy_loading.h"

#include <vector>

#include "buffers/arrays/numpy_api.h"
#include "support/support.h"

namespace weft::python {

namespace {

std::vector<void (*)()> waiting;

}  // namespace

void load_numpy() {
  if (numpy_detail::loaded) return;
  if (_import_array() < 0) throw PythonError();
  numpy_detail::loaded = true;
  for (auto* then : waiting) then();
}

bool has_numpy() {
  if (numpy_detail::loaded) return true;
  Ref name = make_text("numpy");
  Ref module = Ref::steal(PyImport_GetModule(name.get()));
  if (!module) {
    PyErr_Clear();
    return false;
  }
  load_numpy();
  return true;
}

void when_numpy_is_loaded(void (*then)()) { waiting.push_back(then); }

}  // namespace weft::python
