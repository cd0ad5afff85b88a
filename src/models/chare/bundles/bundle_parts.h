// What Bundles is made of: a bundle that is being filled, what has come from a PE, and the turn in which bundles are sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>

#include "weft/chare/bundles/aggregated.h"
#include "weft/runtime/message.h"
#include "weft/runtime/runtime.h"

#include "models/chare/bundles/bundle_format.h"
#include "runtime/owned_work.h"

namespace weft::chare {

// The number of a PE in front of arguments. Returns where these go.
inline std::byte* write_pe(std::byte* to, int pe) {
  const auto number = static_cast<PeNumber>(pe);
  std::memcpy(to, &number, sizeof number);
  return to + sizeof number;
}

// The bundle to one PE that is being filled.
struct Bundles::Open {
  int pe = 0;
  NamedPe named = NamedPe::kNone;      // by the calls that this PE makes
  std::unique_ptr<std::byte[]> bytes;  // null before the first call
  std::size_t used_bytes = sizeof(BundleHeader);
  std::size_t run_at = 0;  // where the header of the last run goes; 0: there is none
  RunHeader last_run;
  std::size_t call_bytes = 0;  // of each call of the last run
  std::uint32_t num_calls = 0;
  std::uint32_t num_passed = 0;  // of these: calls that other PEs have made
  bool is_listed = false;
  std::unique_ptr<Room> room;  // null until the PE has had no room
  std::uint64_t next_number = 0;

  bool has_been_used() const { return bytes != nullptr; }
  // Whether the PE that gets it passes calls on.
  bool is_passed_on() const { return named == NamedPe::kDestination; }
  bool has_room_for(std::size_t argument_bytes) const {
    constexpr std::size_t kMostBesides = sizeof(RunHeader) + sizeof(LinearIndex) + sizeof(PeNumber);
    return used_bytes + kMostBesides + argument_bytes <= kBundleBytes;
  }
  // Returns the place for the arguments of a call of such a run, or for the number of the PE in front of them if the call names one.
  // REQUIRES: has_room_for(run.argument_bytes).
  std::byte* begin_call(const RunHeader& run, LinearIndex index) {
    if (bytes == nullptr) [[unlikely]]
      bytes = std::make_unique<std::byte[]>(kBundleBytes);
    if (!continues(run)) begin_run(run);
    std::byte* const to = bytes.get() + used_bytes;
    std::memcpy(to, &index, sizeof index);
    return to + sizeof index;
  }
  bool continues(const RunHeader& other) const {
    return run_at != 0 && last_run.collection == other.collection && last_run.entry == other.entry &&
           last_run.move == other.move && last_run.argument_bytes == other.argument_bytes &&
           last_run.named == other.named;
  }
  void begin_run(const RunHeader& header) {
    if (run_at != 0 && last_run.num_calls == 0) used_bytes = run_at;  // the packing of its call has failed
    end_run();
    last_run = header;
    call_bytes = header.call_bytes();
    run_at = used_bytes;
    used_bytes += sizeof header;
  }
  // The arguments are there. Returns whether it is the first call.
  bool end_call() {
    ++last_run.num_calls;
    used_bytes += call_bytes;
    return num_calls++ == 0;
  }
  void clear() {
    used_bytes = sizeof(BundleHeader);
    run_at = 0;
    num_calls = num_passed = 0;
  }
  void end_run() {
    if (run_at != 0) std::memcpy(bytes.get() + run_at, &last_run, sizeof last_run);
  }
};

// Sends the bundle to a PE when that PE has room.
struct Bundles::Room final : runtime::Work {
  Room(Bundles& owner_in, Open& open_in) : Work(&Room::call), owner(owner_in), open(open_in) {}
  static void call(Work* self, runtime::Runtime& /*runtime*/, runtime::WorkAction action) {
    auto& room = *static_cast<Room*>(self);
    room.is_awaited = false;
    if (action == runtime::WorkAction::kRun) room.owner.send_if_room(room.open);
  }
  Bundles& owner;
  Open& open;
  bool is_awaited = false;
};

// The bundles that come from one PE.
struct Bundles::Source {
  std::uint64_t next_number = 0;
  std::map<std::uint64_t, runtime::MessagePtr> held;  // have overtaken the next one
  std::size_t held_bytes = 0;
};

struct Bundles::Turn {
  explicit Turn(Bundles& owner) : work(owner) {}
  runtime::OwnedWork<&Bundles::turn> work;
  bool is_posted = false;
  bool finds_held = false;  // the next bundle of a source is held
  bool has_polled = false;  // the queue was empty, and the network has been polled since
  int passes = 0;
};

}  // namespace weft::chare
