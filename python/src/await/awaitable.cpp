#include "await/awaitable.h"

#include <array>
#include <cstddef>

#include "weft/base/error.h"

namespace weft::python {

namespace {

struct AwaitableType {
  PyTypeObject* type = nullptr;
  WaitFunction wait = nullptr;
};
std::array<AwaitableType, 4> awaitables;
std::size_t num_awaitables = 0;

}  // namespace

void add_awaitable(PyTypeObject* type, WaitFunction wait) {
  if (num_awaitables == awaitables.size()) {
    throw base::Error(base::StatusCode::kInternal, "the table of awaitables is full; enlarge it");
  }
  awaitables[num_awaitables++] = {type, wait};
}

bool wait_for(PyObject* yielded, runtime::Work* work) {
  for (std::size_t i = 0; i < num_awaitables; ++i) {
    if (awaitables[i].type != Py_TYPE(yielded)) continue;
    awaitables[i].wait(yielded, work);
    return true;
  }
  return false;
}

}  // namespace weft::python
