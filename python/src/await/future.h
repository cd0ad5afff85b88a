// weft.Future, and the waiting side of every awaitable of this extension.
#pragma once

#include <functional>

#include "weft/runtime/future.h"

#include "job/engine.h"
#include "support/support.h"

namespace weft::python {

class Decoder;
class Encoder;

// What a packed result is made of: the byte in front of it.
enum class ResultForm : std::uint8_t {
  kValue,    // one encoded value
  kGather,   // a packed count, then as many encoded values: a list
  kConcat,   // the same, each value a list or array: one list or array of their elements
  kReduced,  // what a Python reducer leaves: see reduction.h
};

class PyFutureState final : public runtime::FutureState {
 public:
  explicit PyFutureState(Engine& engine) : runtime::FutureState(engine.runtime()), engine_(engine) {}
  ~PyFutureState() override;

  Engine& engine() const { return *engine_; }
  // REQUIRES: is_ready(). A new reference, or PythonError.
  Ref result();
  void set(Ref value);
  void set_packed(Pup& p) override;
  void set_decoded(Decoder& decoder, ResultForm form);
  // The result of an allreduce comes without the byte that says its form.
  void expect_bare(ResultForm form) { bare_form_ = static_cast<int>(form); }
  // An error of a call that nobody looks at ends the job.
  void end_job_if_unobserved(std::string where) { where_ = std::move(where); }
  void bind_remote(runtime::FutureAddress at) { remote_ = at; }
  void observe() { observed_ = true; }

 private:
  EngineRef engine_;
  Ref value_;
  int bare_form_ = -1;
  bool observed_ = false;
  std::string where_;
};

void init_future(PyObject* module);

// Sends the encoded value to the future at that address, on whichever PE it is.
void set_remote_future(runtime::Runtime& runtime, runtime::FutureAddress future, Encoder& encoder);

// A Python object with a share of `state`.
Ref make_future_object(PyFutureState* state);
bool is_future(PyObject* object);
// REQUIRES: is_future(object).
PyFutureState* future_state(PyObject* object);
void encode_future(Encoder& encoder, PyObject* future);
Ref decode_future(Decoder& decoder);

// A future that `start` sees set later; for C++ futures without a value.
Ref wrap_future(Engine& engine, const runtime::Future<>& future);

// Posts `work` once what a coroutine yielded, an awaitable of this extension, is ready. Returns false for any
// other object. Throws base::Error when it cannot be waited for.
bool wait_for(PyObject* yielded, runtime::Work* work);

}  // namespace weft::python
