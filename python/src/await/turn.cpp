#include "await/turn.h"

#include "await/awaitable.h"
#include "engine/engine.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// The awaitable of weft.yield_now(): not ready at the first poll, ready from then on.
struct TurnObject {
  PyObject_HEAD bool is_taken;
};

PyTypeObject* turn_type = nullptr;

PySendResult poll(PyObject* self, PyObject** result) {
  auto* turn = reinterpret_cast<TurnObject*>(self);
  if (!turn->is_taken) {
    turn->is_taken = true;
    return PYGEN_NEXT;
  }
  *result = Py_NewRef(Py_None);
  return PYGEN_RETURN;
}

void wait(PyObject*, runtime::Work* work) { Engine::current().runtime().post_for_next_turn(work); }

PyObject* yield_now(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    static_cast<void>(Engine::current());  // throws where there is no scheduler
    return checked(PyType_GenericAlloc(turn_type, 0)).release();
  });
}

PyObject* progress(PyObject*, PyObject*) {
  return guarded([] { return PyBool_FromLong(Engine::current().runtime().progress() ? 1 : 0); });
}

PyMethodDef functions[] = {
    {"yield_now", &yield_now, METH_NOARGS,
     "yield_now()\n--\n\nAwaitable: lets everything else that is queued on this PE run, and what arrives "
     "from "
     "the network, before\nthe coroutine continues."},
    {"progress", &progress, METH_NOARGS,
     "progress()\n--\n\nMoves communication forward in a long computation: transfers in flight continue, and "
     "what arrives is queued.\n\nNo entry method, callback or coroutine runs before the caller returns or "
     "awaits, and timers wait.\n\nReturns:\n    Whether work is queued: a coroutine may then ``await "
     "weft.yield_now()``."},
    {},
};

using Slots = AwaitableSlots<&poll, ReadyAwaits::kFree>;
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(&free_object)},
    {Py_am_await, reinterpret_cast<void*>(&Slots::itself)},
    {Py_am_send, reinterpret_cast<void*>(&Slots::send)},
    {Py_tp_iter, reinterpret_cast<void*>(&Slots::itself)},
    {Py_tp_iternext, reinterpret_cast<void*>(&Slots::next)},
    {0, nullptr},
};
PyType_Spec spec = {"weft._core._Turn", sizeof(TurnObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

void init_turn(PyObject* module) {
  turn_type = add_type(module, spec);
  add_awaitable(turn_type, &wait);
  add_functions(module, functions);
}

}  // namespace weft::python
