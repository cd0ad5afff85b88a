// Steps and reductions of emulated devices, see device_step.h. A step that waits stays the stream's work until its words have been
// reached; other streams go on meanwhile, as on a device.
#include <atomic>
#include <utility>
#include <vector>

#include "base/format.h"
#include "memory/kinds/emulated/emulated_backend.h"
#include "memory/kinds/software/software_reduction.h"

namespace weft::memory {

using base::Result;
using base::Status;
using base::StatusCode;

namespace {

constexpr const char* kWord = "word of a signal";
constexpr const char* kStepTarget = "destination of a step";
constexpr const char* kStepSource = "source of a step";

}  // namespace

struct EmulatedBackend::Word {
  Side side;
  std::uint32_t offset = 0;
};

struct EmulatedBackend::Reduction {
  DeviceReduction wanted;
  std::vector<Side> sources;
  Side out;
};

struct EmulatedBackend::Step {
  bool has_count = false;
  Side count;
  std::vector<Word> before;
  Side to;
  Side from;
  std::size_t size_bytes = 0;
  std::vector<Word> signals;
  std::vector<Word> after;
  Reduction reduction;
  bool has_signalled = false;  // in this run
};

Result<EmulatedBackend::Side> EmulatedBackend::check_device_side(const char* role, const void* address,
                                                                 std::size_t size_bytes) {
  const Block* const block = find_block(reinterpret_cast<std::uintptr_t>(address));
  if (block == nullptr) {
    return Status(StatusCode::kInvalidArgument,
                  base::format("the {} at {} is no emulated memory", role, address));
  }
  return check_side(role, address, block->allocation.place, size_bytes);
}

Result<EmulatedBackend::Word> EmulatedBackend::check_word(const StepWord& word) {
  Result<Side> side = check_device_side(kWord, word.word, sizeof *word.word);
  if (!side.ok()) return side.status();
  return Word{*side, word.offset};
}

Result<EmulatedBackend::Reduction> EmulatedBackend::check_reduction(const DeviceReduction& reduction) {
  Reduction checked{reduction, {}, {}};
  if (reduction.num_elements == 0) return checked;
  const std::size_t size_bytes = reduction.num_elements * size_of(reduction.type);
  for (const std::byte* const source : reduction.sources) {
    Result<Side> side = check_device_side(kStepSource, source, size_bytes);
    if (!side.ok()) return side.status();
    checked.sources.push_back(*side);
  }
  Result<Side> out = check_device_side(kStepTarget, reduction.out, size_bytes);
  if (!out.ok()) return out.status();
  checked.out = *out;
  return checked;
}

Status EmulatedBackend::queue_step(const DeviceStep& step, Place place, StreamHandle stream) {
  Step checked;
  const auto add_words = [this](const StepList<StepWord>& words, std::vector<Word>& to) {
    for (const StepWord& word : words) {
      Result<Word> found = check_word(word);
      if (!found.ok()) return found.status();
      to.push_back(*found);
    }
    return Status();
  };
  const auto add_waits = [&](const StepList<StepWord>& words, std::vector<Word>& to) {
    for (const StepWord& word : words) {
      Result<Side> own = check_side(kWord, word.word, place, sizeof *word.word);
      if (!own.ok()) return own.status();
    }
    return add_words(words, to);
  };
  if (step.count != nullptr) {
    Result<Side> count = check_side("count of steps", step.count, place, sizeof *step.count);
    if (!count.ok()) return count.status();
    checked.count = *count;
    checked.has_count = true;
  }
  if (step.size_bytes > 0) {
    Result<Side> to = check_device_side(kStepTarget, step.to, step.size_bytes);
    if (!to.ok()) return to.status();
    Result<Side> from = check_device_side(kStepSource, step.from, step.size_bytes);
    if (!from.ok()) return from.status();
    checked.to = *to;
    checked.from = *from;
    checked.size_bytes = step.size_bytes;
  }
  if (Status status = add_waits(step.before, checked.before); status.failed()) return status;
  if (Status status = add_words(step.signals, checked.signals); status.failed()) return status;
  if (Status status = add_waits(step.after, checked.after); status.failed()) return status;
  Result<Reduction> reduction = check_reduction(step.reduction);
  if (!reduction.ok()) return reduction.status();
  checked.reduction = std::move(*reduction);
  has_steps_ = true;
  return streams_.enqueue(stream, place.device,
                          [this, checked = std::move(checked)]() mutable { return run_step(checked); });
}

bool EmulatedBackend::abort_steps() {
  steps_are_aborted_ = true;
  return has_steps_;
}

Status EmulatedBackend::queue_reduction(const DeviceReduction& reduction, Place place, StreamHandle stream) {
  Result<Reduction> checked = check_reduction(reduction);
  if (!checked.ok()) return checked.status();
  return streams_.enqueue(stream, place.device, [this, polls = 0, checked = std::move(*checked)]() mutable {
    return ++polls < faults_.polls_per_copy ? Status::pending() : reduce_now(checked);
  });
}

Status EmulatedBackend::await_words(const std::vector<Word>& words, std::uint32_t number) {
  for (const Word& word : words) {
    Result<void*> found = reach(kWord, word.side, sizeof(std::uint32_t));
    if (!found.ok()) return found.status();
    const std::uint32_t value =
        std::atomic_ref(*static_cast<std::uint32_t*>(*found)).load(std::memory_order_acquire);
    if (!has_reached(value, number + word.offset)) return Status::pending();
  }
  return {};
}

Status EmulatedBackend::write_words(const std::vector<Word>& words, std::uint32_t number) {
  for (const Word& word : words) {
    Result<void*> found = reach(kWord, word.side, sizeof(std::uint32_t));
    if (!found.ok()) return found.status();
    std::atomic_ref(*static_cast<std::uint32_t*>(*found))
        .store(number + word.offset, std::memory_order_release);
  }
  return {};
}

Status EmulatedBackend::run_step(Step& step) {
  std::uint32_t* count = nullptr;
  if (step.has_count) {
    Result<void*> found = reach("count of steps", step.count, sizeof *count);
    if (!found.ok()) return found.status();
    count = static_cast<std::uint32_t*>(*found);
  }
  const std::uint32_t number = count == nullptr ? 0 : *count;
  if (!step.has_signalled) {
    Status reached = await_words(step.before, number);
    if (reached.is_pending() && steps_are_aborted_) return {};
    if (!reached.ok()) return reached;
    if (step.size_bytes > 0) {
      if (Status status = copy_now(step.to, step.from, step.size_bytes); status.failed()) return status;
    }
    if (Status status = write_words(step.signals, number); status.failed()) return status;
    step.has_signalled = true;
  }
  Status reached = await_words(step.after, number);
  if (reached.is_pending() && steps_are_aborted_) return {};
  if (!reached.ok()) return reached;
  if (Status status = reduce_now(step.reduction); status.failed()) return status;
  if (count != nullptr) *count = number + 1;
  return {};
}

Status EmulatedBackend::reduce_now(const Reduction& reduction) {
  if (reduction.wanted.num_elements == 0) return {};
  const std::size_t size_bytes = reduction.wanted.num_elements * size_of(reduction.wanted.type);
  DeviceReduction views = reduction.wanted;
  views.sources = {};
  for (const Side& source : reduction.sources) {
    Result<void*> view = reach(kStepSource, source, size_bytes);
    if (!view.ok()) return view.status();
    views.sources.add(static_cast<const std::byte*>(*view));
  }
  Result<void*> out = reach(kStepTarget, reduction.out, size_bytes);
  if (!out.ok()) return out.status();
  views.out = static_cast<std::byte*>(*out);
  reduce_on_cpu(views);
  return {};
}

}  // namespace weft::memory
