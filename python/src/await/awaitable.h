// The common part of the awaitables of this extension.
//
// An awaitable yields itself to the scheduler while it is not ready, and the coroutine that awaits it waits with
// wait_for(). It hands its result over through am_send, so that no StopIteration object is made.
#pragma once

#include <utility>

#include "weft/runtime/wait_list.h"
#include "weft/runtime/work.h"

#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

// Posts `work` when the object is ready, for the next turn if it is ready already. Throws base::Error if it cannot be waited for.
using WaitFunction = void (*)(PyObject* awaitable, runtime::Work* work);
// Undoes the wait. Returns false if `work` is posted already, because the object is ready.
using ForgetFunction = bool (*)(PyObject* awaitable, runtime::Work* work);
// Says for a report what a wait for the object waits for: completes `wait`, and tells `waits` what they leave out then.
using DescribeFunction = void (*)(PyObject* awaitable, runtime::Wait& wait, runtime::WaitList& waits);
// For objects of exactly this type, once per type, when the extension is initialised. `forget` and `describe`: null if waits for the type
// end soon by themselves.
void add_awaitable(PyTypeObject* type, WaitFunction wait, ForgetFunction forget = nullptr,
                   DescribeFunction describe = nullptr);
// Does nothing for an object that is no awaitable of this extension, or ends soon.
void describe_wait(PyObject* awaitable, runtime::Wait& wait, runtime::WaitList& waits);
// Returns false if the object is no awaitable of this extension.
bool wait_for(PyObject* yielded, runtime::Work* work);

// Undoes wait_for(). Returns false if `work` is posted already, or soon.
bool forget_wait(PyObject* yielded, runtime::Work* work);

// asyncio._get_running_loop() is not None; does not import asyncio.
bool runs_an_asyncio_loop();

class Coroutine;

// While it lives, the scheduler steps this coroutine on this thread, the PE's.
class SteppedByScheduler {
 public:
  explicit SteppedByScheduler(Coroutine& coroutine) : outer_(std::exchange(innermost_, &coroutine)) {}
  ~SteppedByScheduler() { innermost_ = outer_; }
  SteppedByScheduler(const SteppedByScheduler&) = delete;
  SteppedByScheduler& operator=(const SteppedByScheduler&) = delete;

  // Null if the scheduler steps none.
  static Coroutine* innermost() { return innermost_; }

 private:
  Coroutine* outer_;
  static inline Coroutine* innermost_ = nullptr;  // under the GIL
};

// Counts an await that found its result ready. Returns whether it must yield to the scheduler all the same, so
// that a coroutine of such awaits leaves turns to others. False if something else than the scheduler steps
// the coroutine: an asyncio loop cannot wait for objects of this extension.
bool must_take_turn();
// An await on another thread than the PE's. `poll`: null for a type that cannot be awaited there.
using PollFunction = PySendResult (*)(PyObject* self, PyObject** result);
[[gnu::cold]] PySendResult send_on_other_thread(PyObject* self, PollFunction poll, PyObject** result);
// Whether this is another thread than the PE's.
inline bool is_on_other_thread() {
  const Engine* const engine = Engine::running();
  return engine != nullptr && !engine->is_on_this_thread();
}
// Whether the scheduler of this thread steps the coroutine, which may therefore yield an object of this extension.
bool is_stepped_by_scheduler();
// Whether a type's awaits count so.
enum class ReadyAwaits : bool { kFree, kCounted };
// Whether coroutines in event loops of other threads can await the type: it has then().
enum class Elsewhere : bool { kRefused, kFollowed };

// The type's slots. Poll is `PySendResult (*)(PyObject* self, PyObject** result)`: PYGEN_NEXT while it is not
// ready, else its result or error.
template <auto Poll, ReadyAwaits Counting = ReadyAwaits::kCounted, Elsewhere Following = Elsewhere::kRefused>
struct AwaitableSlots {
  static PyObject* itself(PyObject* self) { return Py_NewRef(self); }

  static PySendResult send(PyObject* self, PyObject*, PyObject** result) {
    if (is_on_other_thread()) [[unlikely]]
      return send_on_other_thread(self, Following == Elsewhere::kFollowed ? +Poll : nullptr, result);
    PySendResult outcome = Poll(self, result);
    if (outcome == PYGEN_RETURN && Counting == ReadyAwaits::kCounted && must_take_turn()) [[unlikely]] {
      Py_DECREF(*result);
      outcome = PYGEN_NEXT;
    }
    if (outcome == PYGEN_NEXT) *result = Py_NewRef(self);
    return outcome;
  }

  // CPython from 3.12 on drives an await that is sent None with next().
  static PyObject* next(PyObject* self) {
    PyObject* result = nullptr;
    switch (send(self, Py_None, &result)) {
      case PYGEN_NEXT:
        return result;
      case PYGEN_ERROR:
        return nullptr;
      case PYGEN_RETURN:
        break;
    }
    if (result != Py_None) {
      Ref stop = Ref::steal(PyObject_CallOneArg(PyExc_StopIteration, result));
      if (stop) PyErr_SetObject(PyExc_StopIteration, stop.get());
    }  // without an exception the end of the iteration means None
    Py_DECREF(result);
    return nullptr;
  }
};

}  // namespace weft::python
