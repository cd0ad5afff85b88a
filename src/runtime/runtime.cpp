#include "weft/runtime/runtime.h"

#include <fmt/format.h>

#include "weft/base/error.h"

#include "runtime/collective/quiescence.h"
#include "runtime/collective/reductions.h"
#include "runtime/termination.h"

namespace weft::runtime {

Runtime::Runtime(machine::Machine& machine, memory::Memory& memory, const RuntimeOptions& options)
    : Messenger(*this, machine, memory, options.local_pes, options.messaging_path),
      futures_(std::make_unique<FutureTable>(*this)),
      termination_(std::make_unique<Termination>(*this)),
      reductions_(std::make_unique<Reductions>(*this)),
      quiescence_(std::make_unique<Quiescence>(*this, *reductions_)) {
  static_cast<void>(Registry<Combiner>::all());  // numbers them
}

Runtime::~Runtime() { close(); }

void Runtime::close() {
  if (closed()) return;
  close_layers();
  for (auto& [type, model] : models_) model->close();
  drop_queue();
  abandon_tasks();
  while (!models_.empty()) models_.pop_back();  // the last may use those before it
  drop_queue();                                 // what their destructors posted
  futures_->clear();
  reductions_.reset();
  quiescence_.reset();
}

void Runtime::exit(int code) { termination_->request(code); }

Future<> Runtime::sleep(double seconds) {
  struct Alarm : Work {
    explicit Alarm(Future<> future_in) : Work(&Alarm::call), future(std::move(future_in)) {}
    static void call(Work* self, Runtime&, WorkAction action) {
      std::unique_ptr<Alarm> alarm(static_cast<Alarm*>(self));
      if (action == WorkAction::kRun) alarm->future.set();
    }
    Future<> future;
  };
  Future<> future(*this);
  post_after(seconds, new Alarm(future));
  return future;
}

Future<> Runtime::quiescence() { return quiescence_->detect(); }

void Runtime::add_model(std::type_index type, std::unique_ptr<Model> model) {
  models_.emplace_back(type, std::move(model));
}

Model& Runtime::find_model(std::type_index type) {
  for (auto& [key, model] : models_) {
    if (key == type) return *model;
  }
  throw base::Error(base::StatusCode::kNotFound,
                    fmt::format("the model {} is not installed in this runtime", type.name()));
}

}  // namespace weft::runtime
