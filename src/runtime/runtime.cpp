#include "weft/runtime/runtime.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "machine/machine.h"
#include "runtime/collective/quiescence.h"
#include "runtime/collective/reductions.h"
#include "runtime/future_table.h"
#include "runtime/message/payload_tag.h"
#include "runtime/termination.h"
#include "runtime/tree/host_groups.h"
#include "runtime/waits/hang_watch.h"

namespace weft::runtime {

Runtime::Runtime(machine::Machine& machine, memory::Memory& memory, const RuntimeOptions& options)
    : Messenger(*this, machine, memory, options.local_pes, options.processor_share, options.messaging_path,
                options.watermarks.third_bytes > 0
                    ? options.watermarks
                    : Watermarks::for_job(machine.num_pes(), options.local_pes)),
      futures_(std::make_unique<FutureTable>(*this)),
      termination_(std::make_unique<Termination>(*this)),
      reductions_(std::make_unique<Reductions>(*this)),
      quiescence_(std::make_unique<Quiescence>(*this, *reductions_)),
      hang_watch_(std::make_unique<HangWatch>(*this, *quiescence_,
                                              [this](WaitList& waits) {
                                                for (const InstalledModel& installed : models_)
                                                  installed.model->list_waits(waits);
                                              })),
      is_on_one_host_(std::ranges::adjacent_find(options.host_of_pe, std::not_equal_to()) ==
                      options.host_of_pe.end()) {
  set_host_groups(HostGroups::make(options.host_of_pe));
  static_cast<void>(Registry<Combiner>::all());  // numbers them
}

Runtime::~Runtime() { close(); }

namespace {

// A resumption of the coroutine of a run, between two reports to the PE's observer. Null: of none that is observed.
class ObservedResumption {
 public:
  ObservedResumption(Runtime& runtime, const void* run)
      : runtime_(runtime), run_(run), outer_(runtime.meter().exchange_run(run)) {
    if (run_ != nullptr && runtime_.observer() != nullptr) runtime_.observer()->entry_resumed(run_);
  }
  ObservedResumption(const ObservedResumption&) = delete;
  ObservedResumption& operator=(const ObservedResumption&) = delete;
  ~ObservedResumption() {
    runtime_.meter().exchange_run(outer_);
    if (run_ != nullptr && runtime_.observer() != nullptr) runtime_.observer()->entry_suspended(run_);
  }

 private:
  Runtime& runtime_;
  const void* run_;
  const void* outer_;
};

}  // namespace

void ResumeWork::note(const WorkMeter& meter) {
  time_ = WorkTimeShare(meter.running());
  run_ = meter.run();
  function = &ResumeWork::call_noted;
}

void ResumeWork::call_noted(Work* self, Runtime& runtime, WorkAction action) {
  auto& work = *static_cast<ResumeWork*>(self);
  work.function = &ResumeWork::call;
  if (action != WorkAction::kRun) return;
  const std::coroutine_handle<> handle = work.handle;
  const ObservedResumption observed(runtime, std::exchange(work.run_, nullptr));
  WorkTime* const time = work.time_.get();
  if (time == nullptr) return handle.resume();
  const WorkMeter::Span span(runtime.meter(), *time);  // keeps `time`
  handle.resume();                                     // `work` may be gone then
  time->resumed();
}

void Runtime::close() {
  if (closed()) return;
  close_layers();
  close_flow();
  for (const InstalledModel& installed : models_) installed.model->close();
  drop_queue();
  abandon_tasks();
  while (!models_.empty()) models_.pop_back();  // a model may use those installed before it
  drop_queue();                                 // work that their destructors posted
  futures_->clear();
  reductions_.reset();
  hang_watch_.reset();
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
  note_uncounted(future);
  post_after(seconds, new Alarm(future));
  return future;
}

Future<> Runtime::quiescence() { return quiescence_->detect(); }

Future<> Runtime::standstill() { return quiescence_->standstill(); }

void Runtime::note_uncounted(const Future<>& end) { quiescence_->note_uncounted(end); }

void Runtime::set_program_activity(ProgramActivity* activity) {
  if (quiescence_ != nullptr) quiescence_->set_program_activity(activity);
}

namespace {

void expect_pe_0(int pe) {
  if (pe == 0) return;
  throw base::Error(base::StatusCode::kInvalidArgument, "only PE 0 reports what the PEs of its job wait for");
}

}  // namespace

void Runtime::watch_for_hangs(const HangSettings& settings) {
  expect_pe_0(pe());
  hang_watch_->start(settings);
}

void Runtime::set_hang_listener(std::function<void(const std::string& report)> listener) {
  hang_watch_->set_listener(std::move(listener));
}

std::uint64_t Runtime::num_hang_looks() const { return hang_watch_->num_looks(); }

void Runtime::report_waits(bool hangs, std::function<void(const std::string& report)> done) {
  expect_pe_0(pe());
  hang_watch_->gather(hangs, std::move(done));
}

ModelRange Runtime::allot(const ModelNeeds& needs) const {
  ModelRange range{.first_handler = kFirstModelHandler, .num_handlers = needs.num_handlers, .tag_type = 0};
  std::uint8_t next_tag_type = kFirstModelTagType;
  for (const InstalledModel& installed : models_) {
    if (installed.needs.name == needs.name) {
      throw base::Error(base::StatusCode::kInvalidArgument,
                        base::format("a model named {} is installed in this runtime already", needs.name));
    }
    range.first_handler = installed.range.first_handler + installed.range.num_handlers;
    if (installed.needs.uses_tags) ++next_tag_type;
  }
  if (needs.num_handlers > kNumHandlers - range.first_handler) {
    throw base::Error(
        base::StatusCode::kOutOfRange,
        base::format("the model {} asks for {} message handlers and {} of {} are left; raise "
                     "kNumHandlers in weft/runtime/handler_id.h",
                     needs.name, needs.num_handlers, kNumHandlers - range.first_handler, kNumHandlers));
  }
  if (!needs.uses_tags) return range;
  if (next_tag_type > machine::kMaxTagType) {
    throw base::Error(base::StatusCode::kOutOfRange,
                      base::format("the model {} asks for tags, and all {} types of tags are in use",
                                   needs.name, machine::kMaxTagType));
  }
  range.tag_type = next_tag_type;
  return range;
}

void Runtime::add_model(std::type_index type, const ModelNeeds& needs, std::unique_ptr<Model> model) {
  models_.push_back({type, needs, allot(needs), std::move(model)});
}

namespace {

using Obstacle = base::Status (Model::*)(ElementId element) const;

base::Status first_obstacle(std::span<const Runtime::InstalledModel> models, Obstacle obstacle,
                            ElementId element) {
  for (const Runtime::InstalledModel& installed : models) {
    if (base::Status status = (installed.model.get()->*obstacle)(element); !status.ok()) return status;
  }
  return {};
}

}  // namespace

base::Status Runtime::obstacle_to_moving(ElementId element) const {
  return first_obstacle(models_, &Model::obstacle_to_moving, element);
}

base::Status Runtime::obstacle_to_saving(ElementId element) const {
  base::Status status = obstacle_to_moving(element);
  return status.ok() ? first_obstacle(models_, &Model::obstacle_to_saving, element) : status;
}

base::Status Runtime::obstacle_to_removing(ElementId element) const {
  base::Status status = obstacle_to_saving(element);
  return status.ok() ? first_obstacle(models_, &Model::obstacle_to_removing, element) : status;
}

MoveState Runtime::prepare_to_move(ElementId element, bool may_wait) const {
  MoveState state = MoveState::kReady;
  for (const InstalledModel& installed : models_) {
    const MoveState one = installed.model->prepare_to_move(element, may_wait);
    if (one == MoveState::kBusy) {
      stay(element);
      return one;
    }
    if (one == MoveState::kWaits) state = one;
  }
  return state;
}

void Runtime::stay(ElementId element) const {
  for (const InstalledModel& installed : models_) installed.model->stay(element);
}

Model& Runtime::find_model(std::type_index type) {
  for (const InstalledModel& installed : models_) {
    if (installed.type == type) return *installed.model;
  }
  throw base::Error(base::StatusCode::kNotFound,
                    base::format("the model {} is not installed in this runtime", type.name()));
}

void* Runtime::find_offered(std::type_index type) {
  for (const auto& [offered, shared] : offered_) {
    if (offered == type) return shared;
  }
  throw base::Error(base::StatusCode::kInternal,
                    base::format("no model of this runtime offers {}", type.name()));
}

}  // namespace weft::runtime
