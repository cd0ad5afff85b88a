#include "models/pgas/team/engine_collectives.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/pup.h"
#include "weft/pgas/team.h"
#include "weft/runtime/task.h"

#include "models/pgas/team/copy_or_fail.h"

namespace weft::pgas {

namespace {

using collective::Form;
using collective::Kind;

Kind engine_kind(const EngineOperation& what) {
  if (what.combine.function != nullptr) return what.root < 0 ? Kind::kAllreduce : Kind::kReduce;
  return what.root < 0 ? Kind::kBarrier : Kind::kBroadcast;
}

class TeamRun : public TeamCall {
 public:
  // This rank begins its next collective.
  TeamRun(TeamState& team, const EngineOperation& what)
      : TeamCall(team, what.kind, begin(team, what)), what_(what) {
    call().combiner.context = this;
  }

  bool has_result() const { return what_.root < 0 || what_.root == team().members.rank(); }
  bool is_reduction() const { return what_.combine.function != nullptr; }

  // The data is that of the program if the operation may replace it, else a copy. REQUIRES: host memory.
  void work_on(std::byte* values) {
    std::byte* data = values;
    const bool is_logical = is_reduction() && runtime::is_logical(what_.reducer);
    if (is_reduction() && !has_result()) {
      data = make_memory();
      if (data == nullptr) return;
      if (call().form == Form::kDirect && !is_logical) {
        call().input = values;
      } else {
        std::copy_n(values, what_.size_bytes, data);
      }
    }
    use(data);
  }
  // Memory of its own; null if there is none, and the operation fails.
  std::byte* make_memory() {
    try {
      memory_ = std::make_unique_for_overwrite<std::byte[]>(what_.size_bytes);
    } catch (...) {
      fail(std::current_exception());
    }
    return memory_.get();
  }
  // For logical reducers each number becomes 0 or 1, because a team of one rank merges nothing.
  void use(std::byte* data) {
    call().data = data;
    if (!is_reduction()) return;
    const std::size_t count = what_.size_bytes / what_.combine.element_bytes;
    if (runtime::is_logical(what_.reducer))
      what_.combine.function(runtime::Reducer::kLogicalOr, data, data, count);
    if (call().form != Form::kDirect) return;
    const auto size = static_cast<std::size_t>(team().members.size());
    for (std::size_t i = 0; i <= size; ++i)
      begins_.push_back((i * (count / size) + std::min(i, count % size)) * what_.combine.element_bytes);
    call().begins = begins_.data();
  }

 protected:
  const EngineOperation& what() const { return what_; }

 private:
  static collective::Call begin(TeamState& team, const EngineOperation& what) {
    const Kind kind = engine_kind(what);
    const Form form = team.group->form(kind, what.size_bytes);
    const int root = std::max(what.root, 0);
    const CollectiveType type =
        CollectiveType::of(what.kind, root, what.reducer, what.type, CollectiveType::way_of(form));
    return {.kind = kind,
            .root = root,
            .number = begin_call(team, type),
            .form = form,
            .block_bytes = what.size_bytes,
            .combiner = {.combine = &combine, .is_commutative = true}};
  }
  static bool combine(void* self, const std::byte* left, std::byte* right, std::size_t size_bytes) {
    const EngineOperation& what = static_cast<TeamRun*>(self)->what_;
    what.combine.function(what.reducer, right, left, size_bytes / what.combine.element_bytes);
    return true;
  }
  const EngineOperation what_;
  std::vector<std::size_t> begins_;
  std::unique_ptr<std::byte[]> memory_;
};

// Sets a future, and frees itself: when it is over, or when the runtime closes.
class FutureRun final : public TeamRun, private runtime::DetachedTask {
 public:
  FutureRun(TeamState& team, const EngineOperation& what, runtime::FutureState& result)
      : TeamRun(team, what), result_(&result) {
    team.runtime.list_pending(this);
  }

  // The data is a copy, and the result a value.
  void work_on_value(std::span<const std::byte> value) {
    gives_value_ = true;
    std::ranges::copy(value, value_);
    use(value_);
  }

 private:
  void ended() override {
    if (has_failed()) {
      result_->set_error(failure());
    } else {
      set_result();
    }
    delete this;
  }
  void set_result() {
    std::byte packed[1 + Team::kMostFixedBytes];
    std::byte* end = packed;
    if (what().kind == CollectiveKind::kReduce)
      *end++ = static_cast<std::byte>(has_result());  // a std::optional
    if (gives_value_ && (has_result() || !is_reduction())) end = std::copy_n(value_, what().size_bytes, end);
    Pup p = Pup::unpacker(packed, static_cast<std::size_t>(end - packed), &team().runtime);
    result_->set_packed(p);
  }
  void finished() noexcept override {}
  void abandon() noexcept override { delete this; }

  runtime::FutureShare<runtime::FutureState> result_;
  bool gives_value_ = false;
  alignas(16) std::byte value_[Team::kMostFixedBytes];
};

// In device memory.
runtime::Task<> run_staged(std::unique_ptr<TeamRun> run, memory::Buffer values, bool is_read, bool is_written,
                           runtime::Future<> done) {
  const memory::Buffer staged{run->make_memory(), values.size_bytes, {}, nullptr};
  if (is_read && !run->has_failed()) co_await copy_or_fail(*run, staged, values);
  if (!run->has_failed()) run->use(static_cast<std::byte*>(staged.data));
  run->start();
  co_await collective::Ended(*run);
  if (is_written && !run->has_failed()) co_await copy_or_fail(*run, values, staged);
  run->has_failed() ? done.set_error(run->failure()) : done.set();
}

}  // namespace

runtime::Future<> start_barrier(TeamState& team) {
  runtime::Future<> done(team.runtime);
  (new FutureRun(team, {}, *done.state()))->start();
  return done;
}

bool wait_in_barrier(TeamState& team) {
  TeamRun run(team, {});
  run.start();
  const auto is_over = [](void* context) { return static_cast<TeamRun*>(context)->is_over(); };
  if (!run.is_over()) team.runtime.progress_until(is_over, &run);
  return run.is_over();
}

void start_value(TeamState& team, const EngineOperation& what, std::span<const std::byte> mine,
                 runtime::FutureState& result) {
  auto* const run = new FutureRun(team, what, result);
  run->work_on_value(mine);
  run->start();
}

bool takes_buffers(const TeamState& team, const EngineOperation& what) {
  return what.reducer < runtime::Reducer::kGather && team.group->serves(engine_kind(what), what.size_bytes);
}

runtime::Future<> start_buffer(TeamState& team, const EngineOperation& what, const memory::Buffer& values) {
  runtime::Future<> done(team.runtime);
  if (values.place.is_host()) {
    auto* const run = new FutureRun(team, what, *done.state());
    run->work_on(static_cast<std::byte*>(values.data));
    run->start();
    return done;
  }
  auto run = std::make_unique<TeamRun>(team, what);
  const bool is_root = team.members.rank() == what.root;
  const bool is_read = run->is_reduction() || is_root;
  const bool is_written = run->is_reduction() ? run->has_result() : !is_root;
  team.runtime.spawn(run_staged(std::move(run), values, is_read, is_written, done),
                     "a collective operation on device memory of a team");
  return done;
}

}  // namespace weft::pgas
