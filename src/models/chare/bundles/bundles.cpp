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

namespace weft::chare {

using runtime::Message;
using runtime::MessagePtr;

namespace {

// How often the turn that sends open bundles gives way to other work. A program that polls in its own coroutine always has some.
constexpr int kMostPasses = 64;
// Bundles of one PE that have overtaken an earlier one. More come from no program of Weft.
constexpr std::uint64_t kMostHeld = 8192;

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

}  // namespace

// The bundle to one PE that is being filled.
struct Bundles::Open {
  std::unique_ptr<std::byte[]> bytes;  // null before the first call
  std::size_t used_bytes = sizeof(BundleHeader);
  std::size_t run_at = 0;  // where the header of the last run goes; 0: there is none
  RunHeader last_run;
  std::uint32_t num_calls = 0;
  bool is_listed = false;  // in open_pes_
  std::uint64_t next_number = 0;

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

// The bundles that come from one PE.
struct Bundles::Source {
  std::uint64_t next_number = 0;
  std::map<std::uint64_t, MessagePtr> held;  // have overtaken the next one
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
      turn_(std::make_unique<Turn>(*this)) {}

Bundles::~Bundles() = default;

void Bundles::close() {
  for (Source& source : sources_) source.held.clear();
  open_pes_.clear();
}

// --- Filling

Bundles::Place Bundles::place(Collection& collection, std::uint64_t index, IsHere is_here,
                              const EntryInfo& entry, std::size_t argument_bytes) {
  collection.expect_alive();
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
  return {to + sizeof index, at.pe, ++last_place_};
}

void Bundles::commit(const Place& place) {
  if (place.number != last_place_) [[unlikely]] {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      "an argument of an aggregated call makes aggregated calls itself while it is packed; "
                      "make them before");
  }
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
  open.end_run();
  const BundleHeader header{open.next_number};
  std::memcpy(open.bytes.get(), &header, sizeof header);
  MessagePtr message = Message::create(runtime_, handler_, open.used_bytes);
  std::memcpy(message->payload(), open.bytes.get(), open.used_bytes);
  if (sender == Sender::kCall) {
    runtime_.send_call(pe, std::move(message));  // may throw: the bundle stays open
  } else {
    runtime_.send(pe, std::move(message));
  }
  ++open.next_number;
  open.used_bytes = sizeof(BundleHeader);
  open.run_at = 0;
  open.num_calls = 0;
  runtime_.count_processed();  // the message counts from now on
  ++last_place_;
}

void Bundles::flush() {
  for (const int pe : open_pes_) {
    if (open_[static_cast<std::size_t>(pe)].num_calls > 0) send(pe, Sender::kCall);
  }
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
  flush_where_is_room();
}

// The others wait until all PEs have room: no caller could wait here.
void Bundles::flush_where_is_room() {
  std::vector<int> pes;
  pes.swap(open_pes_);
  for (const int pe : pes) {
    Open& open = open_[static_cast<std::size_t>(pe)];
    open.is_listed = open.num_calls > 0 && !runtime_.has_room(pe);
    if (open.is_listed) {
      open_pes_.push_back(pe);
    } else if (open.num_calls > 0) {
      send(pe, Sender::kTurn);
    }
  }
  if (open_pes_.empty()) return;
  turn_->is_posted = true;
  runtime_.when_room(-1, &turn_->work);
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
    if (number - source.next_number > kMostHeld ||
        !source.held.try_emplace(number, std::move(message)).second) {
      base::refuse_claim(base::format("bundle {} of calls arrived from PE {}, where bundle {} is the next",
                                      number, from, source.next_number));
    }
    runtime_.count_sent();  // it has not been handled
    return;
  }
  ++source.next_number;
  run(*message);
  while (!source.held.empty() && source.held.begin()->first == source.next_number) {
    const MessagePtr next = std::move(source.held.extract(source.held.begin()).mapped());
    ++source.next_number;
    runtime_.count_processed();
    run(*next);
  }
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
