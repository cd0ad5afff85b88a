// Steps and reductions of emulated devices, see device_step.h. A step that waits stays the stream's work until its words have been
// reached; other streams go on meanwhile, as on a device.
#include <atomic>
#include <optional>
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
constexpr const char* kCount = "count of steps";
constexpr const char* kStepTarget = "destination of a step";
constexpr const char* kStepSource = "source of a step";

Status aborted() {
  return Status(StatusCode::kClosed, "the end of the job has ended a step that waited for a signal");
}

}  // namespace

struct EmulatedBackend::Word {
  Side side;
  std::uint32_t offset = 0;
  std::uint32_t value = 0;  // of the step that runs
};

struct EmulatedBackend::Reduction {
  DeviceReduction wanted;
  std::vector<Side> sources;
  Side out;
  Side also;
};

struct EmulatedBackend::Step {
  DeviceStep wanted;
  std::optional<Side> count;
  std::vector<Word> before;
  Side to;
  Side from;
  std::vector<Word> signals;
  std::vector<Word> after;
  Reduction reduction;
  bool has_begun = false;
  std::uint32_t number = 0;  // of the step that runs
  bool has_signalled = false;
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

Result<EmulatedBackend::Reduction> EmulatedBackend::check_reduction(const DeviceReduction& reduction,
                                                                    std::size_t other_places_bytes) {
  Reduction checked{reduction, {}, {}, {}};
  if (reduction.num_elements == 0) return checked;
  const std::size_t size_bytes = reduction.num_elements * size_of(reduction.type);
  for (const std::byte* const source : reduction.sources) {
    Result<Side> side = check_device_side(kStepSource, source, other_places_bytes + size_bytes);
    if (!side.ok()) return side.status();
    checked.sources.push_back(*side);
  }
  Result<Side> out = check_device_side(kStepTarget, reduction.out, size_bytes);
  if (!out.ok()) return out.status();
  checked.out = *out;
  if (reduction.also == nullptr) return checked;
  Result<Side> also = check_device_side(kStepTarget, reduction.also, size_bytes);
  if (!also.ok()) return also.status();
  checked.also = *also;
  return checked;
}

Status EmulatedBackend::queue_step(const DeviceStep& step, Place place, StreamHandle stream) {
  Step checked;
  checked.wanted = step;
  const auto add_words = [&](const StepList<StepWord>& words, std::vector<Word>& to) {
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
    Result<Side> count = check_side(kCount, step.count, place, sizeof *step.count);
    if (!count.ok()) return count.status();
    checked.count = *count;
  }
  if (step.size_bytes > 0) {
    Result<Side> to =
        check_device_side(kStepTarget, step.to, step.extent_of(step.size_bytes, kRingOfTargets));
    if (!to.ok()) return to.status();
    checked.to = *to;
  }
  if (step.size_bytes > 0) {
    Result<Side> from =
        check_device_side(kStepSource, step.from, step.extent_of(step.size_bytes, kRingOfSources));
    if (!from.ok()) return from.status();
    checked.from = *from;
  }
  if (Status status = add_waits(step.before, checked.before); status.failed()) return status;
  if (Status status = add_words(step.signals, checked.signals); status.failed()) return status;
  if (Status status = add_waits(step.after, checked.after); status.failed()) return status;
  Result<Reduction> reduction = check_reduction(step.reduction, step.extent_of(0, kRingOfContributions));
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

KindBackend::Activity EmulatedBackend::activity() {
  const SoftwareStreams::Counts counts = streams_.counts();
  const auto before = std::exchange(seen_, {counts, num_step_waits_});
  const std::uint64_t pending = counts.pending - before.counts.pending;
  if (counts.done != before.counts.done || pending != num_step_waits_ - before.num_step_waits)
    return Activity::kUnknown;
  return pending > 0 ? Activity::kOnlyWaits : Activity::kIdle;
}

Status EmulatedBackend::queue_reduction(const DeviceReduction& reduction, Place place, StreamHandle stream) {
  Result<Reduction> checked = check_reduction(reduction, 0);
  if (!checked.ok()) return checked.status();
  return streams_.enqueue(stream, place.device, [this, polls = 0, checked = std::move(*checked)]() mutable {
    return ++polls < faults_.polls_per_copy ? Status::pending() : reduce_now(checked);
  });
}

Status EmulatedBackend::await_words(const std::vector<Word>& words) {
  for (const Word& word : words) {
    Result<void*> found = reach(kWord, word.side, sizeof(std::uint32_t));
    if (!found.ok()) return found.status();
    const std::uint32_t value =
        std::atomic_ref(*static_cast<std::uint32_t*>(*found)).load(std::memory_order_acquire);
    if (has_reached(value, word.value)) continue;
    if (steps_are_aborted_) return aborted();
    ++num_step_waits_;
    return Status::pending();
  }
  return {};
}

Status EmulatedBackend::write_words(const std::vector<Word>& words) {
  for (const Word& word : words) {
    Result<void*> found = reach(kWord, word.side, sizeof(std::uint32_t));
    if (!found.ok()) return found.status();
    std::atomic_ref(*static_cast<std::uint32_t*>(*found)).store(word.value, std::memory_order_release);
  }
  return {};
}

Status EmulatedBackend::run_step(Step& step) {
  if (!step.has_begun) {
    if (step.count.has_value()) {
      Result<void*> found = reach(kCount, *step.count, sizeof step.number);
      if (!found.ok()) return found.status();
      step.number = *static_cast<std::uint32_t*>(*found);
    }
    for (std::vector<Word>* const words : {&step.before, &step.signals, &step.after}) {
      for (Word& word : *words) word.value = step.number + word.offset;
    }
    step.has_begun = true;
  }
  const auto place = [&step](Side side, StepRing ring) {
    side.address += step.wanted.place_of(step.number, ring);
    return side;
  };
  if (!step.has_signalled) {
    if (Status status = await_words(step.before); !status.ok()) return status;
    if (step.wanted.size_bytes > 0) {
      Status status =
          copy_now(place(step.to, kRingOfTargets), place(step.from, kRingOfSources), step.wanted.size_bytes);
      if (status.failed()) return status;
    }
    if (Status status = write_words(step.signals); status.failed()) return status;
    step.has_signalled = true;
  }
  if (Status status = await_words(step.after); !status.ok()) return status;
  Reduction reduction = step.reduction;
  for (Side& source : reduction.sources) source = place(source, kRingOfContributions);
  if (Status status = reduce_now(reduction); status.failed()) return status;
  if (!step.count.has_value()) return {};
  Result<void*> found = reach(kCount, *step.count, sizeof step.number);
  if (!found.ok()) return found.status();
  *static_cast<std::uint32_t*>(*found) = step.number + 1;
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
  return reduction.wanted.also == nullptr ? Status() : copy_now(reduction.also, reduction.out, size_bytes);
}

}  // namespace weft::memory
