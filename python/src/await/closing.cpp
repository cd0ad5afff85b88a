#include "await/closing.h"

#include <utility>

#include "await/context.h"
#include "await/coroutine.h"
#include "await/running_chare.h"
#include "base/format.h"
#include "engine/ending.h"
#include "engine/engine.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// Runs in the context of a coroutine, not in a copy: the `finally` of the generator may reset what its beginning has set there, as
// `with numpy.errstate(...)` does.
class Closing final : public Coroutine {
 public:
  Closing(Engine& running, Ref coroutine, Ref context)
      : Coroutine(running, std::move(coroutine), std::move(context)) {
    running.closing_started();
  }

 private:
  void returned(Ref) override { engine().closing_ended(); }
  void raised() override {
    end_by_exception(engine(),
                     base::format("an asynchronous generator that was left before its end, on PE {}",
                                  engine().runtime().pe()));
    engine().closing_ended();
  }
};

// Whether this thread is the PE's, with a job that is not ending.
bool can_close_here() {
  const Engine* const engine = Engine::running();
  return engine != nullptr && !engine->is_closed() && engine->is_on_this_thread() &&
         !Engine::running()->runtime().ending();
}

// Where a generator begins: the context of the coroutine, and the chare whose code runs.
PyObject* origin(PyObject*, PyObject*) {
  const Ref context = InContext::innermost();
  return Py_BuildValue("(OKK)", context ? context.get() : Py_None,
                       static_cast<unsigned long long>(running_chare.collection),
                       static_cast<unsigned long long>(running_chare.index));
}

// Starts the coroutine that closes a generator: at its origin, or with None where it is dropped now.
PyObject* close_generator(PyObject*, PyObject* const* values, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("_close_generator", {"coroutine", "origin"}, 2, values, count, nullptr);
    if (!can_close_here()) Py_RETURN_FALSE;
    PyObject* context = Py_None;
    unsigned long long collection = running_chare.collection;
    unsigned long long index = running_chare.index;
    if (arguments[1] != Py_None && PyArg_ParseTuple(arguments[1], "OKK", &context, &collection, &index) == 0)
      throw PythonError();
    const WhileRunning running({collection, index});
    (new Closing(*Engine::running(), Ref::borrow(arguments[0]),
                 context == Py_None ? InContext::innermost() : Ref::borrow(context)))
        ->start();
    Py_RETURN_TRUE;
  });
}

PyObject* is_pe_thread(PyObject*, PyObject*) {
  const Engine* const engine = Engine::running();
  return PyBool_FromLong(engine != nullptr && engine->is_on_this_thread() ? 1 : 0);
}

PyMethodDef functions[] = {
    {"_is_pe_thread", &is_pe_thread, METH_NOARGS, nullptr},
    {"_origin", &origin, METH_NOARGS, nullptr},
    {"_close_generator", as_method(&close_generator), METH_FASTCALL, nullptr},
    {},
};

}  // namespace

void init_closing(PyObject* module) { add_functions(module, functions); }

}  // namespace weft::python
