#include "chare/calls/calls_elsewhere.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <utility>

#include "weft/base/error.h"
#include "weft/runtime/task.h"

#include "await/awaitable.h"
#include "await/future_operation.h"
#include "await/operation.h"
#include "base/format.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// What calls of other threads may have in messages that the PE's thread has not sent, in bytes: as much as calls of the PE may have on
// their way to another one before they wait, see Watermarks.
constexpr std::size_t kMostPostedBytes = std::size_t{64} << 20;
// How long a call waits for the PE's thread. That is in one entry method for so long, or waits for the caller.
constexpr std::chrono::seconds kLongestWait{30};
std::size_t posted_bytes = 0;  // under the GIL

std::size_t size_bytes_of(runtime::Message& message) {
  std::size_t size_bytes = message.payload_bytes();
  for (const runtime::Attachment& one : message.attachments()) size_bytes += one.buffer().size_bytes;
  return size_bytes;
}

// Dropped with its message if the job ends before the PE's thread has sent it.
struct Posted {
  Posted(PyObject* method_in, Outgoing call_in)
      : method(Ref::borrow(method_in)), call(std::move(call_in)), size_bytes(size_bytes_of(*call.message)) {
    posted_bytes += size_bytes;
  }
  ~Posted() {
    posted_bytes -= size_bytes;
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
  std::size_t size_bytes;
};

// A loop of calls must not fill the memory while the PE is busy.
[[gnu::noinline]] void wait_for_pe(Engine& engine) {
  if (runs_an_asyncio_loop()) {  // whose other tasks must not wait
    throw base::Error(
        base::StatusCode::kOutOfMemory,
        base::format("calls of other threads with {} MiB of arguments wait for PE {}, and one in an event "
                     "loop cannot wait with them; await some of the earlier calls before making the next",
                     posted_bytes >> 20, engine.runtime().pe()));
  }
  const auto begin = std::chrono::steady_clock::now();
  while (posted_bytes > kMostPostedBytes) {
    if (std::chrono::steady_clock::now() - begin > kLongestWait) {
      throw base::Error(
          base::StatusCode::kOutOfMemory,
          base::format("calls of other threads with {} MiB of arguments wait for PE {}, whose thread "
                       "has sent none of them for {} s; await the calls, and do not block the PE",
                       posted_bytes >> 20, engine.runtime().pe(), kLongestWait.count()));
    }
    Py_BEGIN_ALLOW_THREADS;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Py_END_ALLOW_THREADS;
    if (PyErr_CheckSignals() != 0) throw PythonError();
    engine.expect_open_on_any_thread();
  }
}

std::shared_ptr<Posted> encode(PyObject* method, PyObject* const* arguments, Py_ssize_t count,
                               PyObject* keyword_names) {
  Engine& engine = engine_of_method(method);
  engine.expect_open_on_any_thread();
  if (posted_bytes > kMostPostedBytes) [[unlikely]]
    wait_for_pe(engine);
  // Throws if the job has ended meanwhile. From there to the posting nothing gives the GIL away.
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
