#include "job/trace/perfetto_trace.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "weft/memory/buffer.h"

#include "base/format.h"
#include "job/trace/packets.h"

namespace weft::job {

namespace {

// Names that the reader in python/weft/_trace knows.
constexpr std::string_view kIdle = "idle";
constexpr std::string_view kSendName = "send";
constexpr std::string_view kMessageName = "message";
constexpr std::string_view kQueueName = "queue";

constexpr std::uint64_t kBelowKind = (std::uint64_t{1} << kKindShift) - 1;

// "Ring::token" for "&Ring::token".
std::string_view shown(std::string_view method) {
  if (method.starts_with('&')) method.remove_prefix(1);
  return method;
}

// "peer-mapped" or "peer-mapped, cuda"
std::string name_of_path(const TraceRecord& record) {
  const auto kind = static_cast<memory::Kind>(record.value >> kKindShift);
  std::string name(record.name);
  if (kind != memory::Kind::kHost) name += base::format(", {}", memory::kind_name(kind));
  return name;
}

// Things that may be under way several at a time. A group of them has as many tracks as it had things at once.
class Groups {
 public:
  explicit Groups(Packets& packets) : packets_(packets) {}

  // The track on which the thing is shown.
  std::uint64_t begin(const std::string& group, std::uint64_t number) {
    std::vector<std::uint64_t>& free = free_tracks_[group];
    if (free.empty()) free.push_back(packets_.new_track(group));
    const std::uint64_t track = free.back();
    free.pop_back();
    open_[number] = {&free, track};
    return track;
  }
  // Nothing if its begin is not in the ring.
  std::optional<std::uint64_t> end(std::uint64_t number) {
    const auto found = open_.find(number);
    if (found == open_.end()) return std::nullopt;
    const auto [free, track] = found->second;
    free->push_back(track);
    open_.erase(found);
    return track;
  }

 private:
  struct Open {
    std::vector<std::uint64_t>* free = nullptr;
    std::uint64_t track = 0;
  };

  Packets& packets_;
  std::unordered_map<std::string, std::vector<std::uint64_t>> free_tracks_;
  std::unordered_map<std::uint64_t, Open> open_;
};

// The work of streams, on a track for each. A device says how long work has taken, and not when it began: that is when the program
// queued it, or when the work before it was done.
class DeviceTracks {
 public:
  explicit DeviceTracks(Packets& packets) : packets_(packets) {}

  void begin(const TraceRecord& record, std::string_view method) {
    open_[record.number] = {&track_of(record), record.time_ns, method};
  }
  void end(const TraceRecord& record) {
    const auto found = open_.find(record.number);
    if (found == open_.end()) return;
    const Work& work = found->second;
    const std::int64_t begin_ns = std::max(work.queued_ns, work.track->free_ns);
    work.track->free_ns = begin_ns + static_cast<std::int64_t>(record.value);
    packets_.begin_slice(begin_ns, work.track->track, work.method, Category::kDeviceWork);
    packets_.end_slice(work.track->free_ns, work.track->track);
    open_.erase(found);
  }

 private:
  struct Track {
    std::uint64_t track = 0;
    std::int64_t free_ns = 0;
  };
  struct Work {
    Track* track = nullptr;
    std::int64_t queued_ns = 0;
    std::string_view method;
  };

  Track& track_of(const TraceRecord& record) {
    const std::uint64_t device = record.value >> kKindShift;
    const std::string name = base::format("{}:{}", record.name, device);
    Track& track = tracks_[name][record.value & kBelowKind];
    if (track.track == 0)
      track.track = packets_.new_track(base::format("{}, stream {}", name, tracks_[name].size()));
    return track;
  }

  Packets& packets_;
  std::unordered_map<std::string, std::unordered_map<std::uint64_t, Track>> tracks_;  // by device and stream
  std::unordered_map<std::uint64_t, Work> open_;
};

class Part {
 public:
  Part(std::ofstream& file, const Recorder& recorder, const TracedPe& traced)
      : packets_(file, traced.pe, traced.process, traced.clock_offset_ns), recorder_(recorder) {}

  void write() {
    recorder_.for_each([this](const TraceRecord& record) { write_event(record); });
  }

 private:
  struct Run {
    std::string_view method;
    std::uint64_t element = 0;
    bool is_on_track = false;
    std::int64_t suspended_ns = 0;
  };
  struct Caller {
    std::uint64_t track = 0;
    int depth = 0;
  };

  void write_event(const TraceRecord& record) {
    // What a message runs begins at once. If it is not an entry method, the message itself is shown.
    if (delivered_ && record.kind != TraceEvent::kEntryBegin) show_delivered();
    switch (record.kind) {
      case TraceEvent::kEntryBegin:
        return begin_entry(record);
      case TraceEvent::kEntryEnd:
        return end_entry(record);
      case TraceEvent::kEntrySuspend:
        return suspend(record);
      case TraceEvent::kEntryResume:
        return resume(record);
      case TraceEvent::kSend:
        return show_send(record);
      case TraceEvent::kDeliver:
        delivered_ = record;
        return;
      case TraceEvent::kTransferBegin:
        return begin_transfer(record);
      case TraceEvent::kTransferEnd:
        return end(transfers_, record);
      case TraceEvent::kCallBegin:
        return begin_call(record);
      case TraceEvent::kCallEnd:
        return end_call(record);
      case TraceEvent::kSpanBegin:
        return begin_span(record);
      case TraceEvent::kSpanEnd:
        return end(spans_of(record.group), record);
      case TraceEvent::kLeave:
        return show_move(record, "element leaves");
      case TraceEvent::kArrive:
        return show_move(record, "element arrives");
      case TraceEvent::kQueue:
        return show_queue(record.time_ns, record.value);
      case TraceEvent::kDeviceBegin:
        return devices_.begin(record, method_);
      case TraceEvent::kDeviceEnd:
        return devices_.end(record);
      case TraceEvent::kIdleBegin:
        if (queue_length_ != 0) show_queue(record.time_ns, 0);
        return packets_.begin_slice(record.time_ns, 0, kIdle, Category::kIdleness);
      case TraceEvent::kIdleEnd:
        return packets_.end_slice(record.time_ns, 0);
    }
  }

  void begin_entry(const TraceRecord& record) {
    const Run& run = runs_[record.number] = {shown(record.name), record.value, true, 0};
    begin_part(record, run, {});
  }
  void begin_part(const TraceRecord& record, const Run& run, std::optional<std::int64_t> waited_ns) {
    method_ = run.method;
    packets_.begin_slice(record.time_ns, 0, run.method, Category::kEntryMethods, [&] {
      packets_.annotate(Annotation::kElement, run.element);
      if (waited_ns) packets_.annotate(Annotation::kWaited, static_cast<std::uint64_t>(*waited_ns));
      if (delivered_ && delivered_->number != 0) packets_.end_flow(delivered_->number);
    });
    delivered_.reset();
  }
  // An event of a run that began before the first event in the ring is left out.
  void end_entry(const TraceRecord& record) {
    const auto run = runs_.find(record.number);
    if (run == runs_.end()) return;
    if (run->second.is_on_track) packets_.end_slice(record.time_ns, 0);
    runs_.erase(run);
  }
  void suspend(const TraceRecord& record) {
    const auto run = runs_.find(record.number);
    if (run == runs_.end() || !run->second.is_on_track) return;
    run->second.is_on_track = false;
    run->second.suspended_ns = record.time_ns;
    packets_.end_slice(record.time_ns, 0);
  }
  void resume(const TraceRecord& record) {
    const auto run = runs_.find(record.number);
    if (run == runs_.end() || run->second.is_on_track) return;
    run->second.is_on_track = true;
    begin_part(record, run->second, record.time_ns - run->second.suspended_ns);
  }

  void show_send(const TraceRecord& record) {
    packets_.instant(record.time_ns, kSendName, Category::kMessages, [&] {
      packets_.annotate(Annotation::kPe, record.pe);
      packets_.annotate(Annotation::kBytes, record.value);
      if (record.number != 0) packets_.begin_flow(record.number);
    });
  }
  void show_delivered() {
    packets_.instant(delivered_->time_ns, kMessageName, Category::kMessages, [&] {
      packets_.annotate(Annotation::kPe, delivered_->pe);
      packets_.annotate(Annotation::kBytes, delivered_->value);
      if (delivered_->number != 0) packets_.end_flow(delivered_->number);
    });
    delivered_.reset();
  }

  void begin_transfer(const TraceRecord& record) {
    const std::uint64_t track = transfers_.begin(name_of_path(record), record.number);
    packets_.begin_slice(record.time_ns, track, record.group, Category::kTransfers,
                         [&] { packets_.annotate(Annotation::kBytes, record.value & kBelowKind); });
  }
  void begin_span(const TraceRecord& record) {
    const std::uint64_t track = spans_of(record.group).begin(std::string(record.group), record.number);
    packets_.begin_slice(record.time_ns, track, record.name, Category::kSpans,
                         [&] { packets_.annotate(Annotation::kNumber, record.value); });
  }
  Groups& spans_of(std::string_view group) { return spans_.try_emplace(group, packets_).first->second; }
  void end(Groups& things, const TraceRecord& record) {
    if (const std::optional<std::uint64_t> track = things.end(record.number))
      packets_.end_slice(record.time_ns, *track);
  }

  void begin_call(const TraceRecord& record) {
    const auto [caller, is_new] = callers_.try_emplace(record.number);
    if (is_new) {
      const int thread = thread_of_caller(record.number);
      std::string name = base::format("rank {}", rank_of_caller(record.number));
      if (thread != 0) name += base::format(", thread {}", thread);
      caller->second.track = packets_.new_track(name);
    }
    ++caller->second.depth;
    packets_.begin_slice(record.time_ns, caller->second.track, record.name, Category::kCalls);
  }
  // A call that began on another PE, or before the first event in the ring, is left out.
  void end_call(const TraceRecord& record) {
    const auto caller = callers_.find(record.number);
    if (caller == callers_.end() || caller->second.depth == 0) return;
    --caller->second.depth;
    packets_.end_slice(record.time_ns, caller->second.track);
  }

  void show_move(const TraceRecord& record, std::string_view what) {
    packets_.instant(record.time_ns, what, Category::kMoves, [&] {
      packets_.annotate(Annotation::kElement, record.value);
      packets_.annotate(Annotation::kPe, record.pe);
    });
  }
  void show_queue(std::int64_t time_ns, std::uint64_t length) {
    if (queue_track_ == 0) queue_track_ = packets_.new_counter_track(kQueueName);
    packets_.count(time_ns, queue_track_, length);
    queue_length_ = length;
  }

  Packets packets_;
  const Recorder& recorder_;
  std::unordered_map<std::uint64_t, Run> runs_;
  std::string_view method_ = kMain;  // the last one that began or was resumed
  Groups transfers_{packets_};
  std::unordered_map<std::string_view, Groups> spans_;
  std::unordered_map<std::uint64_t, Caller> callers_;
  DeviceTracks devices_{packets_};
  std::uint64_t queue_track_ = 0;
  std::uint64_t queue_length_ = 0;
  std::optional<TraceRecord> delivered_;
};

}  // namespace

base::Status write_trace(const std::string& path, const Recorder& recorder, const TracedPe& traced) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (file) Part(file, recorder, traced).write();
  file.close();
  if (file) return {};
  return {base::StatusCode::kInternal,
          base::format("the trace {} cannot be written: {}", path, std::generic_category().message(errno))};
}

}  // namespace weft::job
