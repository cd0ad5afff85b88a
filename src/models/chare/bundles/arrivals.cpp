// The bundles of aggregated calls that arrive: they are put in order, and their calls are run or passed on.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "weft/chare/bundles/aggregated.h"
#include "weft/runtime/registry.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "machine/message_sizes.h"
#include "models/chare/bundles/bundle_format.h"
#include "models/chare/bundles/bundle_parts.h"
#include "models/chare/bundles/grid.h"
#include "models/chare/elements/parts.h"

namespace weft::chare {

using runtime::Message;
using runtime::MessagePtr;

namespace {

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

}  // namespace

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
