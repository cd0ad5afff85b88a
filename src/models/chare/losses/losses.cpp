// What a loss of PEs does to calls, to homes and to collections, and how elements are made anew.
#include "runtime/losses/losses.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "weft/base/error.h"
#include "weft/chare/chare.h"
#include "weft/chare/outcome.h"
#include "weft/runtime/remote_error.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "models/chare/elements/lost_elements.h"
#include "models/chare/elements/parts.h"
#include "runtime/future_table.h"
#include "runtime/message/handlers.h"

namespace weft::chare {

using runtime::Message;
using runtime::MessagePtr;
using runtime::Registry;

namespace {

// A call whose result PE `reply.pe` awaits went on to another PE.
struct CallMoved {
  std::uint64_t future = 0;
  std::int32_t pe = 0;
  std::int32_t reserved = 0;
};

bool has_elements_to_move(const Collection& collection) {
  return has_movable_homes(collection.kind()) && collection.shape().size() != 0 &&
         collection.shape().knows_homes() && !collection.is_destroyed();
}

}  // namespace

LostElements::LostElements(Chares& chares, runtime::HandlerId first_handler)
    : chares_(chares),
      runtime_(chares.runtime()),
      first_handler_(first_handler),
      calls_(static_cast<std::size_t>(runtime_.num_pes())) {
  runtime_.losses().watch_sends([this](int pe, Message& message) { return watch(pe, message); });
  runtime_.losses().on_loss([this](int pe) { on_loss(pe); });
}

void LostElements::expect_all(const std::string& what) const {
  const runtime::Losses& losses = runtime_.losses();
  if (losses.count() > 0) std::rethrow_exception(runtime::lost_error(losses.in_order().front(), what));
}

// --- Calls

bool LostElements::watch(int pe, Message& message) {
  const bool is_lost = runtime_.losses().is_lost(pe);
  if (message.envelope().handler != chares_.entry_handler()) return !is_lost;
  const EntryHeader header = read_header(message);
  if (is_lost) {
    fail(header.reply, error_of(pe, called_by(header, message)));
    return false;
  }
  if (header.reply.kind != ReplyTo::Kind::kFuture) return true;
  const Called called = called_by(header, message);
  if (header.reply.pe == static_cast<std::uint32_t>(runtime_.pe())) {
    track(pe, header.reply.id, called);
  } else if (pe != runtime_.pe()) {
    MessagePtr moved =
        Message::pack(runtime_, first_handler_ + kCallMoved, CallMoved{header.reply.id, pe, 0}, called);
    runtime_.send(static_cast<int>(header.reply.pe), std::move(moved));
  }
  return true;
}

void LostElements::track(int pe, std::uint64_t future, const Called& called) {
  CallsTo& calls = calls_[static_cast<std::size_t>(pe)];
  calls.by_future[future] = called;
  if (calls.by_future.size() < calls.sweep_at) return;
  const runtime::FutureTable& futures = runtime::FutureTable::of(runtime_);
  std::erase_if(calls.by_future, [&](const auto& one) { return futures.find(one.first) == nullptr; });
  calls.sweep_at = 2 * calls.by_future.size() + 256;
}

void LostElements::on_call_moved(MessagePtr message) {
  CallMoved moved;
  Called called;
  message->unpacker() | moved | called;
  if (moved.pe < 0 || moved.pe >= runtime_.num_pes() || called.head_bytes > called.head.size()) {
    base::refuse_claim(base::format("PE {} says that a call with {} first bytes went on to PE {} of {}",
                                    message->envelope().source_pe, called.head_bytes, moved.pe,
                                    runtime_.num_pes()));
  }
  if (runtime::FutureTable::of(runtime_).find(moved.future) == nullptr) return;  // the answer was faster
  for (CallsTo& calls : calls_) {
    const auto known = calls.by_future.find(moved.future);
    if (known == calls.by_future.end()) continue;
    if (known->second.move > called.move) return;  // the word of a later move was faster
    calls.by_future.erase(known);
  }
  const ReplyTo reply{ReplyTo::Kind::kFuture, static_cast<std::uint32_t>(runtime_.pe()), moved.future};
  if (runtime_.losses().is_lost(moved.pe)) return fail(reply, error_of(moved.pe, called));
  track(moved.pe, moved.future, called);
}

LostElements::Called LostElements::called_by(const EntryHeader& header, Message& message) {
  Called called{header.collection, header.index, header.entry, header.move_or_source, 0, 0, {}};
  const std::span<const std::byte> arguments = message.payload_span().subspan(sizeof header);
  called.head_bytes = static_cast<std::uint32_t>(std::min(arguments.size(), called.head.size()));
  std::copy_n(arguments.begin(), called.head_bytes, called.head.begin());
  return called;
}

std::exception_ptr LostElements::error_of(int pe, const Called& called) const {
  const Collection& collection = chares_.collection(called.collection);
  if (called.head_bytes == 0)
    return runtime::lost_error(pe, base::format("a call of {}", collection.element_name(called.index)));
  const EntryInfo* const entry = Registry<EntryInfo>::find(called.entry);
  std::string method;
  if (entry != nullptr && entry->method_of == nullptr) method = "." + short_name_of(*entry);
  if (entry != nullptr && entry->method_of != nullptr) {
    Pup head = Pup::unpacker(called.head.data(), called.head_bytes, &runtime_);
    method = "." + entry->method_of(collection, head);
  }
  return runtime::lost_error(pe,
                             base::format("a call of {}{}", collection.element_name(called.index), method));
}

void LostElements::fail(const ReplyTo& reply, const std::exception_ptr& error) {
  if (reply.kind != ReplyTo::Kind::kFuture) return;
  if (reply.pe != static_cast<std::uint32_t>(runtime_.pe())) {
    runtime_.send(
        static_cast<int>(reply.pe),
        runtime::pack_future_error(runtime_, {reply.id, runtime::FutureSetHeader::kErrorUnlessSet}, error));
    return;
  }
  runtime::FutureTable& futures = runtime::FutureTable::of(runtime_);
  const runtime::FutureShare<runtime::FutureState> state(futures.find(reply.id));
  if (state.get() == nullptr) return;
  if (!state->is_set()) state->set_error(error);
  futures.forget(reply.id);
}

void LostElements::answer(const EntryHeader& header, Message& message) {
  if (message.envelope().handler != chares_.entry_handler()) return;
  fail(header.reply, error_of(runtime_.losses().in_order().back(), called_by(header, message)));
}

// --- A loss

void LostElements::on_loss(int pe) {
  move_homes(pe);
  fail_calls_to(pe);
  for (MessagePtr& early : std::exchange(early_, {})) on_revive(std::move(early));
  const std::exception_ptr error = runtime::lost_error(pe, "an operation of a whole collection");
  std::vector<std::uint64_t> gathers;
  for (const auto& [id, done] : chares_.parts_->gathers) gathers.push_back(id);
  for (const std::uint64_t id : gathers) chares_.parts_->give_up_gather(id, error);
  std::vector<std::uint64_t> collections;
  for (const auto& [id, collection] : chares_.parts_->collections) collections.push_back(id);
  for (const std::uint64_t id : collections) chares_.parts_->all_reduces.fail(id, error);
  runtime_.reductions().give_up_all(error);
}

void LostElements::fail_calls_to(int pe) {
  const auto calls = std::exchange(calls_[static_cast<std::size_t>(pe)].by_future, {});
  const auto own = static_cast<std::uint32_t>(runtime_.pe());
  for (const auto& [future, called] : calls) {
    if (runtime::FutureTable::of(runtime_).find(future) == nullptr) continue;  // it is over
    fail({ReplyTo::Kind::kFuture, own, future}, error_of(pe, called));
  }
}

Shape LostElements::living(const Shape& shape) const {
  const runtime::Losses& losses = runtime_.losses();
  const int num_pes = runtime_.num_pes();
  std::vector<std::uint32_t> homes;
  for (std::uint64_t index = 0; index < shape.size(); ++index) {
    int home = shape.home(index, num_pes);
    const bool moves = losses.is_lost(home);
    while (losses.is_lost(home)) home = (home + 1) % num_pes;
    if (moves && homes.empty()) {
      for (std::uint64_t before = 0; before < index; ++before)
        homes.push_back(static_cast<std::uint32_t>(shape.home(before, num_pes)));
    }
    if (moves || !homes.empty()) homes.push_back(static_cast<std::uint32_t>(home));
  }
  return homes.empty() ? shape : shape.with_table(std::move(homes));
}

void LostElements::leave_lost_homes(Collection& collection) const {
  if (runtime_.losses().count() > 0 && has_elements_to_move(collection))
    collection.shape_ = living(collection.shape_);
}

// The new home of an element that lives elsewhere is told where. The home of one that was lost is told how often it had moved: calls that
// other PEs have forwarded name that number.
void LostElements::move_homes(int pe) {
  for (auto& [id, collection] : chares_.parts_->collections) {
    Collection& moved = *collection;
    if (!has_elements_to_move(moved)) continue;
    const Shape before = moved.shape_;
    moved.shape_ = living(before);
    moved.elements_->directory.lose(pe, [&](std::uint64_t index, std::uint32_t moves) {
      if (index >= before.size()) return runtime_.pe();
      const int home = moved.home(index);
      if (home != runtime_.pe()) send(home, {moved.id(), index, {}, Step::kLost, moves});
      return home;
    });
    std::vector<std::pair<std::uint64_t, std::uint32_t>> here;
    moved.elements_->directory.for_each([&](std::uint64_t index, const ChareBase& chare) {
      if (before.home(index, runtime_.num_pes()) == pe) here.emplace_back(index, chare.num_moves());
    });
    for (const auto& [index, moves] : here) {
      const int home = moved.home(index);
      if (home != runtime_.pe()) chares_.parts_->send_news(moved, index, home, runtime_.pe(), moves);
    }
  }
}

// --- Elements that are made anew

void LostElements::created(const Collection& collection, const ConstructorInfo& constructor,
                           std::span<const std::byte> arguments) {
  if (!has_movable_homes(collection.kind())) return;
  origins_[collection.id()] = {&constructor, {arguments.begin(), arguments.end()}};
}

runtime::Future<> LostElements::revive(Collection& collection, std::uint64_t index) {
  collection.expect_alive();
  if (!has_movable_homes(collection.kind())) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("{} cannot be revived: only elements of arrays and single chares can; an element of a "
                     "group belongs to its PE",
                     collection.element_name(index)));
  }
  runtime::Future<> done(runtime_);
  ask_all(collection, index, done);
  return done;
}

// A PE answers when it knows of all losses of which this PE knows: from then on its calls go to the new home.
void LostElements::ask_all(Collection& collection, std::uint64_t index, const runtime::Future<>& done) {
  struct Asked {
    int left = 0;
    std::uint32_t moves = 0;
    std::exception_ptr failure;
  };
  const auto asked = std::make_shared<Asked>();
  const int num_lost = runtime_.losses().count();
  for (int pe = 0; pe < runtime_.num_pes(); ++pe) {
    if (runtime_.losses().is_lost(pe)) continue;
    ++asked->left;
    const auto part = ask<std::uint32_t>(pe, {collection.id(), index, {}, Step::kAsk, 0});
    part.then([this, asked, num_lost, &collection, index, done](const auto& answer) {
      try {
        asked->moves = std::max(asked->moves, answer.get());
      } catch (...) {
        asked->failure = std::current_exception();
      }
      if (--asked->left > 0) return;
      // After a loss meanwhile, the others may not have known of it.
      if (runtime_.losses().count() != num_lost) return ask_all(collection, index, done);
      if (asked->failure != nullptr) return done.set_error(asked->failure);
      make_at_home(collection, index, asked->moves, done);
    });
  }
}

void LostElements::make_at_home(Collection& collection, std::uint64_t index, std::uint32_t moves,
                                const runtime::Future<>& done) {
  const int home = collection.home(index);
  const auto made = ask<void>(home, {collection.id(), index, {}, Step::kMake, moves});
  made.then([this, &collection, index, done, home](const auto& answer) {
    try {
      answer.get();
      done.set();
    } catch (...) {
      if (runtime_.losses().is_lost(home)) return ask_all(collection, index, done);
      done.set_error(std::current_exception());
    }
  });
}

template <class T>
runtime::Future<T> LostElements::ask(int pe, Revival revival) {
  runtime::Future<T> answer(runtime_);
  revival.reply = reply_to(*answer.state());
  track(pe, revival.reply.id, {revival.collection, revival.index, 0, 0, 0, 0, {}});
  send(pe, revival);
  return answer;
}

void LostElements::send(int pe, const Revival& revival) {
  runtime_.send(pe, Message::pack(runtime_, first_handler_ + kRevive, revival, runtime_.losses().in_order()));
}

void LostElements::on_revive(MessagePtr message) {
  Revival revival;
  std::vector<int> lost;
  message->unpacker() | revival | lost;
  const auto is_pe = [this](int pe) { return pe >= 0 && pe < runtime_.num_pes(); };
  if (!revival.is_valid(runtime_.num_pes()) || !std::ranges::all_of(lost, is_pe)) {
    base::refuse_claim(
        base::format("PE {} revives a chare, or says that it was lost, with a reply to PE {} of {} or "
                     "lost PEs that cannot be",
                     message->envelope().source_pe, revival.reply.pe, runtime_.num_pes()));
  }
  const bool knows_all = std::ranges::all_of(lost, [this](int pe) { return runtime_.losses().is_lost(pe); });
  if (!knows_all) return early_.push_back(std::move(message));
  Collection& collection = chares_.collection(revival.collection);
  const runtime::FutureAddress asker{revival.reply.pe, revival.reply.id};
  if (revival.step == Step::kAsk)
    return runtime::Future<std::uint32_t>::at(runtime_, asker).set(moves_of(collection, revival.index));
  if (!collection.created_ && !collection.destroyed_ && !collection.has_failed()) {
    collection.elements_->waiting.push_back(std::move(message));
  } else if (revival.step == Step::kLost) {
    was_lost(collection, revival.index, revival.moves);
  } else {
    answer_make(collection, revival, runtime::Future<>::at(runtime_, asker));
  }
}

std::uint32_t LostElements::moves_of(const Collection& collection, std::uint64_t index) const {
  if (const ChareBase* const here = collection.find_constructed(index)) return here->num_moves();
  return collection.elements_->directory.whereabouts(index, runtime_.pe()).move;
}

// Calls that have been held for the element because they named that number get their answer.
void LostElements::was_lost(Collection& collection, std::uint64_t index, std::uint32_t moves) {
  if (collection.is_destroyed() || index >= collection.shape().size()) return;
  if (collection.home(index) != runtime_.pe() || collection.find_constructed(index) != nullptr) return;
  collection.elements_->directory.ended(index, moves);
  chares_.parts_->release_held(collection, index);
}

void LostElements::answer_make(Collection& collection, const Revival& revival,
                               const runtime::Future<>& made) {
  try {
    collection.expect_alive();
    if (revival.index >= collection.shape().size())
      throw base::Error(base::StatusCode::kOutOfRange, "there is no such element");
    make_again(collection, revival.index, revival.moves);
    made.set();
  } catch (...) {
    made.set_error(std::current_exception());
  }
}

void LostElements::make_again(Collection& collection, std::uint64_t index, std::uint32_t moves) {
  const auto origin = origins_.find(collection.id());
  const std::string name = collection.element_name(index);
  const runtime::Whereabouts at = collection.elements_->directory.whereabouts(index, runtime_.pe());
  const bool lives = collection.find(index) != nullptr ||
                     collection.elements_->being_created.contains(index) || at.pe != runtime_.pe();
  if (lives || origin == origins_.end() || runtime_.losses().count() == 0) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("{} cannot be revived: {}", name,
                     origin == origins_.end() ? "its array is not made on its new PE" : "it is not lost"));
  }
  const std::vector<std::byte>& bytes = origin->second.arguments;
  NewChare place(collection, index);
  Pup arguments = Pup::unpacker(bytes.data(), bytes.size(), &runtime_);
  std::unique_ptr<ChareBase> element = origin->second.constructor->construct(arguments);
  if (element == nullptr) return;  // the job ends
  Chares::Parts::set_moves(*element, std::max(at.move, moves) + 1);
  if (collection.has_created()) {
    ChareBase& made = *element;
    collection.elements_->being_created.emplace(index, element.release());
    collection.type()->begin_created(made);
  } else {
    collection.elements_->directory.insert(index, element.release());
    chares_.parts_->release_held(collection, index);
  }
}

}  // namespace weft::chare
