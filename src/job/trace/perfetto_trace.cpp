#include "job/trace/perfetto_trace.h"

#include <cerrno>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "base/format.h"
#include "job/trace/protobuf.h"

namespace weft::job {

namespace {

// Numbers of fields, by message.
namespace trace {
constexpr int kPacket = 1;
}
namespace packet {
constexpr int kTimestamp = 8;
constexpr int kSequence = 10;
constexpr int kTrackEvent = 11;
constexpr int kInternedData = 12;
constexpr int kSequenceFlags = 13;
constexpr int kDefaults = 59;
constexpr int kTrackDescriptor = 60;
}  // namespace packet
namespace track_event {
constexpr int kCategory = 3;
constexpr int kAnnotation = 4;
constexpr int kType = 9;
constexpr int kName = 10;
constexpr int kTrack = 11;
constexpr int kFlow = 47;
constexpr int kEndOfFlow = 48;
}  // namespace track_event
namespace interned_data {
constexpr int kCategories = 1;
constexpr int kEventNames = 2;
constexpr int kAnnotationNames = 3;
}  // namespace interned_data
constexpr int kDefaultsOfTrackEvents = 11;  // in packet::kDefaults
constexpr int kDefaultTrack = 11;           // in kDefaultsOfTrackEvents
constexpr int kInternedNumber = 1;
constexpr int kInternedName = 2;
constexpr int kAnnotationName = 1;
constexpr int kAnnotationValue = 3;
namespace track {
constexpr int kUuid = 1;
constexpr int kName = 2;
constexpr int kProcess = 3;
constexpr int kThread = 4;
constexpr int kParent = 5;
}  // namespace track
namespace process {
constexpr int kPid = 1;
constexpr int kName = 6;
}  // namespace process
namespace thread {
constexpr int kPid = 1;
constexpr int kTid = 2;
constexpr int kName = 5;
}  // namespace thread

constexpr std::uint64_t kStateCleared = 1;  // of the sequence
enum class EventType : std::uint64_t { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3 };

// Names that every part has. Those of methods and paths follow.
enum Category : std::uint64_t { kEntryMethods = 1, kIdleness, kMessages, kTransfers, kCalls };
enum Annotation : std::uint64_t { kElement = 1, kBytes, kPe, kWaited };

constexpr std::string_view kIdle = "idle";
constexpr std::string_view kSendName = "send";
constexpr std::string_view kMessageName = "message";
constexpr std::size_t kFlushBytes = 1 << 20;

// "Ring::token" for "&Ring::token".
std::string_view shown(std::string_view method) {
  if (method.starts_with('&')) method.remove_prefix(1);
  return method;
}

class Part {
 public:
  Part(std::ofstream& file, const Recorder& recorder, const TracedPe& traced)
      : file_(file), recorder_(recorder), traced_(traced) {}

  void write() {
    write_head();
    recorder_.for_each([this](const TraceRecord& record) {
      write_event(record);
      if (out_.bytes().size() >= kFlushBytes) flush();
    });
    flush();
  }

 private:
  struct Run {
    std::string_view method;
    std::uint64_t element = 0;
    bool is_on_track = false;
    std::int64_t suspended_ns = 0;
  };
  // A path of transfers has as many tracks as it had transfers at once.
  struct Path {
    std::vector<std::uint64_t> free_tracks;
  };
  struct Transfer {
    Path* path = nullptr;
    std::uint64_t track = 0;
  };
  struct Caller {
    std::uint64_t track = 0;
    int depth = 0;
  };

  // From 1, because 0 stands for none.
  std::uint64_t number_of_pe() const { return static_cast<std::uint64_t>(traced_.pe) + 1; }
  std::uint64_t process_track() const { return number_of_pe() << 32; }
  std::uint64_t pe_track() const { return process_track() + 1; }

  template <class Fill>
  void packet(const Fill& fill) {
    out_.message(trace::kPacket, [&] {
      out_.number(packet::kSequence, number_of_pe());
      fill();
    });
  }

  void write_head() {
    packet([&] {
      out_.number(packet::kSequenceFlags, kStateCleared);
      out_.message(packet::kDefaults, [&] {
        out_.message(kDefaultsOfTrackEvents, [&] { out_.number(kDefaultTrack, pe_track()); });
      });
      out_.message(packet::kInternedData, [&] {
        const auto intern = [&](int field, std::uint64_t number, std::string_view name) {
          out_.message(field, [&] {
            out_.number(kInternedNumber, number);
            out_.text(kInternedName, name);
          });
        };
        intern(interned_data::kCategories, kEntryMethods, "entry methods");
        intern(interned_data::kCategories, kIdleness, kIdle);
        intern(interned_data::kCategories, kMessages, "messages");
        intern(interned_data::kCategories, kTransfers, "transfers");
        intern(interned_data::kCategories, kCalls, "calls of MPI");
        intern(interned_data::kAnnotationNames, kElement, "element");
        intern(interned_data::kAnnotationNames, kBytes, "bytes");
        intern(interned_data::kAnnotationNames, kPe, "PE");
        intern(interned_data::kAnnotationNames, kWaited, "waited (ns)");
      });
    });
    const auto pid = number_of_pe();
    describe(process_track(), [&] {
      out_.message(track::kProcess, [&] {
        out_.number(process::kPid, pid);
        out_.text(process::kName, traced_.process);
      });
    });
    describe(pe_track(), [&] {
      out_.number(track::kParent, process_track());
      out_.message(track::kThread, [&] {
        out_.number(thread::kPid, pid);
        out_.number(thread::kTid, pid);
        out_.text(thread::kName, base::format("PE {}", traced_.pe));
      });
    });
  }

  template <class Fill>
  void describe(std::uint64_t uuid, const Fill& fill) {
    packet([&] {
      out_.message(packet::kTrackDescriptor, [&] {
        out_.number(track::kUuid, uuid);
        fill();
      });
    });
  }

  // The number of a name. The first event with it brings it along.
  std::uint64_t interned(std::string_view name) {
    const auto [found, is_new] = names_.try_emplace(name, names_.size() + 1);
    if (is_new) {
      packet([&] {
        out_.message(packet::kInternedData, [&] {
          out_.message(interned_data::kEventNames, [&] {
            out_.number(kInternedNumber, found->second);
            out_.text(kInternedName, name);
          });
        });
      });
    }
    return found->second;
  }

  template <class Fill>
  void event(const TraceRecord& record, EventType type, const Fill& fill) {
    packet([&] {
      out_.number(packet::kTimestamp, static_cast<std::uint64_t>(record.time_ns + traced_.clock_offset_ns));
      out_.message(packet::kTrackEvent, [&] {
        out_.number(track_event::kType, static_cast<std::uint64_t>(type));
        fill();
      });
    });
  }
  void name_event(std::uint64_t name, Category category) {
    out_.number(track_event::kName, name);
    out_.number(track_event::kCategory, category);
  }
  void annotate(Annotation name, std::uint64_t value) {
    out_.message(track_event::kAnnotation, [&] {
      out_.number(kAnnotationName, name);
      out_.number(kAnnotationValue, value);
    });
  }

  void write_event(const TraceRecord& record) {
    // What a message runs begins at once. If it is not an entry method, the message itself is shown.
    if (delivered_ && record.kind() != TraceEvent::kEntryBegin) show_delivered();
    switch (record.kind()) {
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
        return end_transfer(record);
      case TraceEvent::kCallBegin:
        return begin_call(record);
      case TraceEvent::kCallEnd:
        return end_call(record);
      case TraceEvent::kIdleBegin: {
        const std::uint64_t name = interned(kIdle);
        return event(record, EventType::kSliceBegin, [&] { name_event(name, kIdleness); });
      }
      case TraceEvent::kIdleEnd:
        return event(record, EventType::kSliceEnd, [] {});
    }
  }

  void begin_entry(const TraceRecord& record) {
    const Run& run = runs_[record.number] = {shown(record.name()), record.value, true, 0};
    begin_slice(record, run, {});
  }
  void begin_slice(const TraceRecord& record, const Run& run, std::optional<std::int64_t> waited_ns) {
    const std::uint64_t name = interned(run.method);
    event(record, EventType::kSliceBegin, [&] {
      name_event(name, kEntryMethods);
      annotate(kElement, run.element);
      if (waited_ns) annotate(kWaited, static_cast<std::uint64_t>(*waited_ns));
      if (delivered_ && delivered_->number != 0) out_.fixed(track_event::kEndOfFlow, delivered_->number);
    });
    delivered_.reset();
  }
  // An event of a run that began before the first event in the ring is left out.
  void end_entry(const TraceRecord& record) {
    const auto run = runs_.find(record.number);
    if (run == runs_.end()) return;
    if (run->second.is_on_track) event(record, EventType::kSliceEnd, [] {});
    runs_.erase(run);
  }
  void suspend(const TraceRecord& record) {
    const auto run = runs_.find(record.number);
    if (run == runs_.end() || !run->second.is_on_track) return;
    run->second.is_on_track = false;
    run->second.suspended_ns = record.time_ns;
    event(record, EventType::kSliceEnd, [] {});
  }
  void resume(const TraceRecord& record) {
    const auto run = runs_.find(record.number);
    if (run == runs_.end() || run->second.is_on_track) return;
    run->second.is_on_track = true;
    begin_slice(record, run->second, record.time_ns - run->second.suspended_ns);
  }

  void show_send(const TraceRecord& record) {
    const std::uint64_t name = interned(kSendName);
    event(record, EventType::kInstant, [&] {
      name_event(name, kMessages);
      annotate(kPe, record.pe);
      annotate(kBytes, record.value);
      if (record.number != 0) out_.fixed(track_event::kFlow, record.number);
    });
  }
  void show_delivered() {
    const std::uint64_t name = interned(kMessageName);
    event(*delivered_, EventType::kInstant, [&] {
      name_event(name, kMessages);
      annotate(kPe, delivered_->pe);
      annotate(kBytes, delivered_->value);
      if (delivered_->number != 0) out_.fixed(track_event::kEndOfFlow, delivered_->number);
    });
    delivered_.reset();
  }

  void begin_transfer(const TraceRecord& record) {
    const std::uint64_t name = interned(recorder_.transfer_type(record));
    Path& path = paths_[record.name()];
    if (path.free_tracks.empty()) path.free_tracks.push_back(new_track(record.name()));
    const std::uint64_t track = path.free_tracks.back();
    path.free_tracks.pop_back();
    transfers_[record.number] = {&path, track};
    event(record, EventType::kSliceBegin, [&] {
      out_.number(track_event::kTrack, track);
      name_event(name, kTransfers);
      annotate(kBytes, record.value);
    });
  }
  void end_transfer(const TraceRecord& record) {
    const auto found = transfers_.find(record.number);
    if (found == transfers_.end()) return;  // its begin is not in the ring
    const auto [path, track] = found->second;
    path->free_tracks.push_back(track);
    transfers_.erase(found);
    event(record, EventType::kSliceEnd, [&] { out_.number(track_event::kTrack, track); });
  }
  std::uint64_t new_track(std::string_view name) {
    const std::uint64_t uuid = pe_track() + ++num_tracks_;
    describe(uuid, [&] {
      out_.number(track::kParent, process_track());
      out_.text(track::kName, name);
    });
    return uuid;
  }

  void begin_call(const TraceRecord& record) {
    const auto [caller, is_new] = callers_.try_emplace(record.number);
    if (is_new) {
      const int thread = thread_of_caller(record.number);
      std::string name = base::format("rank {}", rank_of_caller(record.number));
      if (thread != 0) name += base::format(", thread {}", thread);
      caller->second.track = new_track(name);
    }
    ++caller->second.depth;
    const std::uint64_t name = interned(record.name());
    event(record, EventType::kSliceBegin, [&] {
      out_.number(track_event::kTrack, caller->second.track);
      name_event(name, kCalls);
    });
  }
  // A call that began on another PE, or before the first event in the ring, is left out.
  void end_call(const TraceRecord& record) {
    const auto caller = callers_.find(record.number);
    if (caller == callers_.end() || caller->second.depth == 0) return;
    --caller->second.depth;
    event(record, EventType::kSliceEnd, [&] { out_.number(track_event::kTrack, caller->second.track); });
  }

  void flush() {
    file_.write(out_.bytes().data(), static_cast<std::streamsize>(out_.bytes().size()));
    out_.clear();
  }

  std::ofstream& file_;
  const Recorder& recorder_;
  const TracedPe& traced_;
  Protobuf out_;
  std::unordered_map<std::string_view, std::uint64_t> names_;
  std::unordered_map<std::uint64_t, Run> runs_;
  std::unordered_map<std::string_view, Path> paths_;
  std::unordered_map<std::uint64_t, Transfer> transfers_;
  std::unordered_map<std::uint64_t, Caller> callers_;
  std::uint64_t num_tracks_ = 0;
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
