// The bundles of aggregated calls: filling and sending. README.md has the format; arrivals.cpp runs the calls.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/chare/bundles/aggregated.h"

#include "machine/message_sizes.h"
#include "models/chare/bundles/bundle_format.h"
#include "models/chare/bundles/bundle_parts.h"
#include "models/chare/bundles/grid.h"
#include "models/chare/elements/parts.h"
#include "runtime/losses/losses.h"

namespace weft::chare {

using runtime::Message;
using runtime::MessagePtr;

namespace {

// How often the turn that sends open bundles gives way to other work. A program that polls in its own coroutine always has some.
constexpr int kMostPasses = 64;

[[noreturn, gnu::cold]] void refuse_while_packing() {
  throw base::Error(base::StatusCode::kInvalidArgument,
                    "an argument of an aggregated call makes aggregated calls itself while it is packed; "
                    "make them before");
}

}  // namespace

Bundles::Bundles(Chares& chares, FeatureTable& features)
    : chares_(chares),
      runtime_(chares.runtime()),
      handler_(features.add_handlers<&Bundles::on_bundle, &Bundles::on_bundle>(*this)),
      sources_(static_cast<std::size_t>(runtime_.num_pes())),
      turn_(std::make_unique<Turn>(*this)) {
  runtime_.set_urgent_handler(
      handler_ + 1,
      [](void* self, MessagePtr message) { static_cast<Bundles*>(self)->on_bundle(std::move(message)); },
      this);
  runtime_.losses().on_loss([this](int pe) { on_loss(pe); });
  // A call between two PEs must not be lost with a third one.
  const bool has_grid = runtime_.num_pes() >= kLeastGridPes && !runtime_.losses().are_survived();
  set_ways(has_grid ? Ways::kGrid : Ways::kDirect);
}

void Bundles::set_ways(Ways ways) {
  if (std::ranges::any_of(open_, &Open::has_been_used)) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      "the ways of aggregated calls are set before the first one");
  }
  const int num_pes = runtime_.num_pes();
  grid_ = std::make_unique<const Grid>(ways == Ways::kGrid ? Grid(num_pes, runtime_.host_groups()) : Grid());
  const bool has_grid = !grid_->is_direct();
  if (!has_grid) grid_.reset();
  std::vector<int> next(sources_.size());
  std::vector<std::size_t> places(sources_.size());  // in open_
  open_.clear();
  for (int pe = 0; pe < num_pes; ++pe) {
    const auto at = static_cast<std::size_t>(pe);
    next[at] = has_grid ? grid_->next(runtime_.pe(), pe) : pe;
    if (next[at] != pe) continue;
    places[at] = open_.size();
    open_.emplace_back().pe = pe;
    if (has_grid) open_.back().named = NamedPe::kSource;
  }
  const auto hook = [](void* self) { return static_cast<Bundles*>(self)->send_passed(); };
  runtime_.set_progress_hook(has_grid ? +hook : nullptr, this);
  ways_.clear();
  for (int pe = 0; pe < num_pes; ++pe) {
    const int through = next[static_cast<std::size_t>(pe)];
    Open& open = open_[places[static_cast<std::size_t>(through)]];
    if (through != pe) open.named = NamedPe::kDestination;
    ways_.push_back(&open);
  }
}

Bundles::~Bundles() = default;

void Bundles::close() {
  runtime_.set_progress_hook(nullptr, nullptr);
  for (Source& source : sources_) source.held.clear();
  listed_.clear();
}

// --- Filling

Bundles::Place Bundles::place(Collection& collection, std::uint64_t index, IsHere is_here,
                              const EntryInfo& entry, std::size_t argument_bytes) {
  collection.expect_alive();
  if (is_packing_) [[unlikely]]
    refuse_while_packing();
  if (runtime_.meter().counts_messages()) [[unlikely]]
    runtime_.meter().count_message({collection.id(), index}, argument_bytes);
  runtime::Whereabouts at{runtime_.pe(), 0};
  if (is_here == IsHere::kNo) {
    at = collection.elements_->directory.whereabouts(index, collection.home(index));
  }
  Open& open = *ways_[static_cast<std::size_t>(at.pe)];
  const RunHeader run{collection.id(), entry.id, at.move, static_cast<std::uint32_t>(argument_bytes), 0,
                      open.named};
  // Where calls are passed on, each is charged to the account with its destination: other PEs send it there.
  if (run.named != NamedPe::kNone) [[unlikely]] {
    if (!runtime_.await_room(at.pe, run.call_bytes())) drop(open);
  }
  if (!open.has_room_for(argument_bytes)) [[unlikely]]
    send_full(open, argument_bytes);
  std::byte* arguments = open.begin_call(run, index);
  if (run.named != NamedPe::kNone) [[unlikely]]
    arguments = write_pe(arguments, open.is_passed_on() ? at.pe : runtime_.pe());
  return {arguments, at.pe};
}

void Bundles::commit(const Place& place) {
  Open& open = *ways_[static_cast<std::size_t>(place.pe)];
  if (open.named != NamedPe::kNone) [[unlikely]]
    runtime_.charge_part(place.pe, open.call_bytes);
  if (open.end_call()) [[unlikely]]
    list(open);
}

int Bundles::first_pe_to(int pe) const { return ways_[static_cast<std::size_t>(pe)]->pe; }

// The bundle has its first call.
void Bundles::list(Open& open) {
  // For quiescence an open bundle is a message that has not been handled.
  runtime_.count_sent();
  if (!std::exchange(open.is_listed, true)) listed_.push_back(&open);
  if (!std::exchange(turn_->is_posted, true)) runtime_.post(&turn_->work);
}

// --- Sending

// Never waits. The bundle is empty before code of the program can run.
void Bundles::send(Open& open) {
  open.end_run();
  const BundleHeader header{open.next_number};
  std::memcpy(open.bytes.get(), &header, sizeof header);
  const auto handler = static_cast<runtime::HandlerId>(handler_ + (open.is_passed_on() ? 1 : 0));
  MessagePtr message = Message::create(runtime_, handler, open.used_bytes);
  std::memcpy(message->payload(), open.bytes.get(), open.used_bytes);
  if (open.is_passed_on()) message->envelope().flags |= runtime::kUrgentFlag;
  const bool has_passed = open.num_passed > 0;
  ++open.next_number;
  open.clear();
  if (has_passed) [[unlikely]] {
    // Its calls are in the accounts of the PEs that have made them. list() has counted it for quiescence.
    message->envelope().flags |= runtime::kControlFlag;
    runtime_.charge_part(open.pe, machine::kSentMessageBytes);
    return runtime_.send(open.pe, std::move(message));
  }
  runtime_.send(open.pe, std::move(message));
  runtime_.count_processed();  // the message counts from now on
}

// For a call of the program, which has more arguments than there is room for.
void Bundles::send_full(Open& open, std::size_t argument_bytes) {
  if (!runtime_.await_room(open.pe, open.used_bytes)) return drop(open);
  if (!open.has_room_for(argument_bytes)) send(open);  // others may have sent it meanwhile
}

// The job ends.
void Bundles::drop(Open& open) {
  if (open.num_calls == 0) return;
  open.clear();
  runtime_.count_processed();
}

void Bundles::flush() {
  if (is_packing_) [[unlikely]]
    refuse_while_packing();
  // Calls that arrive during a wait list more bundles. NOLINTNEXTLINE(modernize-loop-convert)
  for (std::size_t i = 0; i < listed_.size(); ++i) {
    Open& open = *listed_[i];
    if (open.num_calls == 0) continue;
    if (!runtime_.await_room(open.pe, open.used_bytes)) {
      drop(open);
    } else if (open.num_calls > 0) {
      send(open);
    }
  }
}

void Bundles::send_own() {
  Open& own = *ways_[static_cast<std::size_t>(runtime_.pe())];
  if (own.num_calls == own.num_passed) [[likely]]
    return;
  if (is_packing_) [[unlikely]]
    refuse_while_packing();
  send(own);
}

// Sends what is open when the PE has nothing else to do: its queue is empty, and a poll of the network has brought nothing.
void Bundles::turn() {
  Turn& turn = *turn_;
  handle_found();
  if (++turn.passes < kMostPasses) {
    if (!runtime_.queue_empty()) {
      turn.has_polled = false;
      return runtime_.post(&turn.work);
    }
    if (!std::exchange(turn.has_polled, true)) return runtime_.post_for_next_turn(&turn.work);
  }
  turn.is_posted = turn.has_polled = false;
  turn.passes = 0;
  std::vector<Open*> listed;
  listed.swap(listed_);
  for (Open* const open : listed) {
    open->is_listed = false;
    send_if_room(*open);
  }
}

// Inside progress(), and while a call waits: no other PE's call stays here until this PE has a turn. Returns whether it has done anything.
bool Bundles::send_passed() {
  if (!has_passed_ || is_packing_) [[likely]]
    return false;
  handle_found();
  has_passed_ = false;
  bool has_sent = false;
  // An observer of the sending may list more. NOLINTNEXTLINE(modernize-loop-convert)
  for (std::size_t i = 0; i < listed_.size(); ++i) {
    Open& open = *listed_[i];
    if (open.num_passed == 0 || open.pe == runtime_.pe()) continue;
    if (runtime_.has_room(open.pe)) {
      send(open);
      has_sent = true;
    } else {
      has_passed_ = true;
    }
  }
  return has_sent;
}

// Without room the bundle stays open, and is sent when there is some: no caller could wait here.
void Bundles::send_if_room(Open& open) {
  if (open.num_calls == 0) return;
  if (runtime_.has_room(open.pe)) return send(open);
  if (!std::exchange(open.is_listed, true)) listed_.push_back(&open);
  if (open.room == nullptr) open.room = std::make_unique<Room>(*this, open);
  if (!std::exchange(open.room->is_awaited, true)) runtime_.when_room(open.pe, open.room.get());
}

}  // namespace weft::chare
