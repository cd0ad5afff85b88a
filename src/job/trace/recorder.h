// Records the events of one PE in a ring of bounded memory, for `weft run --trace`.
//
// An event takes a reading of the clock and 40 bytes. When the ring is full, the oldest events are overwritten.
//
// Threads: the PE's.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/runtime/observer.h"
#include "weft/runtime/runtime.h"

namespace weft::job {

enum class TraceEvent : std::uint8_t {
  kEntryBegin,    // number: the run; text: the method; value: the index of the element
  kEntryEnd,      // number: the run
  kEntrySuspend,  // number: the run
  kEntryResume,   // number: the run
  kSend,          // number: the message; pe: the destination; value: bytes
  kDeliver,       // number: the message; pe: the source; value: bytes
  kTransferBegin,  // number: the transfer; text: the path; pe: the type, see Recorder::transfer_type(); value: bytes.
  // Active messages are not recorded again: they are the messages above, and the runtime's own.
  kTransferEnd,  // number: the transfer
  kCallBegin,    // number: the caller, see caller_number(); text: the function
  kCallEnd,      // number: the caller
  kIdleBegin,
  kIdleEnd,
};

struct TraceRecord {
  std::int64_t time_ns = 0;
  std::uint64_t number = 0;
  std::uint64_t value = 0;
  const char* text = nullptr;
  std::uint32_t text_size = 0;
  std::uint32_t event : 8 = 0;
  std::uint32_t pe : 24 = 0;

  TraceEvent kind() const { return static_cast<TraceEvent>(event); }
  std::string_view name() const { return {text, text_size}; }
};

// The rank and the thread that call MPI, as one number.
constexpr std::uint64_t caller_number(int rank, int thread) {
  return static_cast<std::uint64_t>(thread) << 32 | static_cast<std::uint32_t>(rank);
}
constexpr int rank_of_caller(std::uint64_t number) { return static_cast<int>(number & 0xffffffff); }
constexpr int thread_of_caller(std::uint64_t number) { return static_cast<int>(number >> 32); }

class Recorder final : public runtime::Observer {
 public:
  using Clock = std::chrono::steady_clock;

  // Records from here on, unless the runtime has an observer already. Room for at least one event is made. `now` is for tests.
  Recorder(runtime::Runtime& runtime, std::size_t memory_bytes, Clock::time_point (*now)() = &Clock::now);
  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Records no more.
  void stop();
  // Whether the runtime has this observer, or had it until stop().
  bool has_recorded() const { return has_recorded_; }
  // How many of the first events were overwritten.
  std::uint64_t num_lost() const { return num_events_ > capacity_ ? num_events_ - capacity_ : 0; }
  // Calls visit(record) for each event, the oldest first.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::uint64_t i = num_lost(); i < num_events_; ++i) visit(records_[i % capacity_]);
  }
  // "tagged send", ...
  std::string_view transfer_type(const TraceRecord& record) const { return transfer_types_[record.pe]; }

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
  void idle_began() override { record(TraceEvent::kIdleBegin, 0); }
  void idle_ended() override { record(TraceEvent::kIdleEnd, 0); }

 private:
  void record(TraceEvent event, std::uint64_t number, std::uint64_t value = 0, std::uint32_t pe = 0,
              std::string_view text = {});

  runtime::Runtime& runtime_;
  Clock::time_point (*now_)();
  bool has_recorded_;
  std::uint64_t capacity_;
  std::uint64_t num_events_ = 0;
  std::unique_ptr<TraceRecord[]> records_;
  std::vector<std::string_view> transfer_types_;
};

}  // namespace weft::job
