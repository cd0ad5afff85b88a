// The bundles of aggregated calls: filling, sending, and running the calls of those that arrive. README.md has the format.
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
#include "models/chare/bundles/bundle_format.h"
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

using LinearIndex = std::uint64_t;

template <class Header>
Header read(const std::byte* from) {
  Header header;
  std::memcpy(&header, from, sizeof header);
  return header;
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

[[noreturn, gnu::cold]] void refuse_while_sending(int pe) {
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      base::format("an aggregated call to PE {} is made inside of one that waits for room there, as in a "
                   "signal handler: call the proxy itself",
                   pe));
}

}  // namespace

// The bundle to one PE that is being filled.
struct Bundles::Open {
  std::unique_ptr<std::byte[]> bytes;  // null before the first call
  std::size_t used_bytes = sizeof(BundleHeader);
  std::size_t run_at = 0;  // where the header of the last run goes; 0: there is none
  RunHeader last_run;
  std::uint32_t num_calls = 0;
  bool is_listed = false;      // in open_pes_
  std::unique_ptr<Room> room;  // null until the PE has had no room
  std::uint64_t next_number = 0;

  bool is_being_sent() const { return used_bytes > kBundleBytes; }
  bool continues(const RunHeader& other) const {
    return run_at != 0 && last_run.collection == other.collection && last_run.entry == other.entry &&
           last_run.move == other.move && last_run.argument_bytes == other.argument_bytes;
  }
  void begin_run(const RunHeader& header) {
    if (run_at != 0 && last_run.num_calls == 0) used_bytes = run_at;  // the packing of its call has failed
    end_run();
    last_run = header;
    run_at = used_bytes;
    used_bytes += sizeof header;
  }
  void end_run() {
    if (run_at != 0) std::memcpy(bytes.get() + run_at, &last_run, sizeof last_run);
  }
};

// While it lives, the bundle takes no call: its bytes are in a message, and the send may run code of the program, such as a signal
// handler while it waits for room.
class Bundles::Sending {
 public:
  explicit Sending(Open& open) : open_(open), used_bytes_(std::exchange(open.used_bytes, kBundleBytes + 1)) {}
  ~Sending() { open_.used_bytes = used_bytes_; }
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;
  // The bundle is empty afterwards.
  void succeeded() { used_bytes_ = sizeof(BundleHeader); }

 private:
  Open& open_;
  std::size_t used_bytes_;
};

// Sends the bundle to a PE when that PE has room.
struct Bundles::Room final : runtime::Work {
  Room(Bundles& owner_in, int pe_in) : Work(&Room::call), owner(owner_in), pe(pe_in) {}
  static void call(Work* self, runtime::Runtime& /*runtime*/, runtime::WorkAction action) {
    auto& room = *static_cast<Room*>(self);
    room.is_awaited = false;
    if (action == runtime::WorkAction::kRun) room.owner.send_if_room(room.pe);
  }
  Bundles& owner;
  int pe;
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
  bool has_polled = false;  // the queue was empty, and the network has been polled since
  int passes = 0;
};

Bundles::Bundles(Chares& chares, FeatureTable& features)
    : chares_(chares),
      runtime_(chares.runtime()),
      handler_(features.add_handlers<&Bundles::on_bundle>(*this)),
      open_(static_cast<std::size_t>(runtime_.num_pes())),
      sources_(open_.size()),
      turn_(std::make_unique<Turn>(*this)) {
  runtime_.losses().on_loss([this](int pe) { on_loss(pe); });
}

Bundles::~Bundles() = default;

void Bundles::close() {
  for (Source& source : sources_) source.held.clear();
  open_pes_.clear();
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
  Open& open = open_[static_cast<std::size_t>(at.pe)];
  const RunHeader run{collection.id(), entry.id, at.move, static_cast<std::uint32_t>(argument_bytes), 0};
  const std::size_t call_bytes = sizeof(LinearIndex) + argument_bytes;
  const std::size_t most_bytes = call_bytes + sizeof(RunHeader);
  if (open.used_bytes + most_bytes > kBundleBytes) [[unlikely]]
    send(at.pe, Sender::kCall);
  if (open.bytes == nullptr) [[unlikely]]
    open.bytes = std::make_unique<std::byte[]>(kBundleBytes);
  if (!open.continues(run)) open.begin_run(run);
  std::byte* const to = open.bytes.get() + open.used_bytes;
  std::memcpy(to, &index, sizeof index);
  return {to + sizeof index, at.pe};
}

void Bundles::commit(const Place& place) {
  Open& open = open_[static_cast<std::size_t>(place.pe)];
  ++open.last_run.num_calls;
  open.used_bytes += sizeof(LinearIndex) + open.last_run.argument_bytes;
  if (open.num_calls++ != 0) [[likely]]
    return;
  // For quiescence an open bundle is a message that has not been handled.
  runtime_.count_sent();
  if (!std::exchange(open.is_listed, true)) open_pes_.push_back(place.pe);
  if (!std::exchange(turn_->is_posted, true)) runtime_.post(&turn_->work);
}

// --- Sending

void Bundles::send(int pe, Sender sender) {
  Open& open = open_[static_cast<std::size_t>(pe)];
  if (open.is_being_sent()) refuse_while_sending(pe);
  open.end_run();
  const BundleHeader header{open.next_number};
  std::memcpy(open.bytes.get(), &header, sizeof header);
  MessagePtr message = Message::create(runtime_, handler_, open.used_bytes);
  std::memcpy(message->payload(), open.bytes.get(), open.used_bytes);
  Sending sending(open);
  if (sender == Sender::kCall) {
    runtime_.send_call(pe, std::move(message));  // may throw: the bundle stays open
  } else {
    runtime_.send(pe, std::move(message));
  }
  sending.succeeded();
  ++open.next_number;
  open.run_at = 0;
  open.num_calls = 0;
  runtime_.count_processed();  // the message counts from now on
}

void Bundles::flush() {
  if (is_packing_) [[unlikely]]
    refuse_while_packing();
  // A send that waits may run code of the program, whose calls list more PEs. NOLINTNEXTLINE(modernize-loop-convert)
  for (std::size_t i = 0; i < open_pes_.size(); ++i) {
    const Open& open = open_[static_cast<std::size_t>(open_pes_[i])];
    if (open.num_calls > 0 && !open.is_being_sent()) send(open_pes_[i], Sender::kCall);
  }
}

void Bundles::send_own() {
  if (open_[static_cast<std::size_t>(runtime_.pe())].num_calls == 0) [[likely]]
    return;
  if (is_packing_) [[unlikely]]
    refuse_while_packing();
  send(runtime_.pe(), Sender::kTurn);
}

// Sends what is open when the PE has nothing else to do: its queue is empty, and a poll of the network has brought nothing.
void Bundles::turn() {
  Turn& turn = *turn_;
  if (++turn.passes < kMostPasses) {
    if (!runtime_.queue_empty()) {
      turn.has_polled = false;
      return runtime_.post(&turn.work);
    }
    if (!std::exchange(turn.has_polled, true)) return runtime_.post_for_next_turn(&turn.work);
  }
  turn.is_posted = turn.has_polled = false;
  turn.passes = 0;
  std::vector<int> pes;
  pes.swap(open_pes_);
  for (const int pe : pes) {
    open_[static_cast<std::size_t>(pe)].is_listed = false;
    send_if_room(pe);
  }
}

// Without room the bundle stays open, and is sent when there is some: no caller could wait here.
void Bundles::send_if_room(int pe) {
  Open& open = open_[static_cast<std::size_t>(pe)];
  if (open.num_calls == 0) return;
  if (runtime_.has_room(pe)) return send(pe, Sender::kTurn);
  if (!std::exchange(open.is_listed, true)) open_pes_.push_back(pe);
  if (open.room == nullptr) open.room = std::make_unique<Room>(*this, pe);
  if (!std::exchange(open.room->is_awaited, true)) runtime_.when_room(pe, open.room.get());
}

// --- Bundles that arrive

void Bundles::on_bundle(MessagePtr message) {
  const std::uint32_t from = message->envelope().source_pe;
  const std::size_t size_bytes = message->payload_bytes();
  if (from >= sources_.size() || size_bytes < sizeof(BundleHeader) || size_bytes > kBundleBytes) {
    base::refuse_claim(base::format("a bundle of calls of {} bytes arrived from PE {} of {}", size_bytes,
                                    from, sources_.size()));
  }
  Source& source = sources_[from];
  const auto number = read<BundleHeader>(message->payload()).number;
  if (number != source.next_number) {
    if (number - source.next_number > kMostHeld || source.held_bytes + size_bytes > kMostHeldBytes ||
        !source.held.try_emplace(number, std::move(message)).second) {
      base::refuse_claim(
          base::format("bundle {} of calls arrived from PE {}, where bundle {} is the next and {} bytes of "
                       "later ones wait",
                       number, from, source.next_number, source.held_bytes));
    }
    source.held_bytes += size_bytes;
    runtime_.count_sent();  // it has not been handled
    return;
  }
  ++source.next_number;
  run(*message);
  while (!source.held.empty() && source.held.begin()->first == source.next_number) {
    const MessagePtr next = std::move(source.held.extract(source.held.begin()).mapped());
    ++source.next_number;
    source.held_bytes -= next->payload_bytes();
    runtime_.count_processed();
    run(*next);
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
  const std::byte* at = message.payload() + sizeof(BundleHeader);
  std::size_t left_bytes = message.payload_bytes() - sizeof(BundleHeader);
  while (left_bytes > 0) {
    RunHeader run;
    if (left_bytes >= sizeof run) run = read<RunHeader>(at);
    const std::size_t call_bytes = sizeof(LinearIndex) + run.argument_bytes;
    if (left_bytes < sizeof run || run.num_calls > (left_bytes - sizeof run) / call_bytes) {
      base::refuse_claim(base::format("a bundle from PE {} has {} calls of {} bytes in its last {} bytes",
                                      message.envelope().source_pe, run.num_calls, call_bytes, left_bytes));
    }
    at += sizeof run;
    left_bytes -= sizeof run + run.num_calls * call_bytes;
    Collection& target = chares_.collection(run.collection);
    const EntryInfo* const entry = runtime::Registry<EntryInfo>::find(run.entry);
    EntryHeader header{run.collection, 0, run.entry, run.move, {}};
    if (target.created_ && !target.destroyed_ && (entry == nullptr || entry->type != target.type()))
      return chares_.parts_->fail_unfit(header);
    for (std::uint32_t i = 0; i < run.num_calls; ++i, at += call_bytes) {
      if (runtime_.ending()) [[unlikely]]
        return;
      header.index = read<LinearIndex>(at);
      run_one(target, header, entry, {at + sizeof(LinearIndex), run.argument_bytes}, message);
    }
  }
}

inline void Bundles::run_one(Collection& target, const EntryHeader& header, const EntryInfo* entry,
                             std::span<const std::byte> arguments, Message& message) {
  if (ChareBase* const chare = target.created_ ? target.find(header.index) : nullptr) [[likely]] {
    return chares_.parts_->invoke(*chare, *entry, unpacker_of(arguments, message), {});
  }
  // The chare is elsewhere, or not made yet: the call goes on as a message of its own.
  MessagePtr call = chares_.make_entry_message(header, arguments.size());
  std::memcpy(call->payload() + sizeof header, arguments.data(), arguments.size());
  call->envelope().source_pe = message.envelope().source_pe;  // it is told where the chare is
  chares_.parts_->keep_or_forward(target, header, std::move(call));
}

}  // namespace weft::chare
