#include "engine/engine.h"

#include <algorithm>
#include <csignal>
#include <functional>
#include <memory>
#include <new>
#include <utility>

#include "weft/base/error.h"
#include "weft/pgas/pgas.h"
#include "weft/pgas/rpc.h"
#include "weft/pgas/world.h"

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

Engine::Engine(job::Incarnations* incarnations)
    : job_(incarnations == nullptr ? std::make_unique<job::Job>()
                                   : std::make_unique<job::Job>(job::InstallModels(), *incarnations)),
      chares_(job_->runtime().model<chare::Chares>()),
      pgas_(job_->runtime().model<weft::pgas::Pgas>()),
      lost_calls_(job_->runtime()) {
  if (incarnations != nullptr) job_->outlive_losses(false);
}

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

namespace {

// How long the job waits for the outcomes of lost calls, when main has returned. Long enough for calls that run at once, and short
// for a program with a call that does not end.
constexpr double kLostCallsSeconds = 1;
// How long the other PEs have to end after an exception of main: as long as a busy PE whose launcher has gone.
constexpr double kMainErrorSeconds = 3;
constexpr std::size_t kMostNamesUnread = 3;

// Calls a function after a time, also while the job ends; not when it has ended.
class After final : public runtime::Work {
 public:
  static void start(runtime::Runtime& runtime, double seconds, std::function<void()> function) {
    runtime.post_after(seconds, new After(std::move(function)));
  }

 private:
  explicit After(std::function<void()> function)
      : runtime::Work(&After::turn), function_(std::move(function)) {}
  static void turn(runtime::Work* self, runtime::Runtime& runtime, runtime::WorkAction) {
    const std::unique_ptr<After> work(static_cast<After*>(self));
    if (!runtime.stopped()) work->function_();
  }

  std::function<void()> function_;
};

}  // namespace

void Engine::interrupt(int signal) {
  if (interrupting_signal_ == 0) interrupting_signal_ = signal;
  runtime().fail(base::format("PE {}: interrupted by signal {} ({})", runtime().pe(), signal,
                              signal == SIGINT ? "SIGINT" : "SIGTERM"),
                 128 + signal);
}

namespace {

// Runs on the other PEs.
runtime::Task<> lost_calls_end() {
  Engine* const engine = Engine::running();
  if (engine != nullptr) co_await engine->lost_calls().none();
}

}  // namespace

runtime::Task<> Engine::end_after_lost_calls() {
  std::vector<runtime::Future<>> others;
  for (int pe = 1; pe < runtime().num_pes(); ++pe) {
    // A PE where too many calls wait is not asked: the send would wait for it.
    if (runtime().has_room(pe)) others.push_back(pgas_.world().rpc<&lost_calls_end>(pe));
  }
  co_await lost_calls_.none();
  for (const runtime::Future<>& other : others) co_await other;
  exit_after_closings();
}

void Engine::exit_after_lost_calls() {
  if (runtime().num_pes() == 1 && lost_calls_.texts().empty()) return exit_after_closings();
  After::start(runtime(), kLostCallsSeconds, [this] { exit_after_closings(); });
  runtime().spawn(end_after_lost_calls(), "the end of the job");
}

namespace {

void add_name(std::vector<std::string>& names, std::string name) {
  if (name.empty() || names.size() == kMostNamesUnread) return;
  if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
}

}  // namespace

void Engine::count_unread(PyObject* subject) {
  ++num_unread_;
  if (subject != nullptr && unread_.size() < kMostNamesUnread) add_name(unread_, readable(subject));
}

std::string Engine::unread_report() const {
  const std::uint64_t num_unread = num_unread_ + lost_calls_.texts().size();
  if (num_unread == 0) return {};
  std::vector<std::string> unread = unread_;
  for (const auto& [call, name] : lost_calls_.texts()) add_name(unread, name);
  std::string names;
  for (const std::string& name : unread) names += (names.empty() ? "" : ", ") + name;
  return base::format(
      "weft: PE {}: the program has not awaited {} future{} that it has made, such as of {}; await them, or "
      "call the "
      "method without `.call`\n",
      job_->runtime().pe(), num_unread, num_unread == 1 ? "" : "s", names);
}

void Engine::end_by_main(Ref error) {
  main_error_ = std::move(error);
  if (runtime().ending()) return;
  runtime().exit(1);
  std::string text =
      base::format("main on PE {} raised a {}, and other PEs have not ended within {} s: {}", runtime().pe(),
                   type_name_of(main_error_.get()), kMainErrorSeconds, readable(main_error_.get()));
  After::start(runtime(), kMainErrorSeconds, [this, text = std::move(text)] { runtime().fail(text); });
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

RunningEngine::RunningEngine(job::Incarnations* incarnations) {
  if (Engine::in_forked_child()) throw_forked();
  if (Engine::running() != nullptr) {
    throw base::Error(base::StatusCode::kInvalidArgument, "weft.run was called inside a running job");
  }
  engine_ = EngineRef(*new Engine(incarnations));
  Engine::running_ = &*engine_;
}

RunningEngine::~RunningEngine() {
  engine_->closed_ = true;
  engine_->runtime().close();
  Engine::running_ = nullptr;
}

}  // namespace weft::python
