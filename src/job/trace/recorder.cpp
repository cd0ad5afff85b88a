#include "job/trace/recorder.h"

#include <algorithm>

namespace weft::job {

namespace {

std::uint64_t number_of(const void* run) { return reinterpret_cast<std::uintptr_t>(run); }

constexpr int kAddressBits = 48;  // of addresses of programs
constexpr std::uint64_t kMostNameBytes = 0xffff;
constexpr int kGroupShift = 56;
constexpr std::uint64_t kMostGroups = 256;
constexpr std::uint64_t kLowBits = (std::uint64_t{1} << kGroupShift) - 1;
// The queue is measured at every kSampleDistance-th entry method, or less often if it is long.
constexpr std::uint64_t kSampleDistance = 64;
constexpr std::uint64_t kEntriesPerQueued = 8;

std::uint64_t packed(std::string_view name) {
  return std::min<std::uint64_t>(name.size(), kMostNameBytes) << kAddressBits | number_of(name.data());
}
std::string_view unpacked(std::uint64_t name) {
  const std::uint64_t address = name & ((std::uint64_t{1} << kAddressBits) - 1);
  return {reinterpret_cast<const char*>(address), name >> kAddressBits};
}

bool has_name(TraceEvent kind) {
  return kind == TraceEvent::kEntryBegin || kind == TraceEvent::kTransferBegin ||
         kind == TraceEvent::kCallBegin || kind == TraceEvent::kSpanBegin || kind == TraceEvent::kSpanEnd ||
         kind == TraceEvent::kDeviceBegin;
}
bool has_group(TraceEvent kind) {
  return kind == TraceEvent::kTransferBegin || kind == TraceEvent::kSpanBegin || kind == TraceEvent::kSpanEnd;
}

}  // namespace

// The pages of the ring are touched when the events come.
Recorder::Recorder(runtime::Runtime& runtime, std::size_t memory_bytes)
    : runtime_(runtime),
      has_recorded_(runtime.observer() == nullptr),
      capacity_(std::max<std::size_t>(memory_bytes / sizeof(Entry), 1)),
      entries_(std::make_unique_for_overwrite<Entry[]>(capacity_)),
      next_(entries_.get()),
      end_(next_ + capacity_) {
  if (has_recorded_) runtime.set_observer(this);
}

Recorder::~Recorder() { stop(); }

void Recorder::stop() {
  if (runtime_.observer() != this) return;
  runtime_.set_observer(nullptr);
  clock_.stop();
}

std::uint64_t Recorder::ticks_of(const Entry* entry) const {
  std::uint64_t ticks = 0;
  for (std::uint64_t i = 0; i < capacity_ && (ticks = entry->ticks_and_kind >> 8) == 0; ++i) {
    if (++entry == end_) entry = entries_.get();
    if (entry == next_) return clock_.ticks_at_stop();
  }
  return ticks;
}

TraceRecord Recorder::decoded(const Entry& entry, std::uint64_t ticks) const {
  TraceRecord record;
  record.time_ns = clock_.time_ns(ticks);
  record.kind = static_cast<TraceEvent>(entry.ticks_and_kind & 0xff);
  record.number = entry.number;
  record.value = entry.value;
  if (has_name(record.kind)) {
    record.name = unpacked(entry.subject);
  } else {
    record.pe = static_cast<std::uint32_t>(entry.subject);
  }
  if (has_group(record.kind)) {
    record.group = groups_[entry.value >> kGroupShift];
    record.value &= kLowBits;
  }
  return record;
}

std::uint64_t Recorder::group_bits(std::string_view group) {
  const auto found = std::ranges::find(groups_, group);
  const auto number = static_cast<std::uint64_t>(found - groups_.begin());
  if (found == groups_.end() && number < kMostGroups) groups_.push_back(group);
  return std::min(number, kMostGroups - 1) << kGroupShift;
}

void Recorder::message_sent(const runtime::MessageEvent& event) {
  if (event.is_control) return;
  record(TraceEvent::kSend, event.id, event.payload_bytes, static_cast<std::uint32_t>(event.pe));
}

void Recorder::message_delivered(const runtime::MessageEvent& event) {
  if (event.is_control) return;
  add(0, TraceEvent::kDeliver, event.id, event.payload_bytes, static_cast<std::uint32_t>(event.pe));
}

void Recorder::entry_began(const runtime::EntryEvent& event) {
  record(TraceEvent::kEntryBegin, number_of(event.run), event.element.index, packed(event.method));
  if (--entries_until_sample_ == 0) [[unlikely]]
    sample_queue();
}

void Recorder::sample_queue() {
  const std::uint64_t length = runtime_.num_queued();
  record(TraceEvent::kQueue, 0, length);
  entries_until_sample_ = std::max(kSampleDistance, kEntriesPerQueued * length);
}

void Recorder::entry_ended(const runtime::EntryEvent& event) {
  record(TraceEvent::kEntryEnd, number_of(event.run));
}

void Recorder::entry_suspended(const void* run) { record(TraceEvent::kEntrySuspend, number_of(run)); }

void Recorder::entry_resumed(const void* run) { record(TraceEvent::kEntryResume, number_of(run)); }

void Recorder::main_began(const void* run) {
  record(TraceEvent::kEntryBegin, number_of(run), 0, packed(kMain));
}

void Recorder::main_ended(const void* run) { record(TraceEvent::kEntryEnd, number_of(run)); }

void Recorder::transfer_began(const runtime::TransferEvent& event) {
  const std::uint64_t kind = static_cast<std::uint64_t>(event.kind) << kKindShift;
  record(TraceEvent::kTransferBegin, event.number, group_bits(event.type) | kind | event.size_bytes,
         packed(event.path));
}

void Recorder::transfer_ended(const runtime::TransferEvent& event, bool /*succeeded*/) {
  record(TraceEvent::kTransferEnd, event.number);
}

void Recorder::call_began(const runtime::CallEvent& event) {
  record(TraceEvent::kCallBegin, caller_number(event.rank, event.thread), 0, packed(event.function));
}

void Recorder::call_ended(const runtime::CallEvent& event) {
  record(TraceEvent::kCallEnd, caller_number(event.rank, event.thread));
}

void Recorder::span_began(const runtime::SpanEvent& event) {
  record(TraceEvent::kSpanBegin, event.number, group_bits(event.group) | (event.value & kLowBits),
         packed(event.name));
}

void Recorder::span_ended(const runtime::SpanEvent& event) {
  record(TraceEvent::kSpanEnd, event.number, group_bits(event.group), packed(event.name));
}

void Recorder::element_left(runtime::ElementId element, int to_pe) {
  record(TraceEvent::kLeave, element.collection, element.index, static_cast<std::uint32_t>(to_pe));
}

void Recorder::element_arrived(runtime::ElementId element, int from_pe) {
  record(TraceEvent::kArrive, element.collection, element.index, static_cast<std::uint32_t>(from_pe));
}

void Recorder::device_work_began(const runtime::DeviceWorkEvent& event) {
  record(TraceEvent::kDeviceBegin, event.number,
         static_cast<std::uint64_t>(event.place.device) << kKindShift | number_of(event.stream),
         packed(memory::kind_name(event.place.kind)));
}

void Recorder::device_work_measured(const runtime::DeviceWorkEvent& event, double seconds) {
  record(TraceEvent::kDeviceEnd, event.number, static_cast<std::uint64_t>(seconds * 1e9));
}

void Recorder::idle_began() { record(TraceEvent::kIdleBegin, 0); }

void Recorder::idle_ended() { record(TraceEvent::kIdleEnd, 0); }

}  // namespace weft::job
