#include "queued/stream_watch.h"

#include <algorithm>
#include <string>
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
};

struct StreamWatch::State {
  runtime::Runtime& runtime;
  const char* what;
  std::vector<Watched> streams;
  int num_watched = 0;
  std::vector<std::shared_ptr<void>> keepers;  // each once
  std::vector<runtime::Future<>> waiting;
  Status failure;  // of work since the last over()
};

StreamWatch::StreamWatch(runtime::Runtime& runtime, const char* what)
    : state_(std::make_shared<State>(State{runtime, what, {}, 0, {}, {}, {}})) {}

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
  if (number == state_->streams.size()) state_->streams.push_back({device, stream});
  if (std::ranges::find(state_->keepers, keeper) == state_->keepers.end())
    state_->keepers.push_back(std::move(keeper));
  Watched& watched = state_->streams[number];
  ++watched.num_noted;
  if (watched.is_watched) return;
  watched.is_watched = true;
  ++state_->num_watched;
  state_->runtime.count_sent();  // quiescence waits for it
  state_->runtime.spawn(watch(state_, number), state_->what);
}

runtime::Task<> StreamWatch::watch(std::shared_ptr<State> state, std::size_t number) {
  Status status;
  for (std::uint64_t seen = 0; status.ok() && seen != state->streams[number].num_noted;) {
    seen = state->streams[number].num_noted;
    rma::Batch batch(state->runtime);
    batch.start([&](base::Completion* completion) {
      const Watched& watched = state->streams[number];
      return state->runtime.memory().when_queued_done(watched.device, watched.stream, completion);
    });
    co_await batch;
    status = batch.status();
  }
  state->streams[number].is_watched = false;
  state->runtime.count_processed();
  if (state->failure.ok()) state->failure = status;
  if (--state->num_watched > 0) co_return;
  state->keepers.clear();
  const std::vector<runtime::Future<>> waiting = std::exchange(state->waiting, {});
  status = std::exchange(state->failure, Status());
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
