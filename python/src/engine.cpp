#include "engine.h"

#include "weft/base/error.h"

namespace weft::python {

Engine& Engine::current() {
  Engine& engine = current_on_any_thread();
  engine.expect_open();
  return engine;
}

Engine& Engine::current_on_any_thread() {
  if (running_ == nullptr) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        "no job is running: chares, futures and channels exist between the start and the end of "
        "weft.run(main); make them in main or in an entry method");
  }
  return *running_;
}

void Engine::throw_closed() {
  throw base::Error(base::StatusCode::kClosed, "the job that this belongs to has ended");
}

void Engine::throw_other_thread() {
  throw base::Error(base::StatusCode::kInvalidArgument,
                    "this was called on another thread than the PE's; hand it to the PE with "
                    "weft.post_from_any_thread(function)");
}

RunningEngine::RunningEngine() {
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
