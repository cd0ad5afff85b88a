// Contributions of elements: to reductions of their collection, and to the gathered results of a call to it.
#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/chare/chare.h"
#include "weft/chare/chares.h"
#include "weft/runtime/future.h"
#include "weft/runtime/remote_error.h"

#include "base/format.h"
#include "models/chare/elements/parts.h"
#include "runtime/future_table.h"

namespace weft::chare {

using runtime::MessagePtr;
using runtime::Target;

// --- The results of a call to a whole collection

ReplyTo Chares::expect_gather(std::function<void(Pup&)> done, Collection* of) {
  if (parts_->losses != nullptr) [[unlikely]]
    parts_->losses->expect_all("an operation of a whole collection");
  std::uint64_t id = parts_->next_gather++;
  if (of != nullptr && of->is_sparse()) [[unlikely]]
    id = parts_->sets->gather_of_set(*of, id);
  parts_->gathers.emplace(id, std::move(done));
  return {ReplyTo::Kind::kGather, static_cast<std::uint32_t>(runtime_.pe()), id};
}

void Chares::forget_reply(const ReplyTo& reply) {
  if (reply.kind == ReplyTo::Kind::kFuture) runtime::FutureTable::of(runtime_).forget(reply.id);
  if (reply.kind == ReplyTo::Kind::kGather) parts_->gathers.erase(reply.id);
}

Target Chares::Parts::gather_target(const ReplyTo& reply) const {
  Target target;
  target.handler = first_handler_ + kGathered;
  target.pe = reply.pe;
  target.prefix = base::pack_small(reply.gather());
  return target;
}

void Chares::contribute_outcome(const ReplyTo& reply, ChareBase& chare, std::span<const std::byte> outcome) {
  if (parts_->is_given_up(reply, runtime_.pe())) [[unlikely]]
    return;
  if (outcome.front() != std::byte{0}) [[unlikely]]
    parts_->tell_failure(reply, outcome.subspan(1));
  const runtime::ScopeId scope{reply.pe, kGatherScopes | reply.gather()};
  if (reply.is_direct()) [[unlikely]]
    return runtime_.reductions().contribute_directly(scope, 0, chare.linear_index(),
                                                     runtime::Reducer::kGather, nullptr, outcome,
                                                     parts_->gather_target(reply));
  runtime_.reductions().contribute(scope, 0, chare.linear_index(), runtime::Reducer::kGather, nullptr,
                                   outcome, parts_->gather_target(reply));
}

void Chares::Parts::on_gathered(MessagePtr message) {
  std::uint64_t id = 0;
  Pup p = message->unpacker();
  p | id;
  auto found = gathers.find(id);
  if (found == gathers.end()) {
    if (given_up.contains(id)) return;
    runtime_.fail("the results of a call arrived a second time");
    return;
  }
  const std::function<void(Pup&)> done = std::move(found->second);
  gathers.erase(found);
  if (!done) return;
  try {
    done(p);
  } catch (...) {
    runtime_.fail_unawaited(std::current_exception(),
                            base::format("the results of a call on PE {}", runtime_.pe()));
  }
}

void Chares::Parts::tell_failure(const ReplyTo& reply, std::span<const std::byte> error) {
  const std::uint64_t gather = reply.gather();
  if (std::exchange(told_failure, {reply.pe, gather}) == std::pair{reply.pe, gather}) return;
  MessagePtr message =
      runtime::Message::create(runtime_, first_handler_ + kElementFailed, sizeof gather + error.size());
  std::memcpy(message->payload(), &gather, sizeof gather);
  std::ranges::copy(error, message->payload() + sizeof gather);
  runtime_.send(static_cast<int>(reply.pe), std::move(message));
}

void Chares::Parts::on_element_failed(MessagePtr message) {
  std::uint64_t gather = 0;
  Pup p = message->unpacker();
  p | gather;
  const auto found = gathers.find(gather);
  if (found == gathers.end() || !found->second) return;  // all results are here, or one had failed
  // The other elements have still to answer.
  end_gather(std::exchange(found->second, nullptr), runtime::unpack_error(p));
}

void Chares::Parts::end_gather(const std::function<void(Pup&)>& done, const std::exception_ptr& error) {
  const auto pack = [&error](Pup& p) {
    p | std::uint64_t{1} | true;
    runtime::pack_error(p, error);
  };
  Pup sizer = Pup::sizer(&runtime_);
  pack(sizer);
  std::vector<std::byte> bytes(sizer.offset_bytes());
  Pup packer = Pup::packer(bytes.data(), bytes.size(), &runtime_);
  pack(packer);
  Pup outcome = Pup::unpacker(bytes.data(), bytes.size(), &runtime_);
  try {
    done(outcome);
  } catch (...) {
    runtime_.fail_unawaited(std::current_exception(),
                            base::format("the results of a call on PE {}", runtime_.pe()));
  }
}

// --- Reductions

inline void Chares::expect_reductions(const ChareBase& chare) const {
  if (parts_->losses != nullptr) [[unlikely]]
    parts_->losses->expect_all(base::format("a reduction of {}", chare.collection().name()));
}

Target Chares::numbered_target(ChareBase& chare, const Target& target) {
  chare.collection().expect_alive();
  expect_reductions(chare);
  const bool to_all_elements = target.handler == broadcast_handler();
  return to_all_elements ? parts_->numbered(target, chare) : target;
}

void Chares::contribute(ChareBase& chare, runtime::Reducer reducer, const runtime::Combiner* combiner,
                        std::span<const std::byte> value, const Target& target) {
  const Target to = numbered_target(chare, target);
  runtime_.reductions().contribute(scope_of(chare.collection(), chare.set_), chare.next_reduction_++,
                                   chare.linear_index(), reducer, combiner, value, to);
}

void Chares::contribute_large(ChareBase& chare, runtime::Reducer reducer, const runtime::Combiner* combiner,
                              std::vector<std::byte>&& value, const Target& target) {
  const Target to = numbered_target(chare, target);
  runtime_.reductions().contribute_large(scope_of(chare.collection(), chare.set_), chare.next_reduction_++,
                                         chare.linear_index(), reducer, combiner, std::move(value), to);
}

Target Chares::await_all_reduced(ChareBase& chare, runtime::FutureState* state) {
  chare.collection().expect_alive();
  expect_reductions(chare);
  const AllReduces::Key key{chare.collection().id(), reduction_number(chare.set_, chare.next_reduction_)};
  parts_->all_reduces.wait(key, state);
  Target target;
  target.handler = first_handler_ + kAllReduced;
  target.flags = runtime::kBroadcastFlag;
  target.prefix = base::pack_small(key);
  return target;
}

void Chares::contribute_to_all(ChareBase& chare, runtime::Reducer reducer, const runtime::Combiner* combiner,
                               std::span<const std::byte> value, runtime::FutureState* state) {
  const Target target = await_all_reduced(chare, state);
  runtime_.reductions().contribute(scope_of(chare.collection(), chare.set_), chare.next_reduction_++,
                                   chare.linear_index(), reducer, combiner, value, target);
}

void Chares::contribute_large_to_all(ChareBase& chare, runtime::Reducer reducer,
                                     const runtime::Combiner* combiner, std::vector<std::byte>&& value,
                                     runtime::FutureState* state) {
  const Target target = await_all_reduced(chare, state);
  runtime_.reductions().contribute_large(scope_of(chare.collection(), chare.set_), chare.next_reduction_++,
                                         chare.linear_index(), reducer, combiner, std::move(value), target);
}

void Chares::Parts::on_all_reduced(MessagePtr message) {
  std::pair<std::uint64_t, std::uint64_t> key;
  Pup p = message->unpacker();
  p | key;
  all_reduces.complete(key, p);
}

}  // namespace weft::chare
