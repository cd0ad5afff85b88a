#include "codec/linked_pickle.h"

#include <cstddef>
#include <utility>

#include "weft/base/error.h"

#include "support/errors.h"
#include "support/importable.h"

namespace weft::python {

namespace {

// The innermost ones of the thread: pickling may call user code that sends or receives another value, and that gives the GIL to a
// thread that pickles, too.
thread_local const EncodePart* dumping = nullptr;
thread_local const std::vector<Ref>* loading = nullptr;

PyObject* part_function = nullptr;

class Dumping {
 public:
  explicit Dumping(const EncodePart& encode_part) : outer_(std::exchange(dumping, &encode_part)) {}
  ~Dumping() { dumping = outer_; }
  Dumping(const Dumping&) = delete;
  Dumping& operator=(const Dumping&) = delete;

 private:
  const EncodePart* outer_;
};

// The reducer_override() of the pickler.
PyObject* pickle_part(PyObject*, PyObject* object) {
  return guarded([object]() -> PyObject* {
    const int number = dumping == nullptr ? -1 : (*dumping)(object);
    if (number < 0) Py_RETURN_NOTIMPLEMENTED;
    return Py_BuildValue("O(i)", part_function, number);
  });
}

PyObject* part(PyObject*, PyObject* number) {
  return guarded([number]() -> PyObject* {
    const std::size_t which = PyLong_AsSize_t(number);
    if (PyErr_Occurred() != nullptr) PyErr_Clear();  // then it is the largest number
    if (loading == nullptr || which >= loading->size()) {
      throw base::Error(base::StatusCode::kCorrupt,
                        "a value arrived damaged: a part that did not come with it");
    }
    return Py_NewRef((*loading)[which].get());
  });
}

PyMethodDef functions[] = {
    {"_pickle_part", &pickle_part, METH_O, nullptr},
    {"_part", &part, METH_O, nullptr},
    {},
};

}  // namespace

Ref dump_linked(const EncodePart& encode_part, PyObject* value, PyObject* buffers) {
  static constinit Imported usual("weft._codec.linked_pickle", "dumps");
  PyObject* const by_value = definitions_by_value();
  const Ref dumps = by_value == nullptr ? Ref::borrow(usual.get()) : attribute(by_value, "dumps_linked");
  const Dumping here(encode_part);
  return checked(PyObject_CallFunctionObjArgs(dumps.get(), value, buffers, nullptr));
}

Ref pickle_dumps() {
  static constinit Imported usual("pickle", "dumps");
  PyObject* const by_value = definitions_by_value();
  return by_value == nullptr ? Ref::borrow(usual.get()) : attribute(by_value, "dumps");
}

PartsToLoad::PartsToLoad(const std::vector<Ref>& parts) : outer_(std::exchange(loading, &parts)) {}
PartsToLoad::~PartsToLoad() { loading = outer_; }

void init_linked_pickle(PyObject* module) {
  add_functions(module, functions);
  part_function = attribute(module, "_part").release();
}

}  // namespace weft::python
