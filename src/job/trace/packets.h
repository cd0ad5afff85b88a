// Packets of Perfetto (TrackEvent) about one PE, written one after the other into a file.
//
// Source: protos/perfetto/trace/ of Perfetto; https://perfetto.dev/docs/reference/synthetic-track-event.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string_view>
#include <unordered_map>

#include "job/trace/protobuf.h"

namespace weft::job {

// Numbers of fields, by message.
namespace track_event {
inline constexpr int kCategory = 3;
inline constexpr int kAnnotation = 4;
inline constexpr int kType = 9;
inline constexpr int kName = 10;
inline constexpr int kTrack = 11;
inline constexpr int kCounterValue = 30;
inline constexpr int kFlow = 47;
inline constexpr int kEndOfFlow = 48;
}  // namespace track_event
namespace track_descriptor {
inline constexpr int kUuid = 1;
inline constexpr int kName = 2;
inline constexpr int kProcess = 3;
inline constexpr int kThread = 4;
inline constexpr int kParent = 5;
inline constexpr int kCounter = 8;
}  // namespace track_descriptor

enum class PacketType : std::uint8_t { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4 };

// Names that the packets of each PE have. The reader in python/weft/_trace knows them.
enum class Category : std::uint8_t {
  kEntryMethods = 1,
  kIdleness,
  kMessages,
  kTransfers,
  kCalls,
  kSpans,
  kMoves,
  kDeviceWork,
};
enum class Annotation : std::uint8_t { kElement = 1, kBytes, kPe, kWaited, kNumber };

class Packets {
 public:
  // `process`: a name for people. `clock_offset_ns`: added to each time.
  Packets(std::ofstream& file, int pe, std::string_view process, std::int64_t clock_offset_ns);
  Packets(const Packets&) = delete;
  Packets& operator=(const Packets&) = delete;
  ~Packets() { flush(); }

  // The track of an event that names none.
  std::uint64_t main_track() const { return process_track() + 1; }
  // A track of its own below that of the PE.
  std::uint64_t new_track(std::string_view name);
  std::uint64_t new_counter_track(std::string_view name);

  // `track`: 0 for the main track.
  void begin_slice(std::int64_t time_ns, std::uint64_t track, std::string_view name, Category category) {
    begin_slice(time_ns, track, name, category, [] {});
  }
  // fill() calls annotate(), begin_flow() and end_flow().
  template <class Fill>
  void begin_slice(std::int64_t time_ns, std::uint64_t track, std::string_view name, Category category,
                   const Fill& fill) {
    named(PacketType::kSliceBegin, time_ns, track, name, category, fill);
  }
  void end_slice(std::int64_t time_ns, std::uint64_t track) {
    event(PacketType::kSliceEnd, time_ns, track, [] {});
  }
  // All on the main track.
  template <class Fill>
  void instant(std::int64_t time_ns, std::string_view name, Category category, const Fill& fill) {
    named(PacketType::kInstant, time_ns, 0, name, category, fill);
  }
  void count(std::int64_t time_ns, std::uint64_t track, std::uint64_t value) {
    event(PacketType::kCounter, time_ns, track, [&] { out_.number(track_event::kCounterValue, value); });
  }

  void annotate(Annotation name, std::uint64_t value);
  // An arrow from here to each event that ends it.
  void begin_flow(std::uint64_t number) { out_.fixed(track_event::kFlow, number); }
  void end_flow(std::uint64_t number) { out_.fixed(track_event::kEndOfFlow, number); }

 private:
  static constexpr int kPacket = 1;
  static constexpr int kSequence = 10;
  static constexpr int kTimestamp = 8;
  static constexpr int kTrackEvent = 11;
  static constexpr std::size_t kFlushBytes = 1 << 20;

  // From 1, because 0 stands for none.
  std::uint64_t number_of_pe() const { return static_cast<std::uint64_t>(pe_) + 1; }
  std::uint64_t process_track() const { return number_of_pe() << 32; }

  template <class Fill>
  void packet(const Fill& fill) {
    out_.message(kPacket, [&] {
      out_.number(kSequence, number_of_pe());
      fill();
    });
    if (out_.bytes().size() >= kFlushBytes) flush();
  }
  template <class Fill>
  void event(PacketType type, std::int64_t time_ns, std::uint64_t track, const Fill& fill) {
    packet([&] {
      out_.number(kTimestamp, static_cast<std::uint64_t>(time_ns + clock_offset_ns_));
      out_.message(kTrackEvent, [&] {
        out_.number(track_event::kType, static_cast<std::uint64_t>(type));
        if (track != 0) out_.number(track_event::kTrack, track);
        fill();
      });
    });
  }
  template <class Fill>
  void named(PacketType type, std::int64_t time_ns, std::uint64_t track, std::string_view name,
             Category category, const Fill& fill) {
    const std::uint64_t number = interned(name);
    event(type, time_ns, track, [&] {
      out_.number(track_event::kName, number);
      out_.number(track_event::kCategory, static_cast<std::uint64_t>(category));
      fill();
    });
  }
  template <class Fill>
  void describe(std::uint64_t uuid, const Fill& fill);
  template <class Fill>
  std::uint64_t make_track(std::string_view name, const Fill& fill);
  void write_names();
  void write_tracks(std::string_view process);
  // The number of a name. The first event with it brings it along.
  std::uint64_t interned(std::string_view name);
  void flush();

  std::ofstream& file_;
  int pe_;
  std::int64_t clock_offset_ns_;
  Protobuf out_;
  std::unordered_map<std::string_view, std::uint64_t> names_;
  std::uint64_t num_tracks_ = 1;
};

}  // namespace weft::job
