#include "chare/calls/calls_elsewhere.h"

#include <memory>
#include <utility>

#include "weft/base/error.h"
#include "weft/runtime/task.h"

#include "await/future_operation.h"
#include "await/operation.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// Dropped with its message if the job ends before the PE's thread has sent it.
struct Posted {
  Posted(PyObject* method_in, Outgoing call_in)
      : method(Ref::borrow(method_in)), call(std::move(call_in)) {}
  ~Posted() {
    if (call.message == nullptr || call.sending == nullptr) return;
    call.sending->observe();
    call.sending->drop_handle();
  }
  Posted(const Posted&) = delete;
  Posted& operator=(const Posted&) = delete;

  Engine& engine() const { return engine_of_method(method.get()); }
  Sent send(Replies replies) { return send_outgoing(method.get(), std::move(call), replies); }

  Ref method;
  Outgoing call;
};

std::shared_ptr<Posted> encode(PyObject* method, PyObject* const* arguments, Py_ssize_t count,
                               PyObject* keyword_names) {
  engine_of_method(method).expect_open_on_any_thread();
  return std::make_shared<Posted>(method, encode_outgoing(method, arguments, count, keyword_names));
}

// `sending`: what travels in place; null for nothing.
runtime::Task<> end_when_sent(runtime::Runtime& runtime, std::shared_ptr<OperationEnding> ending,
                              runtime::OperationState* sending) {
  base::Status status;
  try {
    if (sending != nullptr) {
      runtime::Operation in_place(sending);
      co_await in_place;
    }
    co_await runtime::room(runtime);
  } catch (const base::Error& error) {
    status = base::Status(error.code(), error.what());
  }
  ending->end(std::move(status));
}

base::Status status_of_caught() {
  try {
    throw;
  } catch (const base::Error& error) {
    return {error.code(), error.what()};
  } catch (const PythonError&) {  // Ctrl-C: the job has ended
    const Ref error = PythonError::take();
    return {base::StatusCode::kCancelled, readable(error.get())};
  }
}

}  // namespace

PyObject* send_from_other_thread(PyObject* method, PyObject* const* arguments, Py_ssize_t count,
                                 PyObject* keyword_names) {
  auto posted = encode(method, arguments, count, keyword_names);
  runtime::Runtime& runtime = posted->engine().runtime();
  auto* const state = runtime::OperationState::create(runtime);
  state->started(base::Status::pending(), 0);
  Ref operation = make_operation_object(posted->engine(), state, Ref(), Ref::borrow(Py_None));
  auto ending = std::make_shared<OperationEnding>(state);
  runtime.post_from_any_thread([&runtime, posted = std::move(posted), ending = std::move(ending)] {
    try {
      const auto [sending, pe] = posted->send({});
      if (sending == nullptr && runtime.has_room(pe)) {
        ending->end({});
      } else {
        runtime.spawn(end_when_sent(runtime, ending, sending), "a call of another thread");
      }
    } catch (...) {
      ending->end(status_of_caught());
    }
  });
  return operation.release();
}

PyObject* call_from_other_thread(PyObject* method, PyObject* const* arguments, Py_ssize_t count,
                                 PyObject* keyword_names) {
  auto posted = encode(method, arguments, count, keyword_names);
  Engine& engine = posted->engine();
  auto* const state = new PyFutureState(engine);
  Ref future = make_future_object(state);
  state->end_job_if_unobserved(kUnawaitedCall);
  state->set_subject(Ref::borrow(method));
  state->expect_reader();
  engine.runtime().post_from_any_thread([posted = std::move(posted), state, future] {
    try {
      send_for_result(posted->method.get(), state,
                      [&](Replies replies) { return posted->send(replies).sending; });
    } catch (...) {
      state->set_error(caught_as_travelling_error());
    }
  });
  return future.release();
}

}  // namespace weft::python
