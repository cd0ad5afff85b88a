#include "engine/engine.h"

#include <new>

#include "weft/base/error.h"
#include "weft/pgas/pgas.h"

#include "base/format.h"
#include "memory/memory.h"

namespace weft::python {

namespace {

[[noreturn]] void throw_forked() {
  throw base::Error(
      base::StatusCode::kClosed,
      "this process was forked from a PE and has no job: only the PE itself makes calls of weft; hand "
      "results back through a pipe or a multiprocessing queue");
}

}  // namespace

Engine::Engine()
    : job_(std::make_unique<job::Job>()),
      chares_(job_->runtime().model<chare::Chares>()),
      pgas_(job_->runtime().model<weft::pgas::Pgas>()) {}

void init_engine() {
  if (pthread_atfork(nullptr, nullptr, &Engine::forget_in_forked_child) != 0) throw std::bad_alloc();
}

void Engine::forget_in_forked_child() {
  if (running_ == nullptr) return;
  running_->closed_ = true;
  running_ = nullptr;
  in_forked_child_ = true;
}

Engine& Engine::current() {
  Engine& engine = current_on_any_thread();
  engine.expect_open();
  return engine;
}

Engine& Engine::current_on_any_thread() {
  if (running_ == nullptr) {
    if (in_forked_child_) throw_forked();
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        "no job is running: chares, futures and channels exist between the start and the end of "
        "weft.run(main); make them in main or in an entry method");
  }
  return *running_;
}

void Engine::throw_closed() {
  if (in_forked_child_) throw_forked();
  throw base::Error(base::StatusCode::kClosed, "the job that this belongs to has ended");
}

void Engine::throw_other_thread() {
  throw base::Error(base::StatusCode::kInvalidArgument,
                    "this was called on another thread than the PE's; hand it to the PE with "
                    "weft.post_from_any_thread(function)");
}

void Engine::drop_on_pe_thread(std::shared_ptr<void> owned) {
  if (in_forked_child_) {
    static_cast<void>(new std::shared_ptr<void>(std::move(owned)));
    return;
  }
  if (running_ == nullptr || running_->closed_) return;
  if (pthread_equal(pthread_self(), running_->thread_) != 0) return;
  running_->runtime().post_from_any_thread([owned = std::move(owned)] {});
}

void Engine::closing_ended() {
  if (--closings_ == 0 && exits_after_closings_) runtime().exit(0);
}

void Engine::exit_after_closings() {
  exits_after_closings_ = true;
  if (closings_ == 0) runtime().exit(0);
}

memory::StreamHandle Engine::create_stream(memory::Place place) {
  memory::Memory& memory = runtime().memory();
  memory::KindBackend* backend = memory.backend(place.kind);
  if (place.is_host() || backend == nullptr) {
    base::Status why = memory.availability(place.kind);
    throw base::Error(
        base::StatusCode::kUnsupported,
        base::format("there are no streams of {} in this process: {}", memory::place_name(place),
                     place.is_host() ? "host memory has none" : std::string(why.message())));
  }
  base::Result<memory::StreamHandle> stream = backend->create_stream(place.device);
  if (!stream.ok()) base::throw_status(stream.status());
  return *stream;
}

void Engine::destroy_stream(memory::Place place, memory::StreamHandle stream) {
  // It was made by this backend; a device that has failed by now takes its streams with it.
  static_cast<void>(runtime().memory().backend(place.kind)->destroy_stream(stream));
}

memory::StreamHandle Engine::own_stream(memory::Place place) {
  for (const auto& [where, stream] : own_streams_) {
    if (where == place) return stream;
  }
  own_streams_.emplace_back(place, create_stream(place));
  return own_streams_.back().second;
}

RunningEngine::RunningEngine() {
  if (Engine::in_forked_child()) throw_forked();
  if (Engine::running() != nullptr) {
    throw base::Error(base::StatusCode::kInvalidArgument, "weft.run was called inside a running job");
  }
  engine_ = EngineRef(*new Engine);
  Engine::running_ = &*engine_;
}

RunningEngine::~RunningEngine() {
  engine_->closed_ = true;
  engine_->runtime().close();
  Engine::running_ = nullptr;
}

}  // namespace weft::python
