#include "job/trace/packets.h"

#include "base/format.h"

namespace weft::job {

namespace {

// Numbers of fields, by message.
namespace packet {
constexpr int kInternedData = 12;
constexpr int kSequenceFlags = 13;
constexpr int kDefaults = 59;
constexpr int kTrackDescriptor = 60;
}  // namespace packet
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
namespace process_descriptor {
constexpr int kPid = 1;
constexpr int kName = 6;
}  // namespace process_descriptor
namespace thread_descriptor {
constexpr int kPid = 1;
constexpr int kTid = 2;
constexpr int kName = 5;
}  // namespace thread_descriptor

constexpr std::uint64_t kStateCleared = 1;  // of the sequence

// In the order of the numbers.
constexpr std::string_view kCategories[] = {"entry methods", "idle",       "messages", "transfers",
                                            "calls of MPI",  "operations", "moves",    "device work"};
constexpr std::string_view kAnnotations[] = {"element", "bytes", "PE", "waited (ns)", "number"};

}  // namespace

Packets::Packets(std::ofstream& file, int pe, std::string_view process, std::int64_t clock_offset_ns)
    : file_(file), pe_(pe), clock_offset_ns_(clock_offset_ns) {
  write_names();
  write_tracks(process);
}

void Packets::write_names() {
  packet([&] {
    out_.number(packet::kSequenceFlags, kStateCleared);
    out_.message(packet::kDefaults, [&] {
      out_.message(kDefaultsOfTrackEvents, [&] { out_.number(kDefaultTrack, main_track()); });
    });
    out_.message(packet::kInternedData, [&] {
      const auto intern = [&](int field, std::uint64_t number, std::string_view name) {
        out_.message(field, [&] {
          out_.number(kInternedNumber, number);
          out_.text(kInternedName, name);
        });
      };
      std::uint64_t number = 0;
      for (const std::string_view name : kCategories) intern(interned_data::kCategories, ++number, name);
      number = 0;
      for (const std::string_view name : kAnnotations)
        intern(interned_data::kAnnotationNames, ++number, name);
    });
  });
}

template <class Fill>
void Packets::describe(std::uint64_t uuid, const Fill& fill) {
  packet([&] {
    out_.message(packet::kTrackDescriptor, [&] {
      out_.number(track_descriptor::kUuid, uuid);
      fill();
    });
  });
}

void Packets::write_tracks(std::string_view process) {
  const auto pid = number_of_pe();
  describe(process_track(), [&] {
    out_.message(track_descriptor::kProcess, [&] {
      out_.number(process_descriptor::kPid, pid);
      out_.text(process_descriptor::kName, process);
    });
  });
  describe(main_track(), [&] {
    out_.number(track_descriptor::kParent, process_track());
    out_.message(track_descriptor::kThread, [&] {
      out_.number(thread_descriptor::kPid, pid);
      out_.number(thread_descriptor::kTid, pid);
      out_.text(thread_descriptor::kName, base::format("PE {}", pe_));
    });
  });
}

template <class Fill>
std::uint64_t Packets::make_track(std::string_view name, const Fill& fill) {
  const std::uint64_t uuid = process_track() + ++num_tracks_;
  describe(uuid, [&] {
    out_.number(track_descriptor::kParent, process_track());
    out_.text(track_descriptor::kName, name);
    fill();
  });
  return uuid;
}

std::uint64_t Packets::new_track(std::string_view name) {
  return make_track(name, [] {});
}

std::uint64_t Packets::new_counter_track(std::string_view name) {
  return make_track(name, [this] { out_.message(track_descriptor::kCounter, [] {}); });
}

std::uint64_t Packets::interned(std::string_view name) {
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

void Packets::annotate(Annotation name, std::uint64_t value) {
  out_.message(track_event::kAnnotation, [&] {
    out_.number(kAnnotationName, static_cast<std::uint64_t>(name));
    out_.number(kAnnotationValue, value);
  });
}

void Packets::flush() {
  file_.write(out_.bytes().data(), static_cast<std::streamsize>(out_.bytes().size()));
  out_.clear();
}

}  // namespace weft::job
