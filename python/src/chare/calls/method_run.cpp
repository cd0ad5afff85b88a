#include "chare/calls/method_run.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "weft/chare/outcome.h"

#include "await/coroutine.h"
#include "await/future.h"
#include "await/running_chare.h"
#include "base/format.h"
#include "buffers/arrays/arrays.h"
#include "codec/attach.h"
#include "codec/encoder.h"
#include "codec/result.h"
#include "engine/ending.h"
#include "engine/engine.h"
#include "support/errors.h"

namespace weft::python {

void send_error_from(PyChare& chare, const chare::ReplyTo& reply, std::size_t method, const char* part) {
  Engine& engine = Engine::current();
  if (PyErr_Occurred() != nullptr && ended_by_exception(engine)) return;
  const std::string_view name =
      method < chare.info().num_methods() ? text_of(chare.info().method_name(method)) : "?";
  const std::string part_name = std::string(name) + part;
  chare::EntryInfo entry;
  entry.name = part_name;
  try {
    throw;
  } catch (const PythonError&) {
    const Ref exception = PythonError::take();
    chare::send_error(chare, reply, entry, as_travelling_error(exception.get()),
                      code_of_exception(exception.get()));
  } catch (...) {
    chare::send_error(chare, reply, entry, std::current_exception());
  }
}

namespace {

// REQUIRES: the reply goes somewhere. Throws when the value cannot travel.
void send_result(PyChare& chare, const chare::ReplyTo& reply, PyObject* value) {
  const bool gathered = reply.kind == chare::ReplyTo::Kind::kGather;
  Encoder encoder(gathered ? OutOfBand::kNothing : OutOfBand::kLarge);
  // An array that the method has not kept cannot change under way.
  if (is_sole_owner(value)) encoder.own(value);
  encoder.value(value);
  // In front of the value a future wants its form.
  const std::size_t form_bytes = gathered ? 0 : 1;
  chare::ResultMessage result(chare, reply, form_bytes + encoder.size_bytes());
  if (!gathered) *result.value() = static_cast<std::byte>(ResultForm::kValue);
  encoder.copy_to(result.value() + form_bytes);
  if (runtime::Message* const carrier = result.carrier()) attach_all(encoder, *carrier);
  std::move(result).send();
}

void finish(PyChare& chare, const chare::ReplyTo& reply, std::size_t method, PyObject* value) {
  if (reply.kind == chare::ReplyTo::Kind::kNone) return;
  try {
    try {
      send_result(chare, reply, value);
    } catch (const PythonError&) {
      rethrow_unsendable(base::format("the result of {}", chare.where_in(method)));
    }
  } catch (...) {
    send_error_from(chare, reply, method);
  }
}

// One run of an entry method that the PE's observer sees. Made only if there is an observer; the address is the run's
// key.
class ObservedRun {
 public:
  static std::unique_ptr<ObservedRun> begin(const PyChare& chare, std::size_t method) {
    if (chare.runtime().observer() == nullptr) [[likely]]
      return nullptr;
    auto run = std::make_unique<ObservedRun>(chare, method);
    chare.runtime().observer()->entry_began(run->event());
    return run;
  }
  ObservedRun(const PyChare& chare, std::size_t method) : chare_(chare), method_(method) {}

  void suspended() const {
    if (runtime::Observer* const observer = chare_.runtime().observer()) observer->entry_suspended(this);
  }
  void resumed() const {
    if (runtime::Observer* const observer = chare_.runtime().observer()) observer->entry_resumed(this);
  }
  void end() const {
    if (runtime::Observer* const observer = chare_.runtime().observer()) observer->entry_ended(event());
  }

 private:
  runtime::EntryEvent event() const {
    return {{chare_.collection().id(), chare_.linear_index()}, chare_.info().full_method_name(method_), this};
  }

  const PyChare& chare_;
  std::size_t method_;
};

class EntryCoroutine final : public Coroutine {
 public:
  EntryCoroutine(Engine& engine, Ref coroutine, PyChare& chare, const chare::ReplyTo& reply,
                 std::size_t method, std::unique_ptr<ObservedRun> observed)
      : Coroutine(engine, std::move(coroutine)),
        chare_(chare),
        reply_(reply),
        method_(method),
        observed_(std::move(observed)) {
    chare_.coroutine_started();
    if (observed_) [[unlikely]]
      watch_steps();
  }

 private:
  void name_in(runtime::Wait& wait) const override {
    const std::uint64_t index = chare_.linear_index();
    wait.who = {{chare_.collection().id(), index}, chare_.collection().element_name(index)};
    wait.where = base::format("{}.{}", wait.who.name, text_of(chare_.info().method_name(method_)));
  }
  void returned(Ref result) override {
    finish(chare_, reply_, method_, result.get());
    ended();
  }
  void raised() override {
    try {
      throw PythonError();
    } catch (...) {
      send_error_from(chare_, reply_, method_);
    }
    ended();
  }
  void ended() {
    chare_.coroutine_ended();
    if (observed_) [[unlikely]]
      observed_->end();
  }
  void after_step() override { chare_.run_ready_calls(); }
  void suspended() override {
    if (observed_) observed_->suspended();
  }
  void resumed() override {
    if (observed_) observed_->resumed();
  }

  PyChare& chare_;
  chare::ReplyTo reply_;
  std::size_t method_;
  std::unique_ptr<ObservedRun> observed_;
};

}  // namespace

void run_method(PyChare& chare, CallArguments& arguments, const chare::ReplyTo& reply, std::size_t method) {
  std::unique_ptr<ObservedRun> observed;
  const WhileRunning running(chare.as_running());
  try {
    observed = ObservedRun::begin(chare, method);
    Ref result = arguments.call(chare.info().method_name(method));
    if (is_coroutine(result.get())) {
      (new EntryCoroutine(Engine::current(), std::move(result), chare, reply, method,
                          std::exchange(observed, nullptr)))
          ->start();
    } else {
      finish(chare, reply, method, result.get());
    }
  } catch (...) {
    send_error_from(chare, reply, method);
  }
  if (observed) [[unlikely]]
    observed->end();
}

}  // namespace weft::python
