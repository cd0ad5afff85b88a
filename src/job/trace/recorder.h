// Records the events of one PE in a ring of bounded memory, for `weft run --trace`.
//
// An event takes a reading of the clock and 32 bytes. When the ring is full, the oldest events are overwritten.
//
// The delivery of a message has no time of its own: for_each() gives it that of the event behind it, which is the begin of the entry
// method that the message calls, or the first thing that its handler does.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "weft/runtime/observer.h"
#include "weft/runtime/runtime.h"

#include "job/trace/ticks.h"

namespace weft::job {

enum class TraceEvent : std::uint8_t {
  kEntryBegin,     // number: the run; name: the method, or kMain; value: the index of the element
  kEntryEnd,       // number: the run
  kEntrySuspend,   // number: the run
  kEntryResume,    // number: the run
  kSend,           // number: the message; pe: the destination; value: bytes
  kDeliver,        // number: the message; pe: the source; value: bytes
  kTransferBegin,  // number: the transfer; name: the path; group: the type; value: bytes, and from kKindShift on the kind of memory.
  // Active messages are not recorded again: they are the messages above, and the runtime's own.
  kTransferEnd,  // number: the transfer
  kCallBegin,    // number: the caller, see caller_number(); name: the function
  kCallEnd,      // number: the caller
  kSpanBegin,    // number, group, name and value: see runtime::SpanEvent
  kSpanEnd,      // number, group
  kLeave,        // number: the collection; value: the element; pe: where it moves to
  kArrive,       // number: the collection; value: the element; pe: where it comes from
  kQueue,        // value: how many messages and coroutines wait for their turn on this PE
  kDeviceBegin,  // number: the work; name: the kind of memory; value: the stream, and from kKindShift on the device
  kDeviceEnd,  // number: the work; value: the nanoseconds that it took
  kIdleBegin,
  kIdleEnd,
};

// The name of the run of main.
inline constexpr std::string_view kMain = "main";

// Where the kind of memory is in the value of kTransferBegin, and the device in that of kDeviceBegin.
inline constexpr int kKindShift = 48;

// An event as for_each() shows it.
struct TraceRecord {
  std::int64_t time_ns = 0;  // of the steady clock
  TraceEvent kind = TraceEvent::kIdleBegin;
  std::uint32_t pe = 0;
  std::uint64_t number = 0;
  std::uint64_t value = 0;
  std::string_view name;
  std::string_view group;
};

// The rank and the thread that call MPI, as one number.
constexpr std::uint64_t caller_number(int rank, int thread) {
  return static_cast<std::uint64_t>(thread) << 32 | static_cast<std::uint32_t>(rank);
}
constexpr int rank_of_caller(std::uint64_t number) { return static_cast<int>(number & 0xffffffff); }
constexpr int thread_of_caller(std::uint64_t number) { return static_cast<int>(number >> 32); }

class Recorder final : public runtime::Observer {
 public:
  // Records from here on, unless the runtime has an observer already. Room for at least one event is made.
  Recorder(runtime::Runtime& runtime, std::size_t memory_bytes);
  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // The memory that an event takes.
  static constexpr std::size_t kEventBytes = 32;

  // Records no more.
  void stop();
  // Whether the runtime has this observer, or had it until stop().
  bool has_recorded() const { return has_recorded_; }
  std::uint64_t num_events() const {
    return num_laps_ * capacity_ + static_cast<std::uint64_t>(next_ - entries_.get());
  }
  // How many of the first events were overwritten.
  std::uint64_t num_lost() const { return num_laps_ == 0 ? 0 : num_events() - capacity_; }
  // Calls visit(record) for each event, the oldest first. REQUIRES: stop() was called.
  template <class Visit>
  void for_each(const Visit& visit) const {
    const Entry* const begin = entries_.get();
    if (num_laps_ > 0) visit_each(next_, begin + capacity_, visit);
    visit_each(begin, next_, visit);
  }
  // Active messages are those below, and the runtime's own.
  bool observes_active_messages() const override { return false; }
  void message_sent(const runtime::MessageEvent& event) override;
  void message_delivered(const runtime::MessageEvent& event) override;
  void entry_began(const runtime::EntryEvent& event) override;
  void entry_ended(const runtime::EntryEvent& event) override;
  void entry_suspended(const void* run) override;
  void entry_resumed(const void* run) override;
  void transfer_began(const runtime::TransferEvent& event) override;
  void transfer_ended(const runtime::TransferEvent& event, bool succeeded) override;
  void call_began(const runtime::CallEvent& event) override;
  void call_ended(const runtime::CallEvent& event) override;
  void main_began(const void* run) override;
  void main_ended(const void* run) override;
  void span_began(const runtime::SpanEvent& event) override;
  void span_ended(const runtime::SpanEvent& event) override;
  void element_left(runtime::ElementId element, int to_pe) override;
  void element_arrived(runtime::ElementId element, int from_pe) override;
  void device_work_began(const runtime::DeviceWorkEvent& event) override;
  void device_work_measured(const runtime::DeviceWorkEvent& event, double seconds) override;
  void idle_began() override;
  void idle_ended() override;

 private:
  // An event in the ring.
  struct Entry {
    std::uint64_t ticks_and_kind =
        0;  // ticks since the start, above the 8 bits of the kind; no ticks: see above
    std::uint64_t number = 0;
    std::uint64_t value = 0;  // if the event has a group, its number in groups_ is in the upper 8 bits
    std::uint64_t subject =
        0;  // a PE, or a name that is never destroyed: its address, above it its length in 16 bits
  };
  static_assert(sizeof(Entry) == kEventBytes);

  void add(std::uint64_t ticks, TraceEvent kind, std::uint64_t number, std::uint64_t value,
           std::uint64_t subject) {
    *next_ = {ticks << 8 | static_cast<std::uint64_t>(kind), number, value, subject};
    if (++next_ == end_) [[unlikely]]
      begin_lap();
  }
  void record(TraceEvent kind, std::uint64_t number, std::uint64_t value = 0, std::uint64_t subject = 0) {
    add(clock_.ticks_since_start(), kind, number, value, subject);
  }
  void begin_lap() {
    next_ = entries_.get();
    ++num_laps_;
  }
  TraceRecord decoded(const Entry& entry, std::uint64_t ticks) const;
  template <class Visit>
  void visit_each(const Entry* begin, const Entry* end, const Visit& visit) const {
    // 0: not found yet. A burst of messages may be long, so it is not walked for each of them.
    std::uint64_t ticks = 0;
    for (const Entry* entry = begin; entry != end; ++entry) {
      if (ticks == 0 || has_ticks(*entry)) ticks = ticks_of(entry);
      visit(decoded(*entry, ticks));
      if (has_ticks(*entry)) ticks = 0;
    }
  }
  // A number for the group, in the bits that it has in an entry.
  std::uint64_t group_bits(std::string_view group);
  // How long the queue is: not often, because its elements must be counted.
  void sample_queue();
  static bool has_ticks(const Entry& entry) { return entry.ticks_and_kind >> 8 != 0; }
  // Its own, or those of the next event that has some.
  std::uint64_t ticks_of(const Entry* entry) const;

  runtime::Runtime& runtime_;
  TickClock clock_;
  bool has_recorded_;
  std::uint64_t capacity_;
  std::uint64_t num_laps_ = 0;
  std::unique_ptr<Entry[]> entries_;
  Entry* next_;
  Entry* end_;
  std::uint64_t entries_until_sample_ = 1;
  std::vector<std::string_view> groups_;
};

}  // namespace weft::job
