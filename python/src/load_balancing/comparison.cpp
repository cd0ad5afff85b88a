#include "load_balancing/comparison.h"

#include <memory>
#include <string>
#include <vector>

#include "weft/base/error.h"

#include "balance/comparison.h"
#include "balance/load_file.h"
#include "balance/strategy_table.h"
#include "load_balancing/python_strategy.h"
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

// A name, or (name, function).
balance::Candidate candidate_of(PyObject* given) {
  if (PyTuple_Check(given) == 0) {
    return {std::string(text_of(given))};
  }
  const char* text = nullptr;
  PyObject* function = nullptr;
  checked(PyArg_ParseTuple(given, "sO", &text, &function) != 0 ? 0 : -1);
  std::string name = text;
  return {name, [name, function = Ref::borrow(function)](const balance::StrategyOptions&) {
            return std::make_unique<PythonStrategy>(name, function);
          }};
}

std::vector<balance::Candidate> candidates_of(PyObject* sequence) {
  Ref given = checked(PySequence_Fast(sequence, "the strategies must be a sequence"));
  std::vector<balance::Candidate> result;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(given.get()); ++i) {
    result.push_back(candidate_of(PySequence_Fast_GET_ITEM(given.get(), i)));
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
    const std::vector<balance::Candidate> candidates = candidates_of(arguments[1]);
    auto snapshot = balance::read_load_file(PyBytes_AS_STRING(path.get()));
    if (!snapshot.ok()) base::throw_status(snapshot.status());
    auto comparisons = balance::compare(*snapshot, candidates);
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
