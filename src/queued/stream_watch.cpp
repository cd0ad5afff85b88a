#include "queued/stream_watch.h"

#include <string>
#include <unordered_map>
#include <utility>

#include "weft/base/error.h"

#include "memory/memory.h"
#include "rma/copy/batch.h"

namespace weft::queued {

using base::Status;
using base::StatusCode;

struct StreamWatch::Watched {
  memory::Place device;
  memory::StreamHandle stream = nullptr;
  std::uint64_t num_noted = 0;
  bool is_watched = false;
  std::unordered_map<std::shared_ptr<void>, std::uint64_t> keepers;  // with the last note that named each
};

struct StreamWatch::State {
  runtime::Runtime& runtime;
  const char* what;
  std::vector<Watched> streams;
  int num_watched = 0;
  std::vector<runtime::Future<>> waiting;
  Status failure;  // of work since the last over()
};

StreamWatch::StreamWatch(runtime::Runtime& runtime, const char* what)
    : state_(std::make_shared<State>(State{runtime, what, {}, 0, {}, {}})) {}

StreamWatch::~StreamWatch() = default;

bool StreamWatch::is_idle() const { return state_->num_watched == 0; }

void StreamWatch::note(memory::Place device, memory::StreamHandle stream, std::shared_ptr<void> keeper) {
  memory::KindBackend* const kind = state_->runtime.memory().backend(device.kind);
  if (kind->is_capturing(stream, device.device)) return;
  std::size_t number = 0;
  for (; number < state_->streams.size(); ++number) {
    const Watched& known = state_->streams[number];
    if (known.stream == stream && known.device == device) break;
  }
  if (number == state_->streams.size()) state_->streams.push_back({device, stream, 0, false, {}});
  Watched& watched = state_->streams[number];
  watched.keepers[std::move(keeper)] = ++watched.num_noted;
  if (watched.is_watched) return;
  watched.is_watched = true;
  ++state_->num_watched;
  state_->runtime.count_sent();  // for quiescence, as a message
  state_->runtime.spawn(watch(state_, number), state_->what);
}

runtime::Task<> StreamWatch::watch(std::shared_ptr<State> state, std::size_t number) {
  for (std::uint64_t seen = 0; seen != state->streams[number].num_noted;) {
    seen = state->streams[number].num_noted;
    rma::Batch batch(state->runtime);
    batch.start([&](base::Completion* completion) {
      const Watched& watched = state->streams[number];
      return state->runtime.memory().when_queued_done(watched.device, watched.stream, completion);
    });
    co_await batch;
    if (state->failure.ok()) state->failure = batch.status();
    // Their destructors may queue work: no part of `state` is in use meanwhile.
    const auto keepers = std::exchange(state->streams[number].keepers, {});
    for (const auto& [keeper, last_note] : keepers) {
      if (last_note > seen) state->streams[number].keepers.emplace(keeper, last_note);
    }
  }
  state->streams[number].is_watched = false;
  state->runtime.count_processed();
  if (--state->num_watched > 0) co_return;
  const std::vector<runtime::Future<>> waiting = std::exchange(state->waiting, {});
  const Status status = std::exchange(state->failure, Status());
  if (status.ok()) {
    for (const runtime::Future<>& one : waiting) one.set();
    co_return;
  }
  for (const runtime::Future<>& one : waiting)
    one.set_error(std::make_exception_ptr(base::Error(status.code(), std::string(status.message()))));
  // At the job's end its own sentence says why streams were given up.
  if (waiting.empty() && status.code() != StatusCode::kClosed) base::throw_status(status);
}

runtime::Future<> StreamWatch::over() {
  runtime::Future<> over = state_->runtime.make_future();
  if (is_idle()) {
    over.set();
  } else {
    state_->waiting.push_back(over);
  }
  return over;
}

}  // namespace weft::queued
