// The bundles of aggregated calls: filling, sending, and running the calls of those that arrive. README.md has the format.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/chare/bundles/aggregated.h"
#include "weft/runtime/registry.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "machine/message_sizes.h"
#include "models/chare/bundles/bundle_format.h"
#include "models/chare/bundles/grid.h"
#include "models/chare/elements/parts.h"
#include "runtime/losses/losses.h"

namespace weft::chare {

using runtime::Message;
using runtime::MessagePtr;

namespace {

// How often the turn that sends open bundles gives way to other work. A program that polls in its own coroutine always has some.
constexpr int kMostPasses = 64;
// The bounds of what one PE's bundles that have overtaken an earlier one may take here. Large bundles may wait for UCX to connect the PEs
// while small ones overtake them, but no program of Weft comes near these.
constexpr std::uint64_t kMostHeld = std::uint64_t{1} << 20;
constexpr std::size_t kMostHeldBytes = std::size_t{64} << 20;

template <class Value>
Value read(const std::byte* from) {
  Value value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Returns where the arguments go.
std::byte* write_pe(std::byte* to, int pe) {
  const auto number = static_cast<PeNumber>(pe);
  std::memcpy(to, &number, sizeof number);
  return to + sizeof number;
}

// Calls visit(run, at) for each run of a bundle: its header, and where its calls begin. The calls of the run are in the bundle.
template <class Visit>
void for_each_run(Message& message, const Visit& visit) {
  const std::byte* at = message.payload() + sizeof(BundleHeader);
  std::size_t left_bytes = message.payload_bytes() - sizeof(BundleHeader);
  while (left_bytes > 0) {
    RunHeader run;
    if (left_bytes >= sizeof run) run = read<RunHeader>(at);
    if (left_bytes < sizeof run || run.argument_bytes > Bundles::kMostArgumentBytes ||
        run.named > NamedPe::kSource || run.num_calls > (left_bytes - sizeof run) / run.call_bytes()) {
      base::refuse_claim(base::format("a bundle from PE {} has {} calls of {} bytes in its last {} bytes",
                                      message.envelope().source_pe, run.num_calls, run.call_bytes(),
                                      left_bytes));
    }
    at += sizeof run;
    visit(run, at);
    at += run.num_calls * run.call_bytes();
    left_bytes -= sizeof run + run.num_calls * run.call_bytes();
  }
}

// Of arguments that are in the message.
inline Pup unpacker_of(std::span<const std::byte> arguments, Message& message) {
  Pup p = Pup::unpacker(arguments.data(), arguments.size(), &message.runtime());
  p.set_carrier(&message);
  return p;
}

[[noreturn, gnu::cold]] void refuse_while_packing() {
  throw base::Error(base::StatusCode::kInvalidArgument,
                    "an argument of an aggregated call makes aggregated calls itself while it is packed; "
                    "make them before");
}

}  // namespace

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

// A call in a bundle that has arrived.
struct Bundles::Call {
  LinearIndex index;
  std::uint32_t source_pe;       // has made it
  std::uint32_t destination_pe;  // it is for a chare there
  std::span<const std::byte> arguments;

  // The PEs are claims.
  static Call read_at(const std::byte* at, const RunHeader& run, std::uint32_t from_pe,
                      std::uint32_t own_pe) {
    Call call{read<LinearIndex>(at), from_pe, own_pe, {}};
    at += sizeof(LinearIndex);
    if (run.named != NamedPe::kNone) [[unlikely]] {
      (run.named == NamedPe::kSource ? call.source_pe : call.destination_pe) = read<PeNumber>(at);
      at += sizeof(PeNumber);
    }
    call.arguments = {at, run.argument_bytes};
    return call;
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
  std::map<std::uint64_t, MessagePtr> held;  // have overtaken the next one
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

// --- Bundles that arrive

void Bundles::on_bundle(MessagePtr message) {
  const std::uint32_t from = message->envelope().source_pe;
  const std::size_t size_bytes = message->payload_bytes();
  if (from >= sources_.size() || size_bytes < sizeof(BundleHeader) || size_bytes > kBundleBytes) {
    base::refuse_claim(base::format("a bundle of calls of {} bytes arrived from PE {} of {}", size_bytes,
                                    from, sources_.size()));
  }
  if ((message->envelope().flags & runtime::kControlFlag) != 0) [[unlikely]] {  // see send()
    runtime_.part_handled(static_cast<int>(from), machine::kSentMessageBytes);
    runtime_.count_processed();
  }
  Source& source = sources_[from];
  const auto number = read<BundleHeader>(message->payload()).number;
  // A bundle to be passed on may arrive while an argument is packed into another one.
  if (number != source.next_number || is_packing_) return hold(source, number, std::move(message));
  ++source.next_number;
  handle(*message);
  handle_held(source);
}

void Bundles::hold(Source& source, std::uint64_t number, MessagePtr message) {
  const std::size_t size_bytes = message->payload_bytes();
  const std::uint32_t from = message->envelope().source_pe;
  if (number - source.next_number > kMostHeld || source.held_bytes + size_bytes > kMostHeldBytes ||
      !source.held.try_emplace(number, std::move(message)).second) {
    base::refuse_claim(
        base::format("bundle {} of calls arrived from PE {}, where bundle {} is the next and {} bytes of "
                     "later ones wait",
                     number, from, source.next_number, source.held_bytes));
  }
  source.held_bytes += size_bytes;
  runtime_.count_sent();  // it has not been handled
  if (number != source.next_number) return;
  turn_->finds_held = has_passed_ = true;
  if (!std::exchange(turn_->is_posted, true)) runtime_.post(&turn_->work);
}

void Bundles::handle_held(Source& source) {
  while (!source.held.empty() && source.held.begin()->first == source.next_number) {
    const MessagePtr next = std::move(source.held.extract(source.held.begin()).mapped());
    ++source.next_number;
    source.held_bytes -= next->payload_bytes();
    runtime_.count_processed();
    handle(*next);
  }
}

// Handles those that came to be passed on during a Packing.
void Bundles::handle_found() {
  if (std::exchange(turn_->finds_held, false))
    std::ranges::for_each(sources_, [this](Source& source) { handle_held(source); });
}

void Bundles::handle(Message& message) {
  if (message.envelope().handler == handler_) {
    run(message);
  } else {
    pass_on(message);
  }
}

// The bundles that the held ones wait for may never arrive.
void Bundles::on_loss(int pe) {
  Source& source = sources_[static_cast<std::size_t>(pe)];
  for (std::size_t i = 0; i < source.held.size(); ++i) runtime_.count_processed();
  source.held.clear();
  source.held_bytes = 0;
}

void Bundles::run(Message& message) {
  for_each_run(message, [&](const RunHeader& run, const std::byte* at) {
    if (runtime_.ending()) [[unlikely]]
      return;
    expect_named(run, message);
    Collection& target = chares_.collection(run.collection);
    const EntryInfo* const entry = runtime::Registry<EntryInfo>::find(run.entry);
    EntryHeader header{run.collection, 0, run.entry, run.move, {}};
    if (target.created_ && !target.destroyed_ && (entry == nullptr || entry->type != target.type()))
      return chares_.parts_->fail_unfit(header);
    const std::size_t call_bytes = run.call_bytes();
    const bool names_pe = run.named != NamedPe::kNone;
    const auto call_at = [&] {
      return Call::read_at(at, run, message.envelope().source_pe, static_cast<std::uint32_t>(runtime_.pe()));
    };
    for (std::uint32_t i = 0; i < run.num_calls; ++i, at += call_bytes) {
      if (runtime_.ending()) [[unlikely]]
        return;
      if (names_pe) [[unlikely]]
        begin_named(call_at(), call_bytes, message.envelope().source_pe);
      header.index = read<LinearIndex>(at);
      ChareBase* const chare = target.created_ ? target.find(header.index) : nullptr;
      if (chare == nullptr) [[unlikely]] {
        run_elsewhere(target, header, call_at());
        continue;
      }
      const std::span<const std::byte> arguments(at + call_bytes - run.argument_bytes, run.argument_bytes);
      chares_.parts_->invoke(*chare, *entry, unpacker_of(arguments, message), {});
    }
  });
}

// The call counts as handled for the PE that has made it.
void Bundles::begin_named(const Call& call, std::size_t call_bytes, std::uint32_t from_pe) {
  if (call.destination_pe != static_cast<std::uint32_t>(runtime_.pe()) || !goes_this_way(call, from_pe))
    refuse_pe(call, from_pe);
  runtime_.part_handled(static_cast<int>(call.source_pe), call_bytes);
}

// The chare is elsewhere, or not made yet: the call goes on as a message of its own.
void Bundles::run_elsewhere(Collection& target, const EntryHeader& header, const Call& call) {
  MessagePtr alone = chares_.make_entry_message(header, call.arguments.size());
  std::memcpy(alone->payload() + sizeof header, call.arguments.data(), call.arguments.size());
  alone->envelope().source_pe = call.source_pe;  // it is told where the chare is
  chares_.parts_->keep_or_forward(target, header, std::move(alone));
}

// Runs no code of the program and never waits, because it runs inside progress().
void Bundles::pass_on(Message& message) {
  if (grid_ == nullptr) {
    base::refuse_claim(base::format("a bundle from PE {} is to be passed on, and this PE has no grid",
                                    message.envelope().source_pe));
  }
  const auto own_pe = static_cast<std::uint32_t>(runtime_.pe());
  const std::uint32_t from_pe = message.envelope().source_pe;
  for_each_run(message, [&](const RunHeader& run, const std::byte* at) {
    if (runtime_.ending()) return;
    expect_named(run, message);
    RunHeader passed = run;
    passed.num_calls = 0;
    passed.named = NamedPe::kSource;
    const std::size_t call_bytes = run.call_bytes();
    for (std::uint32_t i = 0; i < run.num_calls; ++i, at += call_bytes) {
      const Call call = Call::read_at(at, run, from_pe, own_pe);
      if (!goes_this_way(call, from_pe)) refuse_pe(call, from_pe);
      Open& open = *ways_[call.destination_pe];
      if (!open.has_room_for(run.argument_bytes)) send(open);
      std::byte* const at_pe = open.begin_call(passed, call.index);
      std::ranges::copy(call.arguments, write_pe(at_pe, static_cast<int>(call.source_pe)));
      ++open.num_passed;
      if (open.end_call()) list(open);
    }
  });
  has_passed_ = true;
}

// Whether PE `from_pe` sends the call to this PE. A false one would circle, or be charged to a PE that has not made it.
bool Bundles::goes_this_way(const Call& call, std::uint32_t from_pe) const {
  const auto own_pe = static_cast<std::uint32_t>(runtime_.pe());
  if (call.source_pe >= sources_.size() || call.destination_pe >= sources_.size()) return false;
  const auto next = [this](std::uint32_t from, std::uint32_t to) {
    return static_cast<std::uint32_t>(grid_->next(static_cast<int>(from), static_cast<int>(to)));
  };
  if (call.destination_pe != own_pe) return next(from_pe, call.destination_pe) == own_pe;
  // A bundle of this PE to itself has calls that it has checked before.
  return call.source_pe == from_pe || from_pe == own_pe || next(call.source_pe, own_pe) == from_pe;
}

void Bundles::expect_named(const RunHeader& run, const Message& message) const {
  if ((run.named != NamedPe::kNone) == (grid_ != nullptr)) [[likely]]
    return;
  base::refuse_claim(base::format("a bundle from PE {} {} the PEs of its calls, and this PE has {} grid",
                                  message.envelope().source_pe, grid_ ? "does not name" : "names",
                                  grid_ ? "a" : "no"));
}

void Bundles::refuse_pe(const Call& call, std::uint32_t from_pe) const {
  base::refuse_claim(
      base::format("a bundle from PE {} to PE {} has a call of PE {} to PE {}, which does not go "
                   "this way between {} PEs",
                   from_pe, runtime_.pe(), call.source_pe, call.destination_pe, sources_.size()));
}

}  // namespace weft::chare
