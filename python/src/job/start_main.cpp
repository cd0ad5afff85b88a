#include "job/start_main.h"

#include <cstdint>
#include <utility>

#include "weft/chare/checkpoint.h"
#include "weft/runtime/task.h"

#include "await/coroutine.h"
#include "base/format.h"
#include "engine/ending.h"
#include "support/errors.h"

namespace weft::python {

namespace {

void report_end_of_main(Engine& engine, const void* run) {
  if (runtime::Observer* const observer = engine.runtime().observer()) observer->main_ended(run);
}

class MainCoroutine final : public Coroutine {
 public:
  // `run`: what the PE's observer knows it by.
  MainCoroutine(Engine& engine, Ref coroutine, Ref& result, Mains mains, const void* run)
      : Coroutine(engine, std::move(coroutine)), result_(result), mains_(mains), run_(run) {
    if (engine.runtime().observer() != nullptr) watch_steps();
  }
  ~MainCoroutine() override { engine().set_lone_main(nullptr); }
  MainCoroutine(const MainCoroutine&) = delete;
  MainCoroutine& operator=(const MainCoroutine&) = delete;

 private:
  void returned(Ref result) override {
    report_end_of_main(engine(), run_);
    result_ = std::move(result);
    if (mains_ == Mains::kOnPe0) engine().exit_after_lost_calls();
  }
  void raised() override {
    report_end_of_main(engine(), run_);
    end_by_exception_of_main(engine(), mains_ == Mains::kOnAllPes);
  }
  void suspended() override {
    if (runtime::Observer* const observer = engine().runtime().observer()) observer->entry_suspended(run_);
  }
  void resumed() override {
    if (runtime::Observer* const observer = engine().runtime().observer()) observer->entry_resumed(run_);
  }
  void name_in(runtime::Wait& wait) const override {
    const int pe = engine().runtime().pe();
    wait.who = {{runtime::Party::kMains, static_cast<std::uint64_t>(pe)}, base::format("main on PE {}", pe)};
  }

  Ref& result_;
  Mains mains_;
  const void* run_;
};

runtime::Task<> post_after_copies(runtime::Runtime& runtime, runtime::Work& start) {
  co_await runtime::yield_now(runtime);
  co_await chare::checkpoint_detail::share_anew(runtime);
  runtime.post(&start);
}

}  // namespace

void StartMain::post() {
  runtime::Runtime& runtime = engine_.runtime();
  if (mains_ == Mains::kOnAllPes) {
    runtime.post(this);
  } else {
    runtime.spawn(post_after_copies(runtime, *this), "copying protected chares anew");
  }
}

void StartMain::turn(runtime::Work* self, runtime::Runtime&, runtime::WorkAction action) {
  if (action == runtime::WorkAction::kRun) static_cast<StartMain*>(self)->start();
}

void StartMain::start() {
  if (runtime::Observer* const observer = engine_.runtime().observer()) observer->main_began(this);
  Ref made = Ref::steal(PyObject_CallNoArgs(main_));
  end_if_forked();
  const bool has_ended = !made || !is_coroutine(made.get());
  if (has_ended) report_end_of_main(engine_, this);
  if (made && has_ended) {
    made = after_function(std::move(made));
  } else if (mains_ == Mains::kOnPe0) {
    engine_.set_lone_main(made.get());
  }
  if (!made) {
    end_by_exception_of_main(engine_, mains_ == Mains::kOnAllPes);
  } else if (is_coroutine(made.get())) {
    (new MainCoroutine(engine_, std::move(made), result_, mains_, this))->start();
  }
}

// An ordinary function has returned. What watches whether anything can still happen, a coroutine, or None if
// the job is ending; null with Python's error set if main is of a kind that cannot run.
Ref StartMain::after_function(Ref returned) {
  result_ = std::move(returned);
  if (engine_.runtime().ending()) return Ref::borrow(Py_None);
  Ref module = Ref::steal(PyImport_ImportModule("weft._job.plain_main"));
  return module ? Ref::steal(PyObject_CallMethod(module.get(), "after", "O", result_.get())) : Ref();
}

}  // namespace weft::python
