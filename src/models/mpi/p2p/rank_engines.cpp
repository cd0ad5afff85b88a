#include "models/mpi/p2p/rank_engines.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "base/refuse_claim.h"

namespace weft::mpi {

namespace {

[[noreturn, gnu::cold, gnu::noinline]] void refuse_addressed(int source_pe, const std::string& what) {
  base::refuse_claim(base::format("an MPI message from PE {} {}", source_pe, what),
                     "do all PEs run the same version of Weft?");
}
[[noreturn, gnu::cold, gnu::noinline]] void refuse_addressed(const runtime::Message& message,
                                                             const std::string& what) {
  refuse_addressed(static_cast<int>(message.envelope().source_pe), what);
}

[[noreturn, gnu::cold, gnu::noinline]] void refuse_short(int source_pe, std::size_t size_bytes) {
  refuse_addressed(source_pe, base::format("has {} bytes, and its header alone has {}", size_bytes,
                                           sizeof(MessageHeader)));
}
[[noreturn, gnu::cold, gnu::noinline]] void refuse_rank(int source_pe, int rank) {
  refuse_addressed(source_pe, base::format("is for rank {}, which is not on this PE", rank));
}

RankEngines& self_of(void* context) { return *static_cast<RankEngines*>(context); }

}  // namespace

RankEngines::RankEngines(runtime::Messenger& messenger, const runtime::ModelRange& range)
    : messenger_(messenger), range_(range) {
  place(RankMap(messenger.num_pes()));
  set_handlers();
}

void RankEngines::place(RankMap map) {
  engines_.clear();
  shared_ = std::make_unique<SharedState>(std::move(map), messenger_.pe());
  make_engines();
}

void RankEngines::replace(RankMap map) {
  engines_.clear();
  shared_->replace_map(std::move(map));
  make_engines();
}

void RankEngines::make_engines() {
  for (const int rank : map().ranks_on(messenger_.pe())) {
    engines_.push_back(std::make_unique<PointToPoint>(messenger_, range_, *shared_, rank));
    shared_->set_engine(rank, engines_.back().get());
  }
}

inline PointToPoint& RankEngines::receiver_of(int source_pe, std::span<const std::byte> header) const {
  std::int32_t to = -1;
  if (header.size() < sizeof(MessageHeader)) [[unlikely]]
    refuse_short(source_pe, header.size());
  std::memcpy(&to, header.data() + offsetof(MessageHeader, to), sizeof to);
  PointToPoint* const engine = map().has(to) ? find(to) : nullptr;
  if (engine == nullptr) [[unlikely]]
    refuse_rank(source_pe, to);
  return *engine;
}

PointToPoint& RankEngines::receiver_of(const runtime::Message& message) const {
  return receiver_of(static_cast<int>(message.envelope().source_pe),
                     {const_cast<runtime::Message&>(message).payload(), message.payload_bytes()});
}

void RankEngines::set_handlers() {
  messenger_.set_urgent_handler(
      range_.first_handler + PointToPoint::kBlock,
      [](void* self, runtime::MessagePtr message) {
        PointToPoint& receiver = self_of(self).receiver_of(*message);
        receiver.on_block(std::move(message));
      },
      this);
  messenger_.set_direct_handler(
      range_.first_handler + PointToPoint::kBlock, [](void* self, const runtime::DirectArrival& arrival) {
        return self_of(self).receiver_of(arrival.source_pe, arrival.header).on_direct(arrival);
      });
  messenger_.set_handler(
      range_.first_handler + PointToPoint::kAnnounced,
      [](void*, runtime::MessagePtr message) { PointToPoint::on_landed(std::move(message)); }, this);
  messenger_.set_poster(
      range_.first_handler + PointToPoint::kAnnounced,
      [](void* self, runtime::MessagePtr& message, std::span<runtime::ReceiveBuffer> receive_buffers) {
        return self_of(self).receiver_of(*message).on_announced(message, receive_buffers);
      },
      [](void*, runtime::Message& message) { PointToPoint::on_dropped(message); });
  messenger_.set_urgent_handler(
      range_.first_handler + PointToPoint::kAnswer,
      [](void* self, runtime::MessagePtr message) { self_of(self).on_answer(*message); }, this);
  messenger_.set_handler(
      range_.first_handler + PointToPoint::kMoved,
      [](void* self, runtime::MessagePtr message) { self_of(self).on_move_numbers(*message); }, this);
  messenger_.set_urgent_handler(
      range_.first_handler + PointToPoint::kOffer,
      [](void* self, runtime::MessagePtr message) { self_of(self).on_offer(*message); }, this);
}

void RankEngines::tell_mover(int pe, std::span<const std::uint64_t> numbers) {
  runtime::MessagePtr message =
      runtime::Message::create(messenger_, range_.first_handler + PointToPoint::kMoved, numbers.size_bytes());
  if (!numbers.empty()) std::memcpy(message->payload(), numbers.data(), numbers.size_bytes());
  messenger_.send(pe, std::move(message));
}

void RankEngines::on_move_numbers(const runtime::Message& message) {
  const auto num_pes = static_cast<std::size_t>(messenger_.num_pes());
  std::vector<std::uint64_t> numbers(message.payload_bytes() / sizeof(std::uint64_t));
  if (move_function_ == nullptr || numbers.size() > num_pes || message.envelope().source_pe >= num_pes ||
      numbers.size() * sizeof(std::uint64_t) != message.payload_bytes())
    refuse_addressed(message, "is about a move of ranks, and none can be under way");
  if (!numbers.empty())
    std::memcpy(numbers.data(), const_cast<runtime::Message&>(message).payload(), message.payload_bytes());
  move_function_(move_context_, static_cast<int>(message.envelope().source_pe), numbers);
}

std::vector<std::uint64_t> RankEngines::num_sent_to_pes() const {
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(map().num_pes()));
  for (const auto& engine : engines_) {
    for (int rank = 0; rank < map().num_ranks(); ++rank)
      sums[static_cast<std::size_t>(map().pe_of(rank))] += engine->num_sent_to(rank);
  }
  return sums;
}

std::uint32_t RankEngines::num_arrived() const {
  std::uint32_t sum = 0;
  for (const auto& engine : engines_) {
    for (int rank = 0; rank < map().num_ranks(); ++rank) sum += engine->num_arrived_from(rank);
  }
  return sum;
}

void RankEngines::close() {
  for (const auto& engine : engines_) engine->close();
}

void RankEngines::on_offer(const runtime::Message& message) {
  ReceiveOffer offer;
  if (message.payload_bytes() != sizeof offer)
    refuse_addressed(message, "offers a receive with a wrong size");
  std::memcpy(&offer, const_cast<runtime::Message&>(message).payload(), sizeof offer);
  PointToPoint* const engine = map().has(offer.to) ? find(offer.to) : nullptr;
  const bool is_of_sender = map().has(offer.from) && static_cast<std::uint32_t>(map().pe_of(offer.from)) ==
                                                         message.envelope().source_pe;
  if (engine == nullptr || !is_of_sender || map().shares_pes() || find(offer.from) != nullptr) {
    refuse_addressed(message, base::format("offers a receive of rank {} to rank {}, which cannot be",
                                           offer.from, offer.to));
  }
  engine->on_offer(offer);
}

// Inside progress(), or for this PE itself in its turn.
void RankEngines::on_answer(const runtime::Message& message) {
  Answer reply;
  const std::uint32_t pe = message.envelope().source_pe;
  if (message.payload_bytes() != sizeof reply || pe >= static_cast<std::uint32_t>(messenger_.num_pes()))
    refuse_addressed(message, "answers with a wrong size or sender");
  std::memcpy(&reply, const_cast<runtime::Message&>(message).payload(), sizeof reply);
  runtime::SendRoom& room = shared_->window(static_cast<int>(pe)).room;
  const std::int64_t used_bytes = shared_->window_bytes() - room.bytes;
  if (!room.give_back(reply.room_bytes, used_bytes)) {
    refuse_addressed(message, base::format("gives back {} bytes of room, and {} are in use", reply.room_bytes,
                                           used_bytes));
  }
  if (reply.reply == 0) return;
  PointToPoint* const engine = map().has(reply.to) ? find(reply.to) : nullptr;
  const bool is_answered = engine != nullptr && engine->answered(reply.reply, reply.from);
  if (!is_answered && !shared_->troubles().any()) {
    refuse_addressed(
        message, base::format("answers number {:#x} of rank {}, which does not wait", reply.reply, reply.to));
  }
}

}  // namespace weft::mpi
