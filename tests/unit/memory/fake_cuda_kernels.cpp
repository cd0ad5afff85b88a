// Modules and kernels of the stand-in driver: it knows those of Weft (memory/kinds/cuda/step_kernels.h), and does what they do.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "memory/kinds/cuda/message_kernel.h"
#include "memory/kinds/cuda/step_kernels.h"
#include "memory/kinds/software/software_reduction.h"
#include "tests/unit/memory/fake_cuda_shared.h"

using namespace fake_driver;
using namespace weft::memory;

struct CudaFunctionTag {
  std::size_t module = 0;
  int device = 0;
  enum class Kernel {
    kStep,
    kShortStep,
    kShortSteps,
    kFewMessages,
    kMessages,
    kReduction
  } kernel = Kernel::kStep;
};
struct CudaModuleTag {
  CudaFunctionTag step;
  CudaFunctionTag short_step;
  CudaFunctionTag short_steps;
  CudaFunctionTag few_messages;
  CudaFunctionTag messages;
  CudaFunctionTag reduction;
};

namespace {

bool is_word(const std::uint32_t* word) {
  const auto address = reinterpret_cast<std::uintptr_t>(word);
  return address % sizeof *word == 0 && is_known(address, sizeof *word);
}

bool are_words(const StepList<StepWord>& words) {
  return std::ranges::all_of(words, [](const StepWord& word) { return is_word(word.word); });
}

bool is_valid(const std::byte* data, std::size_t size_bytes) {
  return size_bytes == 0 || is_known(reinterpret_cast<std::uintptr_t>(data), size_bytes);
}

bool is_valid(const DeviceReduction& reduction, std::size_t other_places_bytes = 0) {
  if (is_empty(reduction)) return true;
  const std::size_t size_bytes = reduction.num_elements * size_of(reduction.type);
  return is_valid(reduction.out, size_bytes) &&
         (reduction.also == nullptr || is_valid(reduction.also, size_bytes)) &&
         std::ranges::all_of(reduction.sources, [&](const std::byte* source) {
           return is_valid(source, other_places_bytes + size_bytes);
         });
}

// The data of one side.
bool is_valid(const DeviceStep& step, const std::byte* data, StepRing ring) {
  return step.size_bytes == 0 || is_valid(data, step.extent_of(step.size_bytes, ring));
}

bool is_valid(const DeviceStep& step) {
  return (step.count == nullptr || is_word(step.count)) && are_words(step.before) &&
         is_valid(step, step.to, kRingOfTargets) && is_valid(step, step.from, kRingOfSources) &&
         are_words(step.signals) && are_words(step.after) &&
         is_valid(step.reduction, step.extent_of(0, kRingOfContributions));
}

void reduce_now(const DeviceReduction& reduction) {
  reduce_on_cpu(reduction);
  if (reduction.also != nullptr)
    std::memcpy(reduction.also, reduction.out, reduction.num_elements * size_of(reduction.type));
}

// A step on a stream. Each call goes on as far as the words allow and returns whether the step is over.
class RunningStep {
 public:
  RunningStep(const DeviceStep& step, StepReport* report) : step_(step), report_(report) {}

  bool operator()() {
    if (!is_valid(step_)) return fake_cuda()->broken = kIllegalAddress, true;
    if (!has_begun_) begin();
    if (!has_signalled_) {
      if (!have_reached(step_.before)) return report_->is_aborted != 0;
      if (step_.size_bytes > 0)
        std::memcpy(place(step_.to, kRingOfTargets), place(step_.from, kRingOfSources), step_.size_bytes);
      for (const StepWord& signal : step_.signals) std::atomic_ref(*signal.word).store(signal.offset);
      has_signalled_ = true;
    }
    if (!have_reached(step_.after)) return report_->is_aborted != 0;
    if (!is_empty(step_.reduction)) reduce_now(reduction_of_this_step());
    if (step_.count != nullptr) *step_.count = number_ + 1;
    return true;
  }

 private:
  template <class Byte>
  Byte* place(Byte* data, StepRing ring) const {
    return data + step_.place_of(number_, ring);
  }
  DeviceReduction reduction_of_this_step() const {
    DeviceReduction reduction = step_.reduction;
    reduction.sources = {};
    for (const std::byte* const source : step_.reduction.sources)
      reduction.sources.add(place(source, kRingOfContributions));
    return reduction;
  }
  // From then on the words have their values as offsets.
  void begin() {
    has_begun_ = true;
    number_ = step_.count == nullptr ? 0 : *step_.count;
    for (StepList<StepWord>* const words : {&step_.before, &step_.signals, &step_.after}) {
      for (std::uint32_t i = 0; i < words->size; ++i) {
        StepWord& word = words->items[i];
        word.offset += number_;
      }
    }
  }
  static bool have_reached(const StepList<StepWord>& words) {
    return std::ranges::all_of(words, [](const StepWord& word) {
      return has_reached(std::atomic_ref(*word.word).load(), word.offset);
    });
  }

  DeviceStep step_;
  StepReport* report_;
  std::uint32_t number_ = 0;
  bool has_begun_ = false;
  bool has_signalled_ = false;
};

template <class T>
void lengthen(const ShortStep::List<T>& from, StepList<T>& to) {
  for (const T& item : from) to.add(item);
}

DeviceStep lengthened(const ShortStep& step) {
  DeviceStep result;
  result.count = step.count;
  lengthen(step.before, result.before);
  result.to = step.to;
  result.from = step.from;
  result.size_bytes = step.size_bytes;
  lengthen(step.signals, result.signals);
  lengthen(step.after, result.after);
  result.rings = step.rings;
  result.num_places = step.num_places;
  result.place_bytes = step.place_bytes;
  return result;
}

template <class T>
const T& parameter(void** parameters, std::size_t number) {
  return *static_cast<const T*>(parameters[number]);
}

bool is_report(const StepReport* report) {
  return is_known(reinterpret_cast<std::uintptr_t>(report), sizeof *report);
}

int launch_short_steps(CudaStreamTag* stream, unsigned blocks, unsigned threads, void** parameters) {
  const auto& all = parameter<std::array<ShortStep, kMostShortSteps>>(parameters, 0);
  auto* const report = parameter<StepReport*>(parameters, 1);
  const auto num_steps = parameter<std::uint64_t>(parameters, 2);
  if (blocks != 1 || num_steps > kMostShortSteps || !is_report(report)) return kInvalidValue;
  std::vector<DeviceStep> steps;
  unsigned wanted = 0;
  for (std::size_t i = 0; i < num_steps; ++i) {
    steps.push_back(lengthened(all[i]));
    wanted = std::max(wanted, step_threads(steps.back()));
    if (!is_valid(steps.back())) return kInvalidValue;
  }
  if (threads != wanted) return kInvalidValue;
  for (const DeviceStep& step : steps) stream->queue.emplace_back(RunningStep(step, report));
  return 0;
}

// An end of a message on a stream, as a RunningStep.
class RunningEnd {
 public:
  RunningEnd(const MessageEnd& end, StepReport* report) : end_(end), report_(report) {}

  void begin() {
    if (std::exchange(has_begun_, true)) return;
    number_ = end_.offset + (end_.count == nullptr ? 0 : end_.count->number);
    go_to_place(end_.place_of(number_));
    const bool is_receive = !is_send(end_.side) && !is_take(end_.side);
    if (is_receive && end_.signals != nullptr)
      std::atomic_ref(*end_.signals).store(end_.freed == nullptr ? 0 : *end_.freed);
  }
  bool operator()() {
    if (is_over_) return true;
    is_over_ = may_go_on();
    if (!is_over_) return report_->is_aborted != 0 || fake_cuda()->broken != 0;
    if (is_await(end_.side)) return true;
    if (is_send(end_.side) && end_.label != 0) write_label();
    move();
    const std::uint32_t next = number_ + 1;
    if (end_.side == MessageSide::kSend && end_.signals != nullptr)
      for (std::uint32_t part = 0; part < end_.parts; ++part) std::atomic_ref(end_.signals[part]).store(next);
    if (is_take(end_.side)) std::atomic_ref(*end_.signals).store(next);
    if (end_.count != nullptr) end_.count->number = number_ + end_.raise;
    return true;
  }

 private:
  struct Packet {
    std::uint32_t data;
    std::uint32_t number;
  };
  std::size_t num_packets() const { return packet_bytes(end_.size_bytes) / sizeof(Packet); }
  std::size_t data_bytes(std::size_t packet) const {
    return std::min(sizeof(Packet::data),
                    end_.size_bytes - std::min(packet * sizeof(Packet::data), end_.size_bytes));
  }

  void go_to_place(std::size_t place) {
    const std::size_t words_of_parts = place * kMaxMessageParts;
    const std::size_t bytes = place * end_.place_bytes;
    if (place == 0) return;
    end_.labels += bytes;
    if (is_take(end_.side)) {
      end_.from += bytes;
      end_.waits += words_of_parts;
      end_.signals += place;
    } else {
      end_.to += bytes;
      end_.waits += place;
      end_.signals += words_of_parts;
    }
  }
  bool may_go_on() const {
    if (is_take(end_.side) && end_.label != 0 && !has_label()) return false;
    if (end_.side == MessageSide::kAwaitMessage) return true;
    if (!is_send(end_.side) && has_packets(end_.side)) {
      const auto* const packets = reinterpret_cast<const Packet*>(end_.from);
      return std::all_of(packets, packets + num_packets(),
                         [&](const Packet& packet) { return packet.number == number_ + 1; });
    }
    if (end_.waits == nullptr) return true;
    if (is_send(end_.side)) return has_reached(*end_.waits, number_ + 1 - end_.num_places);
    return std::all_of(end_.waits, end_.waits + end_.parts,
                       [&](std::uint32_t word) { return has_reached(word, number_ + 1); });
  }
  // A label that is wrong breaks the device.
  bool has_label() const {
    std::array<Packet, 2> packets;
    std::memcpy(&packets, end_.labels, sizeof packets);
    if (packets[0].number != number_ + 1 || packets[1].number != number_ + 1) return false;
    const std::uint64_t found = std::uint64_t{packets[1].data} << 32 | packets[0].data;
    if (found == end_.label) return true;
    report_->found_label = found;
    report_->expected_label = end_.label;
    fake_cuda()->broken = kLaunchFailed;
    return false;
  }
  void write_label() const {
    const std::uint32_t next = number_ + 1;
    const std::array<Packet, 2> packets{{{static_cast<std::uint32_t>(end_.label), next},
                                         {static_cast<std::uint32_t>(end_.label >> 32), next}}};
    std::memcpy(end_.labels, &packets, sizeof packets);
  }
  void move() const {
    if (end_.side == MessageSide::kReceive || end_.size_bytes == 0) return;
    if (!has_packets(end_.side)) {
      std::memmove(end_.to, end_.from, end_.size_bytes);
    } else if (is_send(end_.side)) {
      pack();
    } else {
      unpack();
    }
  }
  void pack() const {
    for (std::size_t i = 0; i < num_packets(); ++i) {
      Packet packet{0, number_ + 1};
      std::memcpy(&packet.data, end_.from + i * sizeof packet.data, data_bytes(i));
      std::memcpy(end_.to + i * sizeof packet, &packet, sizeof packet);
    }
  }
  void unpack() const {
    for (std::size_t i = 0; i < num_packets(); ++i)
      std::memcpy(end_.to + i * sizeof(Packet::data), end_.from + i * sizeof(Packet), data_bytes(i));
  }

  MessageEnd end_;
  StepReport* report_;
  std::uint32_t number_ = 0;
  bool has_begun_ = false;
  bool is_over_ = false;
};

bool is_valid(const MessageEnd& end) {
  const auto are_words_or_null = [](const std::uint32_t* words, std::size_t count) {
    return words == nullptr || (is_word(words) && is_word(words + count - 1));
  };
  const bool takes = is_take(end.side);
  const bool packs = end.side == MessageSide::kSendPackets;
  const bool unpacks = has_packets(end.side) && !packs;
  const bool has_data = end.size_bytes > 0 && !is_await(end.side) && end.side != MessageSide::kReceive;
  const std::size_t size = end.size_bytes;
  const std::size_t others = end.num_places - 1;
  const auto words = [&](bool are_of_parts) {
    return are_of_parts ? others * kMaxMessageParts + end.parts : others + 1;
  };
  const auto is_valid_ring = [&](const std::byte* data, bool is_packed, bool is_ring) {
    return is_valid(data, (is_ring ? others * end.place_bytes : 0) + (is_packed ? packet_bytes(size) : size));
  };
  const bool has_label = end.label != 0;
  return end.parts >= 1 && end.parts <= kMaxMessageParts && (!has_packets(end.side) || end.parts == 1) &&
         (end.num_places & others) == 0 && (!takes || !has_packets(end.side) || end.signals != nullptr) &&
         (end.count == nullptr || (is_word(&end.count->number) && is_word(&end.count->begun))) &&
         are_words_or_null(end.waits, words(!is_send(end.side) && !unpacks)) &&
         are_words_or_null(end.signals, words(end.side == MessageSide::kSend)) &&
         are_words_or_null(end.freed, 1) && are_words_or_null(end.taken, words(false)) &&
         (!has_label || is_valid(end.labels, others * end.place_bytes + kPacketPairBytes)) &&
         (!has_packets(end.side) || !has_label || size <= kMostLabelledPacketBytes) &&
         (!has_data || (is_valid_ring(end.to, packs, !takes) && is_valid_ring(end.from, unpacks, takes)));
}

int launch_messages(const CudaFunctionTag& function, CudaStreamTag* stream, const MessageGrid& grid,
                    void** parameters) {
  const std::size_t most =
      function.kernel == CudaFunctionTag::Kernel::kMessages ? kMaxMessageEnds : kFewMessageEnds;
  const auto* const all = static_cast<const MessageEnd*>(parameters[0]);
  auto* const report = parameter<StepReport*>(parameters, 1);
  if (grid.ends < 1 || grid.ends > most || !is_report(report)) return kInvalidValue;
  const std::span<const MessageEnd> ends(all, grid.ends);
  const MessageGrid wanted = message_grid(ends);
  if (grid.blocks != wanted.blocks || grid.threads != wanted.threads ||
      !std::ranges::all_of(ends, [](const MessageEnd& end) { return is_valid(end); }))
    return kInvalidValue;
  std::vector<RunningEnd> running;
  for (const MessageEnd& end : ends) running.emplace_back(end, report);
  stream->queue.emplace_back([running]() mutable {
    bool all_over = true;
    for (RunningEnd& end : running) end.begin();
    for (RunningEnd& end : running) all_over = end() && all_over;
    return all_over;
  });
  return 0;
}

}  // namespace

extern "C" {

int cuModuleLoadData(CudaModuleTag** module, const void* image) {
  const int result = enter_uncaptured("cuModuleLoadData");
  if (result != 0) return result;
  for (std::size_t i = 0; i < kNumStepModules; ++i) {
    if (step_module_text(i) != static_cast<const char*>(image)) continue;
    const auto made = std::make_shared<CudaModuleTag>();
    made->step = {i, current()->device, CudaFunctionTag::Kernel::kStep};
    made->short_step = {i, current()->device, CudaFunctionTag::Kernel::kShortStep};
    made->short_steps = {i, current()->device, CudaFunctionTag::Kernel::kShortSteps};
    made->few_messages = {i, current()->device, CudaFunctionTag::Kernel::kFewMessages};
    made->messages = {i, current()->device, CudaFunctionTag::Kernel::kMessages};
    made->reduction = {i, current()->device, CudaFunctionTag::Kernel::kReduction};
    fake_cuda()->modules.push_back(made);
    *module = made.get();
    return 0;
  }
  return kInvalidPtx;
}

int cuModuleGetFunction(CudaFunctionTag** function, CudaModuleTag* module, const char* name) {
  const int result = enter_context("cuModuleGetFunction", module->step.device);
  if (result != 0) return result;
  const bool has_reduction = module->step.module > 0;
  *function = std::strcmp(name, kStepKernel) == 0                            ? &module->step
              : std::strcmp(name, kShortStepKernel) == 0 && !has_reduction   ? &module->short_step
              : std::strcmp(name, kShortStepsKernel) == 0 && !has_reduction  ? &module->short_steps
              : std::strcmp(name, kFewMessagesKernel) == 0 && !has_reduction ? &module->few_messages
              : std::strcmp(name, kMessagesKernel) == 0 && !has_reduction    ? &module->messages
              : std::strcmp(name, kReductionKernel) == 0 && has_reduction    ? &module->reduction
                                                                             : nullptr;
  return *function == nullptr ? kNotFound : 0;
}

int cuLaunchKernel(CudaFunctionTag* function, unsigned blocks, unsigned blocks_y, unsigned blocks_z,
                   unsigned threads, unsigned threads_y, unsigned threads_z, unsigned shared_bytes,
                   CudaStreamTag* stream, void** parameters, void** extra) {
  stream = resolve(stream);
  const int result = enter_context("cuLaunchKernel", stream->device);
  if (result != 0) return result;
  if (function->device != stream->device) return kInvalidHandle;
  if (blocks_z * threads_y * threads_z != 1 || shared_bytes != 0 || extra != nullptr) return kInvalidValue;
  if (function->kernel == CudaFunctionTag::Kernel::kMessages ||
      function->kernel == CudaFunctionTag::Kernel::kFewMessages)
    return launch_messages(*function, stream, {blocks, blocks_y, threads}, parameters);
  if (blocks_y != 1) return kInvalidValue;
  const auto does = [&](const DeviceReduction& reduction) {
    return is_empty(reduction) || module_of(reduction) == function->module;
  };
  if (function->kernel == CudaFunctionTag::Kernel::kReduction) {
    const auto& reduction = parameter<DeviceReduction>(parameters, 0);
    if (threads != kReductionThreads || blocks != reduction_blocks(reduction) ||
        parameter<std::uint64_t>(parameters, 1) != num_vectors(reduction) || !is_valid(reduction) ||
        !does(reduction)) {
      return kInvalidValue;
    }
    stream->queue.emplace_back([reduction] {
      if (!is_valid(reduction)) return fake_cuda()->broken = kIllegalAddress, true;
      if (!is_empty(reduction)) reduce_now(reduction);
      return true;
    });
    return 0;
  }
  if (function->kernel == CudaFunctionTag::Kernel::kShortSteps)
    return launch_short_steps(stream, blocks, threads, parameters);
  const DeviceStep step = function->kernel == CudaFunctionTag::Kernel::kShortStep
                              ? lengthened(parameter<ShortStep>(parameters, 0))
                              : parameter<DeviceStep>(parameters, 0);
  auto* const report = parameter<StepReport*>(parameters, 1);
  if (blocks != 1 || threads != step_threads(step) || !is_valid(step) || !is_report(report) ||
      parameter<std::uint64_t>(parameters, 2) != num_vectors(step) || !does(step.reduction)) {
    return kInvalidValue;
  }
  stream->queue.emplace_back(RunningStep(step, report));
  return 0;
}

}  // extern "C"
