#include "chare/calls/sent.h"

#include "await/awaitable.h"

namespace weft::python {

namespace {

struct SentObject {
  PyObject_HEAD int pe;
  bool has_room;  // at the time of the call
};

PyTypeObject* type = nullptr;
// For usual calls: ready at once, one for all.
PyObject* with_room = nullptr;

SentObject* as_sent(PyObject* object) { return reinterpret_cast<SentObject*>(object); }

Ref make(int pe, bool has_room) {
  Ref object = checked(PyType_GenericAlloc(type, 0));
  as_sent(object.get())->pe = pe;
  as_sent(object.get())->has_room = has_room;
  return object;
}

PySendResult poll(PyObject* self, PyObject** result) {
  SentObject* const sent = as_sent(self);
  if (!sent->has_room) {
    Engine* const engine = Engine::running();
    if (engine != nullptr && !engine->runtime().has_room(sent->pe) && is_stepped_by_scheduler())
      return PYGEN_NEXT;
    sent->has_room = true;
  }
  *result = Py_NewRef(Py_None);
  return PYGEN_RETURN;
}

void wait(PyObject* self, runtime::Work* work) {
  runtime::Runtime& runtime = Engine::current().runtime();
  SentObject* const sent = as_sent(self);
  if (sent->has_room) {
    runtime.post_for_next_turn(work);
  } else {
    runtime.when_room(sent->pe, work);
  }
}

using Slots = AwaitableSlots<&poll>;
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(&free_object)},
    {Py_am_await, reinterpret_cast<void*>(&Slots::itself)},
    {Py_am_send, reinterpret_cast<void*>(&Slots::send)},
    {Py_tp_iter, reinterpret_cast<void*>(&Slots::itself)},
    {Py_tp_iternext, reinterpret_cast<void*>(&Slots::next)},
    {0, nullptr},
};
PyType_Spec spec = {"weft._Sent", sizeof(SentObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

void init_sent(PyObject* module) {
  type = add_type(module, spec);
  add_awaitable(type, &wait);
  with_room = make(-1, true).release();
}

Ref make_sent(Engine& engine, int pe) {
  if (!engine.runtime().has_room(pe)) [[unlikely]]
    return make(pe, false);
  return Ref::borrow(with_room);
}

}  // namespace weft::python
