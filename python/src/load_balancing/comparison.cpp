#include "load_balancing/comparison.h"

#include <string>
#include <vector>

#include "weft/base/error.h"

#include "balance/comparison.h"
#include "balance/load_file.h"
#include "balance/strategy_table.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// [(name, summary)]
PyObject* load_balancing_strategies(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    Ref list = checked(PyList_New(0));
    for (const balance::StrategyEntry& entry : balance::strategy_table()) {
      Ref row = checked(PyTuple_Pack(2, make_text(entry.name).get(), make_text(entry.summary).get()));
      checked(PyList_Append(list.get(), row.get()));
    }
    return list.release();
  });
}

std::vector<std::string> names_of(PyObject* sequence) {
  Ref names = checked(PySequence_Fast(sequence, "the names of strategies must be a sequence"));
  std::vector<std::string> result;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(names.get()); ++i) {
    PyObject* name = PySequence_Fast_GET_ITEM(names.get(), i);
    const char* text = PyUnicode_AsUTF8(name);
    if (text == nullptr) throw PythonError();
    result.emplace_back(text);
  }
  return result;
}

Ref row_of(const balance::Comparison& comparison) {
  const balance::Summary& summary = comparison.summary;
  return checked(Py_BuildValue(
      "(sdddKKKKd)", comparison.strategy.c_str(), summary.imbalance_before, summary.imbalance_after,
      summary.max_after_s, static_cast<unsigned long long>(summary.moves),
      static_cast<unsigned long long>(summary.bytes_moved),
      static_cast<unsigned long long>(summary.external_bytes_before),
      static_cast<unsigned long long>(summary.external_bytes_after), comparison.time_ms));
}

// ((PEs, objects, edges), [(strategy, imbalance before, after, max after in s, moves, bytes moved, external bytes before, after,
// time in ms)])
PyObject* compare_strategies(PyObject*, PyObject* const* values, Py_ssize_t count, PyObject* keyword_names) {
  return guarded([=]() -> PyObject* {
    const Arguments arguments("compare_strategies", {"path", "strategies"}, 2, values, count, keyword_names);
    PyObject* encoded = nullptr;
    checked(PyUnicode_FSConverter(arguments[0], static_cast<void*>(&encoded)) != 0 ? 0 : -1);
    const Ref path = Ref::steal(encoded);
    const std::vector<std::string> names = names_of(arguments[1]);
    auto snapshot = balance::read_load_file(PyBytes_AS_STRING(path.get()));
    if (!snapshot.ok()) base::throw_status(snapshot.status());
    auto comparisons = balance::compare(*snapshot, names);
    if (!comparisons.ok()) base::throw_status(comparisons.status());
    Ref list = checked(PyList_New(0));
    for (const balance::Comparison& comparison : *comparisons) {
      checked(PyList_Append(list.get(), row_of(comparison).get()));
    }
    return checked(Py_BuildValue("((inn)O)", snapshot->num_pes,
                                 static_cast<Py_ssize_t>(snapshot->objects.size()),
                                 static_cast<Py_ssize_t>(snapshot->edges.size()), list.get()))
        .release();
  });
}

PyMethodDef functions[] = {
    {"_load_balancing_strategies", &load_balancing_strategies, METH_NOARGS, nullptr},
    {"_compare_strategies", as_method(&compare_strategies), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {},
};

}  // namespace

void init_load_balancing(PyObject* module) { add_functions(module, functions); }

}  // namespace weft::python
