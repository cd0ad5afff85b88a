#include "load_balancing/python_strategy.h"

#include <climits>
#include <cstddef>
#include <memory>
#include <vector>

#include "weft/base/error.h"

#include "balance/strategy_table.h"
#include "base/format.h"
#include "engine/ending.h"
#include "support/errors.h"

namespace weft::python {

namespace {

constexpr const char* kModule = "weft.load_balancing";

// A list with one object for each value.
template <class Value, class Make>
Ref list_of(const std::vector<Value>& values, Make make) {
  Ref list = checked(PyList_New(static_cast<Py_ssize_t>(values.size())));
  for (std::size_t i = 0; i < values.size(); ++i) {
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), make(values[i]).release());
  }
  return list;
}

// (PEs, background loads, speeds, objects, edges), with a tuple for each object and edge.
Ref rows_of(const balance::Snapshot& snapshot) {
  const auto number = [](double value) { return checked(PyFloat_FromDouble(value)); };
  std::vector<double> speeds = snapshot.pe_speed;
  if (speeds.empty()) speeds.assign(static_cast<std::size_t>(snapshot.num_pes), 1.0);
  const Ref objects = list_of(snapshot.objects, [](const balance::ObjectLoad& object) {
    return checked(Py_BuildValue("(KKidKO)", static_cast<unsigned long long>(object.collection),
                                 static_cast<unsigned long long>(object.index), object.pe, object.load_s,
                                 static_cast<unsigned long long>(object.size_bytes),
                                 object.can_move ? Py_True : Py_False));
  });
  const Ref edges = list_of(snapshot.edges, [](const balance::CommunicationEdge& edge) {
    return checked(Py_BuildValue("(IIKK)", edge.from, edge.to, static_cast<unsigned long long>(edge.messages),
                                 static_cast<unsigned long long>(edge.bytes)));
  });
  return checked(Py_BuildValue("(iOOOO)", snapshot.num_pes, list_of(snapshot.background_load_s, number).get(),
                               list_of(speeds, number).get(), objects.get(), edges.get()));
}

// REQUIRES: a list of ints.
balance::Placement placement_of(PyObject* pes) {
  balance::Placement placement;
  const Py_ssize_t count = PyList_GET_SIZE(pes);
  placement.reserve(static_cast<std::size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    int overflow = 0;
    const long pe = PyLong_AsLongAndOverflow(PyList_GET_ITEM(pes, i), &overflow);
    if (pe == -1 && PyErr_Occurred() != nullptr) throw PythonError();
    if (overflow != 0 || pe < INT_MIN || pe > INT_MAX) {
      throw base::Error(base::StatusCode::kInvalidArgument,
                        base::format("the PE of object number {} in the list is {}; expected a PE of the job",
                                     i, readable(PyList_GET_ITEM(pes, i))));
    }
    placement.push_back(static_cast<int>(pe));
  }
  return placement;
}

// The job is told of it as of any exception that nothing awaits.
std::unique_ptr<balance::Strategy> make_registered(const std::string& name) {
  try {
    const Ref functions = import_from(kModule, "_functions");
    Ref function = checked(PyObject_GetItem(functions.get(), make_text(name).get()));
    return std::make_unique<PythonStrategy>(name, std::move(function));
  } catch (...) {
    std::rethrow_exception(caught_as_travelling_error());
  }
}

PyObject* register_strategy(PyObject*, PyObject* arguments) {
  return guarded([&]() -> PyObject* {
    const char* name = nullptr;
    int reads_communication = 0;
    checked(PyArg_ParseTuple(arguments, "sp", &name, &reads_communication) != 0 ? 0 : -1);
    const std::string text(name);
    balance::register_strategy_maker(
        text, [text](const balance::StrategyOptions&) { return make_registered(text); },
        reads_communication != 0 ? balance::Communication::kRead : balance::Communication::kIgnored);
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"_register_strategy", &register_strategy, METH_VARARGS, nullptr},
    {},
};

}  // namespace

balance::Placement PythonStrategy::place(const balance::Snapshot& snapshot) {
  try {
    const Ref decide = import_from(kModule, "_decide");
    Ref pes = Ref::steal(
        PyObject_CallFunctionObjArgs(decide.get(), function_.get(), rows_of(snapshot).get(), nullptr));
    if (!pes) throw PythonError();
    return placement_of(pes.get());
  } catch (...) {
    end_if_forked();
    // SystemExit and KeyboardInterrupt end the job with their codes. `weft lb` has no job.
    Engine* const engine = Engine::running();
    if (engine != nullptr && PyErr_Occurred() != nullptr && ended_by_exception(*engine)) {
      return balance::present_placement(snapshot);
    }
    std::rethrow_exception(caught_as_travelling_error());
  }
}

void init_python_strategy(PyObject* module) { add_functions(module, functions); }

}  // namespace weft::python
