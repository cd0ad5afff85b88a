#include "weft/rma/global_memory.h"

#include <cstring>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "memory/memory.h"
#include "rma/atomic/remote_atomics.h"
#include "rma/copy/copies.h"
#include "rma/copy/remote_hooks.h"
#include "rma/flag_wait.h"
#include "rma/segment/locked_files.h"
#include "rma/segment/segments.h"

namespace weft::rma {

namespace {

enum MemoryHandler : runtime::HandlerId {
  kSegmentHandler,
  kQuestionHandler,
  kRemoteHookHandler,
  kCopyHandler,
  kAtomicHandler
};
static_assert(kAtomicHandler + 1 == GlobalMemory::kNumHandlers);

// Declared in this order, so that the use ends while the file is mapped. It may outlive the job, and then the segment is gone.
struct Hold {
  Hold(SharedPart part_in, std::shared_ptr<SegmentOwner*> owner_in, SegmentUse use_in)
      : part(std::move(part_in)), owner(std::move(owner_in)), use(std::move(use_in)) {}
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() {
    if (*owner == nullptr) use.forget();
  }
  SharedPart part;
  std::shared_ptr<SegmentOwner*> owner;
  SegmentUse use;
};

// Destroyed in the other order: the pages are unlocked first.
struct LockedHold {
  LockedHold(std::shared_ptr<void> held_in, std::shared_ptr<void> lock_in)
      : held(std::move(held_in)), lock(std::move(lock_in)) {}
  std::shared_ptr<void> held;
  std::shared_ptr<void> lock;
};

[[noreturn]] void refuse_kernels(const GlobalAddress& address, memory::Place device, std::string_view why) {
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      base::format("kernels of {} cannot use {}: {}", memory::place_name(device), describe(address), why));
}

// The address of a buffer without bytes need not be in memory, as place_of() requires.
memory::Buffer located(memory::Memory& memory, void* data, std::size_t size_bytes) {
  const memory::Place place = size_bytes == 0 ? memory.allocation_of(data).place : memory.place_of(data);
  return {data, size_bytes, place, nullptr};
}

// Frees the state of an operation that was not started.
void abandon_state(runtime::OperationState* state) {
  state->complete({}, 0);
  state->drop_handle();
}

}  // namespace

GlobalMemory::GlobalMemory(runtime::Runtime& runtime, runtime::HandlerId first_handler)
    : runtime_(runtime),
      segments_(std::make_unique<Segments>(
          runtime,
          SegmentHandlers{.others = static_cast<runtime::HandlerId>(first_handler + kSegmentHandler),
                          .question = static_cast<runtime::HandlerId>(first_handler + kQuestionHandler)},
          cache_)),
      locked_files_(std::make_unique<LockedFiles>(segments_->owner())),
      hooks_(std::make_unique<RemoteHooks>(runtime, first_handler + kRemoteHookHandler)),
      copies_(std::make_unique<Copies>(runtime, first_handler + kCopyHandler, *segments_, *hooks_)),
      atomics_(std::make_unique<RemoteAtomics>(runtime, first_handler + kAtomicHandler, *segments_)) {
  runtime.offer(*this);
}

GlobalMemory::~GlobalMemory() = default;

void GlobalMemory::close() {
  segments_->close();
  copies_->close();
  atomics_->close();
  for (const std::weak_ptr<EndListener>& one : end_listeners_)
    if (const std::shared_ptr<EndListener> listener = one.lock()) listener->job_has_ended();
}

void GlobalMemory::tell_of_end(std::weak_ptr<EndListener> listener) {
  std::erase_if(end_listeners_, [](const auto& one) { return one.expired(); });
  end_listeners_.push_back(std::move(listener));
}

void GlobalMemory::set_mapping(bool is_on) { segments_->set_mapping(is_on); }

void GlobalMemory::set_has_other_hosts(bool has_other_hosts) {
  segments_->set_has_other_hosts(has_other_hosts);
}

std::size_t GlobalMemory::num_segments() const { return segments_->size(); }

void GlobalMemory::refuse_count(std::size_t count, std::size_t element_bytes) {
  throw base::Error(
      base::StatusCode::kOutOfMemory,
      base::format("{} elements of {} bytes are more than an address space has", count, element_bytes));
}

// --- Segments

Segment GlobalMemory::make_segment(std::size_t size_bytes, memory::Place place) {
  return segments_->make(size_bytes, place);
}

Segment GlobalMemory::make_segment_at(void* address, std::size_t size_bytes) {
  return segments_->make_at(address, size_bytes);
}

void* GlobalMemory::mapped_address(const GlobalAddress& address, std::size_t size_bytes) {
  KnownSegment* const segment = segments_->find(address);
  if (segment == nullptr || !segment->is_reached()) return nullptr;
  segments_->expect_inside(*segment, address, size_bytes);
  return segment->part(address, size_bytes).data;
}

GlobalMemory::HeldMemory GlobalMemory::hold(const GlobalAddress& address, std::size_t size_bytes) {
  KnownSegment* const segment = segments_->find(address);
  if (segment == nullptr || !segment->is_reached()) return {};
  segments_->expect_inside(*segment, address, size_bytes);
  return {segment->part(address, size_bytes),
          std::make_shared<Hold>(segment->shared, segments_->owner(), segments_->use(*segment))};
}

GlobalMemory::HeldMemory GlobalMemory::hold_for_kernels(const GlobalAddress& address, std::size_t size_bytes,
                                                        memory::Place device) {
  memory::KindBackend* const kind = runtime_.memory().backend(device.kind);
  if (device.is_host() || kind == nullptr) refuse_kernels(address, device, "there is no such device");
  HeldMemory held = hold(address, size_bytes);
  if (held.keeper == nullptr) {
    refuse_kernels(address, device,
                   segments_->find(address) == nullptr
                       ? "this PE has not learned its segment: await learn() before"
                       : "the device does not reach the segment; use copy(), and messages in place of flags");
  }
  if (held.memory.place == device) return held;
  if (!held.memory.place.is_host()) {
    refuse_kernels(
        address, device,
        base::format("this PE reaches it on {}: name that device", memory::place_name(held.memory.place)));
  }
  base::Result<std::shared_ptr<void>> lock = locked_files_->lock(*segments_->find(address), *kind, device);
  if (!lock.ok()) refuse_kernels(address, device, lock.status().message());
  return {held.memory, std::make_shared<LockedHold>(std::move(held.keeper), std::move(*lock))};
}

Done GlobalMemory::learn(const GlobalAddress& address) {
  if (segments_->find(address) != nullptr) return Done(runtime_);
  auto* const state = runtime::OperationState::create(runtime_);
  copies_->learn(address, state);
  return Done(runtime_, state);
}

// --- Values

Done GlobalMemory::put_bytes(const void* value, std::size_t size_bytes, const GlobalAddress& to) {
  if (KnownSegment* const segment = copies_->direct_segment(to, size_bytes); segment != nullptr) {
    auto* const state = copies_->make_state(size_bytes);
    std::memcpy(state->extra(), value, size_bytes);
    copies_->start_put(*segment, to, {state->extra(), size_bytes}, state);
    return Done(runtime_, state);
  }
  const memory::Buffer source{const_cast<void*>(value), size_bytes, {}, nullptr};
  Copy copy{{Run{0, 0, size_bytes}}, source, to, {}};
  if (copies_->copy_now(copy)) return Done(runtime_);
  auto* const state = copies_->make_state(size_bytes);
  std::memcpy(state->extra(), value, size_bytes);
  copy.from.local.data = state->extra();
  copies_->start(std::move(copy), state);
  return Done(runtime_, state);
}

runtime::OperationState* GlobalMemory::get_bytes(std::size_t size_bytes, const GlobalAddress& from) {
  KnownSegment* const segment = copies_->direct_segment(from, size_bytes);
  auto* const state = copies_->make_state(size_bytes);
  const memory::Buffer target{state->extra(), size_bytes, {}, nullptr};
  if (segment != nullptr) {
    copies_->start_get(*segment, from, target, state);
    return state;
  }
  try {
    Copy copy{{Run{0, 0, size_bytes}}, from, target, {}};
    if (copies_->copy_now(copy)) {
      state->complete({}, size_bytes);
    } else {
      copies_->start(std::move(copy), state);
    }
  } catch (...) {
    abandon_state(state);
    throw;
  }
  return state;
}

// --- Copies

Done GlobalMemory::start_copy(std::vector<Run> runs, const CopyEnd& from, const CopyEnd& to,
                              Completions completions) {
  Copy copy{std::move(runs), from, to, std::move(completions)};
  const bool has_stream =
      copy.completions.source_stream != nullptr || copy.completions.target_stream != nullptr;
  const bool is_over = copy.completions.or_error([&] {
    if (has_stream || !copies_->copy_now(copy)) return false;
    copies_->finish(copy);
    return true;
  });
  if (is_over) return Done(runtime_);
  auto* const state = copies_->make_state();
  copies_->start(std::move(copy), state);
  return Done(runtime_, state);
}

void GlobalMemory::expect_apart(std::span<const CopyPart> parts) const { copies_->expect_apart(parts); }

void GlobalMemory::expect_strided_inside(const GlobalAddress& address, Strides strides, Extents extents,
                                         std::size_t element_bytes) const {
  if (strides.size() != extents.size()) return;  // runs_of() refuses it
  const Reach reach = reach_of(strides, extents, element_bytes);
  if (reach.size_bytes == 0) return;
  if (const KnownSegment* const segment = segments_->find(address); segment != nullptr)
    segments_->expect_inside(*segment, address.moved_by(reach.first_bytes), reach.size_bytes);
}

Done GlobalMemory::copy_bytes(const GlobalAddress& from, const GlobalAddress& to, std::size_t size_bytes,
                              Completions completions) {
  if (completions.is_empty()) {
    std::byte* const source = cache_.find(from, size_bytes);
    return copy_elsewhere(from, to, size_bytes, source != nullptr ? source : cache_.find(to, size_bytes));
  }
  return start_copy({Run{0, 0, size_bytes}}, from, to, std::move(completions));
}

Done GlobalMemory::copy_elsewhere(const GlobalAddress& from, const GlobalAddress& to, std::size_t size_bytes,
                                  std::byte* near) {
  auto* const state = copies_->start_between(from, to, size_bytes, near);
  if (state == nullptr) [[unlikely]]
    return start_plain_copy(from, to, size_bytes);
  return Done(runtime_, state);
}

// Out of line, so that copy_elsewhere() has a small frame.
Done GlobalMemory::start_plain_copy(const GlobalAddress& from, const GlobalAddress& to,
                                    std::size_t size_bytes) {
  return start_copy({Run{0, 0, size_bytes}}, from, to, {});
}

template <class StreamWork>
Done GlobalMemory::enqueue(const StreamWork& work, memory::Place device, memory::StreamHandle stream) {
  auto* const state = runtime::OperationState::create(runtime_);
  try {
    copies_->enqueue(work, device, stream, state);
  } catch (...) {
    abandon_state(state);
    throw;
  }
  return Done(runtime_, state);
}

Done GlobalMemory::enqueue_copy(const GlobalAddress& from, const GlobalAddress& to, std::size_t size_bytes,
                                memory::Place device, memory::StreamHandle stream) {
  return enqueue(Copy{{Run{0, 0, size_bytes}}, from, to, {}}, device, stream);
}

Done GlobalMemory::signal_on_stream(GlobalPtr<std::uint32_t> to, std::uint32_t value, memory::Place device,
                                    memory::StreamHandle stream) {
  return enqueue(StreamWord{to.address(), value, false}, device, stream);
}

Done GlobalMemory::wait_on_stream(GlobalPtr<std::uint32_t> at, std::uint32_t value, memory::Place device,
                                  memory::StreamHandle stream) {
  return enqueue(StreamWord{at.address(), value, true}, device, stream);
}

Done GlobalMemory::wait_for(GlobalPtr<std::uint32_t> at, std::uint32_t value) {
  return Done(runtime_, start_flag_wait(runtime_, *segments_, at.address(), value));
}

std::byte* GlobalMemory::mapped_to_copy(const void* local, const GlobalAddress& address,
                                        std::size_t size_bytes) {
  std::byte* const mapped = size_bytes <= kAtOnceBytes ? cache_.find(address, size_bytes) : nullptr;
  if (mapped == nullptr || (size_bytes > 0 && !runtime_.memory().place_of(local).is_host())) return nullptr;
  // An overlap is refused where all copies are checked.
  const auto distance = reinterpret_cast<std::uintptr_t>(mapped) - reinterpret_cast<std::uintptr_t>(local);
  return distance >= size_bytes && std::uintptr_t{0} - distance >= size_bytes ? mapped : nullptr;
}

Done GlobalMemory::put_memory(const memory::ConstBuffer& from, const GlobalAddress& to,
                              Completions completions) {
  if (from.stream == nullptr && completions.is_empty()) {
    if (std::byte* const target = mapped_to_copy(from.data, to, from.size_bytes); target != nullptr) {
      std::memmove(target, from.data, from.size_bytes);
      return Done(runtime_);
    }
  }
  const memory::Buffer source = located(runtime_.memory(), const_cast<void*>(from.data), from.size_bytes);
  if (from.stream != nullptr) completions.source_stream = from.stream;
  return start_copy({Run{0, 0, from.size_bytes}}, source, to, std::move(completions));
}

Done GlobalMemory::get_memory(const GlobalAddress& from, const memory::Buffer& to, Completions completions) {
  if (to.stream == nullptr && completions.is_empty()) {
    if (std::byte* const source = mapped_to_copy(to.data, from, to.size_bytes); source != nullptr) {
      std::memmove(to.data, source, to.size_bytes);
      return Done(runtime_);
    }
  }
  const memory::Buffer target = located(runtime_.memory(), to.data, to.size_bytes);
  if (to.stream != nullptr) completions.target_stream = to.stream;
  return start_copy({Run{0, 0, to.size_bytes}}, from, target, std::move(completions));
}

Done GlobalMemory::copy_strided_bytes(const GlobalAddress& from, Strides from_strides,
                                      const GlobalAddress& to, Strides to_strides, Extents extents,
                                      std::size_t element_bytes, Completions completions) {
  std::vector<Run> runs = completions.or_error([&] {
    expect_strided_inside(from, from_strides, extents, element_bytes);
    expect_strided_inside(to, to_strides, extents, element_bytes);
    return runs_of(from_strides, to_strides, extents, element_bytes);
  });
  return start_copy(std::move(runs), from, to, std::move(completions));
}

Done GlobalMemory::copy_indexed_bytes(const GlobalAddress& from, std::span<const std::ptrdiff_t> from_index,
                                      const GlobalAddress& to, std::span<const std::ptrdiff_t> to_index,
                                      std::size_t element_bytes, std::size_t block, Completions completions) {
  std::vector<Run> runs =
      completions.or_error([&] { return runs_of_indices(from_index, to_index, element_bytes, block); });
  return start_copy(std::move(runs), from, to, std::move(completions));
}

void GlobalMemory::set_remote_hook(RemoteHook hook, void* context) { hooks_->set(hook, context); }

// --- Atomic operations

runtime::OperationState* GlobalMemory::atomic_elsewhere(AtomicKind kind, AtomicType type,
                                                        const GlobalAddress& address, std::uint64_t operand,
                                                        std::uint64_t compare) {
  auto* const state = runtime::OperationState::create(runtime_, sizeof(std::uint64_t));
  try {
    atomics_->start({kind, type, address, operand, compare}, state);
  } catch (...) {
    abandon_state(state);
    throw;
  }
  return state;
}

}  // namespace weft::rma
