#include "weft/chare/method_run.h"

#include <cstdint>
#include <string>

#include "weft/runtime/observer.h"
#include "weft/runtime/wait_list.h"
#include "weft/runtime/work_meter.h"

#include "models/chare/elements/collection.h"

namespace weft::chare::entry_detail {

namespace {

runtime::EntryEvent event_of(const ChareBase& chare, const EntryInfo& entry, const void* run) {
  return {{chare.collection().id(), chare.linear_index()}, entry.name, run};
}

// Both events are equal, so it is made once.
void run_reported(ChareBase& chare, const EntryInfo& entry, Body body, void* arguments,
                  const ReplyTo& reply) {
  const runtime::Runtime& runtime = chare.runtime();
  const runtime::EntryEvent event = event_of(chare, entry, arguments);
  if (runtime::Observer* const observer = runtime.observer()) observer->entry_began(event);
  body(chare, arguments, reply);
  if (runtime::Observer* const observer = runtime.observer()) observer->entry_ended(event);
}

}  // namespace

void run_watched(ChareBase& chare, const EntryInfo& entry, bool reports, Body body, void* arguments,
                 const ReplyTo& reply) {
  const bool is_reported = reports && chare.runtime().observer() != nullptr;
  if (chare.load() == nullptr) return run_reported(chare, entry, body, arguments, reply);
  const runtime::WorkMeter::Span span(chare.runtime().meter(), *chare.load());
  is_reported ? run_reported(chare, entry, body, arguments, reply) : body(chare, arguments, reply);
}

void report_begin(const ChareBase& chare, const EntryInfo& entry, const void* run) {
  if (runtime::Observer* const observer = chare.runtime().observer())
    observer->entry_began(event_of(chare, entry, run));
}

void report_end(const ChareBase& chare, const EntryInfo& entry, const void* run) {
  if (runtime::Observer* const observer = chare.runtime().observer())
    observer->entry_ended(event_of(chare, entry, run));
}

void report_suspended(const runtime::Runtime& runtime, const void* run) {
  if (runtime::Observer* const observer = runtime.observer()) observer->entry_suspended(run);
}

void RunningCoroutine::begin(runtime::PromiseBase& promise, std::coroutine_handle<> coroutine) {
  promise_ = &promise;
  promise.detached = this;
  chare_.coroutine_started();
  chare_.runtime().start_detached(this, coroutine);
}

void RunningCoroutine::fail_to_begin(const std::exception_ptr& error) {
  send_error(chare_, reply_, entry_, error);
  report_end(chare_, entry_, this);
  abandon();
}

void RunningCoroutine::finished() noexcept {
  if (promise_->error) send_error(chare_, reply_, entry_, promise_->error);
  conclude();
  chare_.coroutine_ended();
  report_end(chare_, entry_, this);
  abandon();
}

void RunningCoroutine::list_waits(runtime::WaitList& waits) const {
  const Collection& collection = chare_.collection();
  const std::uint64_t index = chare_.linear_index();
  const std::string name = collection.element_name(index);
  waits.add({.who = {{collection.id(), index}, name}, .where = name + "." + short_name_of(entry_)});
}

}  // namespace weft::chare::entry_detail
