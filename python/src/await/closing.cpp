#include "await/closing.h"

#include <utility>

#include "await/context.h"
#include "await/coroutine.h"
#include "base/format.h"
#include "engine/ending.h"
#include "engine/engine.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// In the context of the coroutine that leaves the generator, not in a copy: its `finally` may reset what its beginning has set
// there, as `with numpy.errstate(...)` does.
class Closing final : public Coroutine {
 public:
  Closing(Engine& running, Ref coroutine) : Coroutine(running, std::move(coroutine), InContext::innermost()) {
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

PyObject* close_generator(PyObject*, PyObject* coroutine) {
  return guarded([coroutine]() -> PyObject* {
    if (!can_close_here()) Py_RETURN_FALSE;
    (new Closing(*Engine::running(), Ref::borrow(coroutine)))->start();
    Py_RETURN_TRUE;
  });
}

PyObject* is_pe_thread(PyObject*, PyObject*) {
  const Engine* const engine = Engine::running();
  return PyBool_FromLong(engine != nullptr && engine->is_on_this_thread() ? 1 : 0);
}

PyMethodDef functions[] = {
    {"_is_pe_thread", &is_pe_thread, METH_NOARGS, nullptr},
    {"_close_generator", &close_generator, METH_O, nullptr},
    {},
};

}  // namespace

void init_closing(PyObject* module) { add_functions(module, functions); }

}  // namespace weft::python
