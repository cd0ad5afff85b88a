#include "rma/segment/segments.h"

#include <utility>

#include "weft/base/error.h"
#include "weft/rma/limits.h"

#include "base/format.h"
#include "machine/machine.h"
#include "memory/memory.h"

namespace weft::rma {

using base::Error;
using base::StatusCode;

namespace {

[[noreturn]] void refuse_pointer(StatusCode code, const GlobalAddress& address, std::string_view why) {
  throw Error(code, base::format("{} {}", describe(address), why));
}

[[noreturn]] void refuse_dead(const GlobalAddress& address, SegmentState state) {
  refuse_pointer(StatusCode::kNotFound, address,
                 state == SegmentState::kFreed ? "cannot be used: the segment has been freed"
                                               : "cannot be used: its PE has never had such a segment");
}

}  // namespace

Segments::Segments(runtime::Runtime& runtime, SegmentHandlers handlers, SegmentCache& cache)
    : runtime_(runtime),
      handlers_(handlers),
      cache_(cache),
      pe_(runtime.pe()),
      self_(std::make_shared<SegmentOwner*>(static_cast<SegmentOwner*>(this))) {
  runtime_.set_handler(
      handlers_.others,
      [](void* self, runtime::MessagePtr message) { static_cast<Segments*>(self)->on_message(*message); },
      this);
  runtime_.set_urgent_handler(
      handlers_.question,
      [](void* self, runtime::MessagePtr message) { static_cast<Segments*>(self)->on_question(*message); },
      this);
}

Segments::~Segments() { close(); }

void Segments::close() {
  if (std::exchange(closed_, true)) return;
  *self_ = nullptr;
  cache_.clear();
  for (auto& [key, segment] : segments_) release_memory(*segment);
}

// --- Own segments

std::uint32_t Segments::next_number() {
  if (closed_) throw Error(StatusCode::kClosed, "the job has ended, so no segment can be made");
  if (last_number_ == GlobalAddress::kMaxSegment) {
    throw Error(
        StatusCode::kOutOfRange,
        base::format("PE {} has made {} segments, and a number is never used again: keep segments and reuse "
                     "their memory",
                     runtime_.pe(), last_number_));
  }
  if (!own_states_) {
    auto states = SegmentStates::create();
    if (!states.ok()) base::throw_status(states.status());
    own_states_ = std::move(*states);
  }
  return ++last_number_;
}

Segment Segments::make(std::size_t size_bytes, memory::Place place) {
  if (size_bytes == 0 || size_bytes > kMostSegmentBytes) {
    throw Error(
        size_bytes == 0 ? StatusCode::kInvalidArgument : StatusCode::kOutOfMemory,
        base::format("a segment of {} bytes cannot be made: give 1 to {}", size_bytes, kMostSegmentBytes));
  }
  KnownSegment segment;
  segment.size_bytes = size_bytes;
  if (place.is_host()) {
    const std::uint32_t number = next_number();
    auto part = shared_parts_.allocate(size_bytes);
    if (!part.ok()) base::throw_status(part.status());
    segment.shared = std::move(*part);
    segment.memory = {segment.shared.data(), size_bytes, place, nullptr};
    return add(number, std::move(segment), SegmentMemory::kShared);
  }
  const std::uint32_t number = next_number();
  auto allocated = runtime_.memory().allocate(size_bytes, place);
  if (!allocated.ok()) base::throw_status(allocated.status());
  segment.memory = *allocated;
  // The first signal may be queued while a graph is being captured. A kind that cannot do it says so then.
  static_cast<void>(runtime_.memory().backend(place.kind)->prepare_steps(place.device));
  return add(number, std::move(segment), SegmentMemory::kAllocated);
}

Segment Segments::make_at(void* address, std::size_t size_bytes) {
  if (address == nullptr || size_bytes == 0 || size_bytes > kMostSegmentBytes) {
    throw Error(StatusCode::kInvalidArgument,
                base::format("a segment of {} bytes at {} cannot be made: give memory", size_bytes, address));
  }
  KnownSegment segment;
  segment.size_bytes = size_bytes;
  segment.memory = {address, size_bytes, runtime_.memory().place_of(address), nullptr};
  if (!segment.memory.place.is_host()) {
    const memory::Allocation allocation = runtime_.memory().allocation_of(address);
    const std::size_t offset = reinterpret_cast<std::uintptr_t>(address) - allocation.base;
    if (allocation.size_bytes != 0 && size_bytes > allocation.size_bytes - offset) {
      throw Error(StatusCode::kOutOfRange,
                  base::format("a segment of {} bytes at {} leaves its allocation, which has {} bytes there",
                               size_bytes, address, allocation.size_bytes - offset));
    }
  }
  return add(next_number(), std::move(segment), SegmentMemory::kCaller);
}

Segment Segments::add(std::uint32_t number, KnownSegment segment, SegmentMemory memory) {
  segment.owner_place = segment.memory.place;
  segment.start = GlobalAddress(runtime_.pe(), number, segment.memory.place.kind, 0);
  segment.own.emplace().memory = memory;
  segment.is_known = true;
  own_states_.set(number, SegmentState::kLive);
  segment.state = own_states_.state(number);
  auto entry = std::make_unique<KnownSegment>(std::move(segment));
  KnownSegment& added = *entry;
  segments_.emplace(key_of(added.start), std::move(entry));
  enter_in_cache(added);
  return Segment(self_, added.start, added.memory);
}

void Segments::enter_in_cache(const KnownSegment& segment) {
  if (!segment.memory.place.is_host() || !segment.is_reached()) return;
  cache_.insert({.segment_word = segment.start.segment_word(),
                 .size_bytes = segment.size_bytes,
                 .data = static_cast<std::byte*>(segment.memory.data),
                 .state = segment.state});
}

runtime::Future<> Segments::release(const GlobalAddress& address) {
  KnownSegment& segment = *segments_.at(key_of(address));
  runtime::Future<> released(runtime_);
  own_states_.set(address.segment(), SegmentState::kFreed);
  segment.is_freed = true;
  segment.own->released = released;
  cache_.erase(segment.start.segment_word());
  for (const auto& [pe, num_descriptions] : segment.own->told) {
    send(pe, SegmentMessage::kFreed, SegmentFreed{address.segment(), num_descriptions});
  }
  reclaim_if_unused(segment);
  return released;
}

// --- The life of what is known

void Segments::use_ended(void* self, KnownSegment& segment) {
  static_cast<Segments*>(self)->reclaim_if_unused(segment);
}

void Segments::reclaim_if_unused(KnownSegment& segment) {
  if (closed_ || segment.uses > 0) return;
  if (segment.own.has_value()) {
    if (!segment.is_freed || !segment.own->told.empty()) return;
    const runtime::Future<> released = *segment.own->released;
    release_memory(segment);
    erase(key_of(segment.start));
    return released.set();
  }
  if (!segment.freed_after.has_value() || segment.num_descriptions < *segment.freed_after ||
      segment.is_asked) {
    return;
  }
  const GlobalAddress start = segment.start;
  release_memory(segment);
  erase(key_of(start));
  send(start.pe(), SegmentMessage::kReleased, SegmentReleased{start.segment()});
}

void Segments::erase(std::uint64_t key) {
  last_found_ = {};
  segments_.erase(key);
}

// Failures change nothing: the memory is not used any more.
void Segments::release_memory(KnownSegment& segment) {
  segment.page_lock.release();
  if (segment.remote.has_value()) {
    if (segment.own.has_value()) {
      static_cast<void>(runtime_.machine().deregister_memory(*segment.remote));
    } else {
      runtime_.machine().forget_remote(segment.start.pe(), *segment.remote);
    }
  }
  segment.remote.reset();
  if (segment.own.has_value() && segment.own->memory == SegmentMemory::kAllocated) {
    static_cast<void>(runtime_.memory().deallocate(segment.memory));
  }
  if (segment.import != nullptr) {
    static_cast<void>(runtime_.memory().backend(segment.memory.place.kind)->release_import(segment.import));
  }
  segment.import = nullptr;
  segment.memory.data = nullptr;
  if (segment.own.has_value() && segment.own->memory == SegmentMemory::kShared && !closed_) {
    shared_parts_.free(segment.shared, segment.size_bytes);
  }
  segment.shared = {};
}

// --- Finding

KnownSegment* Segments::lookup(const GlobalAddress& address) {
  const std::uint64_t key = key_of(address);
  Found& last = last_found(address);
  if (last.segment != nullptr && last.key == key) [[likely]]
    return last.segment;
  const auto found = segments_.find(key);
  if (found == segments_.end()) return nullptr;
  last = {key, found->second.get()};
  return last.segment;
}

KnownSegment* Segments::find(const GlobalAddress& address) {
  if (closed_) refuse_pointer(StatusCode::kClosed, address, "cannot be used: the job has ended");
  if (address.is_null()) refuse_pointer(StatusCode::kInvalidArgument, address, "cannot be used");
  if (address.pe() < 0 || address.pe() >= runtime_.num_pes()) {
    refuse_pointer(StatusCode::kOutOfRange, address,
                   base::format("cannot be used: this job has PEs 0 to {}", runtime_.num_pes() - 1));
  }
  KnownSegment* const segment = lookup(address);
  if (address.pe() == runtime_.pe() && (segment == nullptr || segment->is_freed)) {
    refuse_dead(address, address.segment() <= last_number_ ? SegmentState::kFreed : SegmentState::kNone);
  }
  if (segment == nullptr || !segment->is_known) return nullptr;
  if (segment->is_freed || load_state(segment->state) != SegmentState::kLive) {
    refuse_dead(address, SegmentState::kFreed);
  }
  if (segment->start.kind() != address.kind()) {
    refuse_pointer(
        StatusCode::kInvalidArgument, address,
        base::format("cannot be used: the segment is {} memory", memory::kind_name(segment->start.kind())));
  }
  enter_in_cache(*segment);
  return segment;
}

runtime::Task<SegmentUse> Segments::reach(GlobalAddress address) {
  KnownSegment* segment = find(address);
  while (segment == nullptr) {
    const runtime::Future<std::uint8_t> answer = ask(address, false).answer;
    const auto state = static_cast<SegmentState>(co_await answer);
    if (state != SegmentState::kLive) refuse_dead(address, state);
    segment = find(address);
  }
  co_return use(*segment);
}

runtime::Task<> Segments::get_key(KnownSegment& segment) {
  const SegmentUse keep = use(segment);
  while (!segment.remote.has_value()) {
    const runtime::Future<std::uint8_t> answer = ask(segment.start, true).answer;
    const auto state = static_cast<SegmentState>(co_await answer);
    if (state != SegmentState::kLive) refuse_dead(segment.start, state);
  }
}

void Segments::expect_inside(const KnownSegment& segment, const GlobalAddress& address,
                             std::size_t size_bytes) const {
  if (segment.is_freed || load_state(segment.state) != SegmentState::kLive) {
    refuse_dead(address, SegmentState::kFreed);
  }
  if (is_inside(segment, address, size_bytes)) return;
  refuse_pointer(StatusCode::kOutOfRange, address,
                 base::format("does not have {} bytes behind it: the segment has {} bytes", size_bytes,
                              segment.size_bytes));
}

KnownSegment* Segments::find_elsewhere(const GlobalAddress& address, std::size_t size_bytes) {
  KnownSegment* const segment = find(address);
  if (segment != nullptr) expect_inside(*segment, address, size_bytes);
  return segment;
}

KnownSegment& Segments::lookup_or_make(int pe, std::uint32_t number) {
  const GlobalAddress start(pe, number, memory::Kind::kHost, 0);
  auto& entry = segments_[key_of(start)];
  if (entry == nullptr) {
    entry = std::make_unique<KnownSegment>();
    entry->start = start;
  }
  return *entry;
}

KnownSegment& Segments::ask(const GlobalAddress& address, bool needs_key) {
  KnownSegment& segment = lookup_or_make(address.pe(), address.segment());
  if (segment.is_asked) return segment;
  segment.is_asked = true;
  segment.answer = runtime::Future<std::uint8_t>(runtime_);
  if (closed_) return segment;
  auto question = runtime::Message::pack(runtime_, handlers_.question,
                                         SegmentQuestion{address.segment(), needs_key || !maps_});
  question->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
  runtime_.send(address.pe(), std::move(question));
  return segment;
}

}  // namespace weft::rma
