#include "job/trace/recorder.h"

#include <algorithm>

namespace weft::job {

namespace {

constexpr std::string_view kActiveMessage = "active message";

std::uint64_t number_of(const void* run) { return reinterpret_cast<std::uintptr_t>(run); }

}  // namespace

// The pages of the ring are touched when the events come.
Recorder::Recorder(runtime::Runtime& runtime, std::size_t memory_bytes, Clock::time_point (*now)())
    : runtime_(runtime),
      now_(now),
      has_recorded_(runtime.observer() == nullptr),
      capacity_(std::max<std::size_t>(memory_bytes / sizeof(TraceRecord), 1)),
      records_(std::make_unique_for_overwrite<TraceRecord[]>(capacity_)) {
  if (has_recorded_) runtime.set_observer(this);
}

Recorder::~Recorder() { stop(); }

void Recorder::stop() {
  if (runtime_.observer() == this) runtime_.set_observer(nullptr);
}

void Recorder::record(TraceEvent event, std::uint64_t number, std::uint64_t value, std::uint32_t pe,
                      std::string_view text) {
  TraceRecord& record = records_[num_events_++ % capacity_];
  record.time_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now_().time_since_epoch()).count();
  record.number = number;
  record.value = value;
  record.text = text.data();
  record.text_size = static_cast<std::uint32_t>(text.size());
  record.event = static_cast<std::uint32_t>(event);
  record.pe = pe & 0xffffff;
}

void Recorder::message_sent(const runtime::MessageEvent& event) {
  if (event.is_control) return;
  record(TraceEvent::kSend, event.id, event.payload_bytes, static_cast<std::uint32_t>(event.pe));
}

void Recorder::message_delivered(const runtime::MessageEvent& event) {
  if (event.is_control) return;
  record(TraceEvent::kDeliver, event.id, event.payload_bytes, static_cast<std::uint32_t>(event.pe));
}

void Recorder::entry_began(const runtime::EntryEvent& event) {
  record(TraceEvent::kEntryBegin, number_of(event.run), event.element.index, 0, event.method);
}

void Recorder::entry_ended(const runtime::EntryEvent& event) {
  record(TraceEvent::kEntryEnd, number_of(event.run));
}

void Recorder::entry_suspended(const void* run) { record(TraceEvent::kEntrySuspend, number_of(run)); }

void Recorder::entry_resumed(const void* run) { record(TraceEvent::kEntryResume, number_of(run)); }

void Recorder::transfer_began(const runtime::TransferEvent& event) {
  if (event.type == kActiveMessage) return;
  const auto found = std::ranges::find(transfer_types_, event.type);
  const auto type = static_cast<std::uint32_t>(found - transfer_types_.begin());
  if (found == transfer_types_.end()) transfer_types_.push_back(event.type);
  record(TraceEvent::kTransferBegin, event.number, event.size_bytes, type, event.path);
}

void Recorder::transfer_ended(const runtime::TransferEvent& event, bool /*succeeded*/) {
  if (event.type == kActiveMessage) return;
  record(TraceEvent::kTransferEnd, event.number);
}

void Recorder::call_began(const runtime::CallEvent& event) {
  record(TraceEvent::kCallBegin, caller_number(event.rank, event.thread), 0, 0, event.function);
}

void Recorder::call_ended(const runtime::CallEvent& event) {
  record(TraceEvent::kCallEnd, caller_number(event.rank, event.thread));
}

}  // namespace weft::job
