// Elements that move to another PE.
//
// The old PE packs the element, notes where it has gone, and sends its state. The new PE makes the element and tells the
// home, and the old PE. Messages that come to a PE that the element has left are sent after it, and their sender is told.
// A message may overtake the element: it says how often the element has moved, so the new PE knows that the element is
// still to come and keeps the message. Calls to all elements: broadcasts.cpp.
#include <memory>
#include <optional>
#include <utility>

#include "weft/chare/chare.h"
#include "weft/chare/chares.h"
#include "weft/chare/outcome.h"
#include "weft/runtime/operation.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "models/chare/elements/parts.h"
#include "runtime/future_table.h"
#include "runtime/losses/losses.h"

namespace weft::chare {

using runtime::Message;
using runtime::MessagePtr;

namespace {

base::Status cannot_move(const ChareBase& chare, std::string_view why,
                         base::StatusCode code = base::StatusCode::kInvalidArgument) {
  return {code, base::format("{} cannot move: {}", chare.where(), why)};
}

// Fails with the reason if it cannot move as it is now.
base::Status obstacle(const ChareBase& chare) {
  if (chare.is_pinned())
    return {base::StatusCode::kInvalidArgument, base::format("{} is pinned", chare.where())};
  return chare.runtime().obstacle_to_moving({chare.collection().id(), chare.linear_index()});
}

// --- Large vectors of the state

// Attaches them to a message, or only counts them.
class Leaving final : public base::OutOfBand {
 public:
  explicit Leaving(base::VectorPool& pool, Message* message = nullptr)
      : OutOfBand(pool, Message::kMaxAttachments), message_(message) {}

 private:
  void attach(void* data, std::size_t size_bytes, void* owner, void (*release)(void* owner)) override {
    using Release = void (*)(void* owner);
    struct Owner {
      void* owner;
      Release release;
    };
    runtime::Attachment attachment(
        {data, size_bytes, {}, nullptr},
        [](void* self, const memory::Buffer&) {
          const std::unique_ptr<Owner> given(static_cast<Owner*>(self));
          given->release(given->owner);
        },
        new Owner{owner, release});
    attachment.give_away();
    message_->attach(std::move(attachment));
  }
  std::span<const std::byte> next_bytes(std::size_t) override { return {}; }
  base::AnyVector* next_vector() override { return nullptr; }

  Message* message_;
};

// The vectors of an arriving element, which the message keeps while their bytes land.
struct ReceivedVectors {
  std::vector<std::unique_ptr<base::AnyVector>> vectors;
};

// Takes them out of a message.
class Arrived final : public base::OutOfBand {
 public:
  Arrived(base::VectorPool& pool, Message& message)
      : OutOfBand(pool, Message::kMaxAttachments),
        attachments_(message.attachments()),
        kept_(message.has_attachments() ? message.take_kept() : nullptr),
        landed_(static_cast<ReceivedVectors*>(kept_.get())) {}

 private:
  void attach(void*, std::size_t, void*, void (*)(void*)) override {}
  std::span<const std::byte> next_bytes(std::size_t size_bytes) override {
    if (next_ >= attachments_.size() || attachments_[next_].buffer().size_bytes != size_bytes ||
        !attachments_[next_].buffer().place.is_host()) {
      base::refuse_claim(
          base::format("the state has a vector of {} bytes, and no such vector comes with it", size_bytes));
    }
    return {static_cast<const std::byte*>(attachments_[next_++].buffer().data), size_bytes};
  }
  base::AnyVector* next_vector() override {
    return landed_ == nullptr ? nullptr : landed_->vectors.at(next_ - 1).get();
  }

  std::span<runtime::Attachment> attachments_;
  std::shared_ptr<void> kept_;
  ReceivedVectors* landed_;
  std::size_t next_ = 0;
};

// An unpacker for the bytes that the features of the element have packed, and no more; `p` goes on behind them. Throws
// Error(kCorrupt) if the message is shorter.
Pup features_of(const MoveHeader& header, Pup& p) {
  p.expect(header.feature_bytes);
  Pup features = Pup::unpacker(p.cursor(), header.feature_bytes, p.context());
  p.skip(header.feature_bytes);
  return features;
}

}  // namespace

// --- Leaving

void ChareBase::migrate(int to_pe) { collection_->chares().migrate(*this, to_pe); }

void ChareBase::ended_while_leaving() {
  if (num_suspended() != 0) return;
  if ((num_suspended_ & kLeaves) != 0) return collection_->chares().parts_->free_later(*this);
  num_suspended_ &= ~kMoves;
  collection_->chares().parts_->wanted_moves.add({collection_->id(), linear_index_});
}

void Chares::migrate(ChareBase& chare, int to_pe) {
  chare.collection().expect_alive();
  base::check(parts_->expect_movable(chare, to_pe));
  chare.move_to_ = to_pe;
  // Also if a move is pending: it may wait for operations, and not be wanted any more.
  parts_->wanted_moves.add({chare.collection().id(), chare.linear_index()});
}

base::Status Chares::Parts::expect_movable(const ChareBase& chare, int to_pe) const {
  if (to_pe < 0 || to_pe >= runtime_.num_pes()) {
    return cannot_move(chare, base::format("there is no PE {}; the job has {}", to_pe, runtime_.num_pes()),
                       base::StatusCode::kOutOfRange);
  }
  if (runtime_.losses().is_lost(to_pe))
    return cannot_move(chare, base::format("PE {} is lost", to_pe), base::StatusCode::kPeerFailed);
  if (chare.collection().kind() == CollectionKind::kGroup) {
    return cannot_move(
        chare,
        "it belongs to a group, which has one element on each PE; use an array for elements that move");
  }
  const ChareType* const type = chare.collection().type();
  if (type != nullptr && type->pup == nullptr) {
    return cannot_move(
        chare,
        base::format("give {} a public function `void pup(weft::Pup& p) {{ p | a | b; }}` that names its "
                     "members, and a constructor without arguments or one that takes weft::Moved",
                     type->name));
  }
  base::Status status = obstacle(chare);
  for (const Feature* const feature : features) {
    if (status.ok()) status = feature->obstacle(chare);
  }
  return status.ok() ? base::Status() : cannot_move(chare, status.message());
}

void ChareBase::set_pinned(bool pinned) {
  is_pinned_ = pinned;
  if (!pinned || std::exchange(move_to_, -1) < 0) return;
  collection_->chares().move_again({collection_->id(), linear_index_});
}

void Chares::move_again(runtime::ElementId element) { parts_->wanted_moves.add(element); }

void Chares::Parts::move_when_idle(runtime::ElementId element) {
  Collection& from = chares_.collection(element.collection);
  ChareBase* const chare = from.find(element.index);
  if (chare == nullptr) return;  // destroyed meanwhile
  for (Feature* const feature : features) {
    if (feature->continue_move(*chare)) return;
  }
  const auto stays = [this, chare] {
    for (Feature* const feature : features) feature->stayed(*chare);
  };
  if (chare->move_to_ < 0) {  // pinned meanwhile
    runtime_.stay(element);
    return stays();
  }
  if (chare->num_suspended() != 0) {
    chare->num_suspended_ |= ChareBase::kMoves;
    return runtime_.stay(element);
  }
  const int to_pe = chare->move_to_;
  if (to_pe == runtime_.pe() || runtime_.losses().is_lost(to_pe)) {  // lost since it was asked to move
    chare->move_to_ = -1;
    runtime_.stay(element);
    return stays();
  }
  try {
    const base::Status status = obstacle(*chare);
    if (!status.ok()) base::check(cannot_move(*chare, status.message()));
    // At a sync point, an event that a model waits for before a move may come only after the step, so the element stays.
    const ElementLoad* const load = chare->load();
    const bool may_wait = load == nullptr || load->sync.phase != SyncPhase::kMovesFirst;
    const runtime::MoveState state = runtime_.prepare_to_move(element, may_wait);
    if (state == runtime::MoveState::kWaits) return;
    chare->move_to_ = -1;
    if (state == runtime::MoveState::kBusy) return stays();
    depart(*chare, to_pe);
  } catch (...) {  // it has not departed
    runtime_.fail_unawaited(std::current_exception(),
                            base::format("the move of {} to PE {}", chare->where(), to_pe));
  }
}

std::size_t Chares::Parts::depart(ChareBase& chare, int to_pe) {
  Collection& from = chare.collection();
  const ChareType& type = *from.type();
  reply_directly(chare);
  MoveHeader header{from.id(),
                    chare.linear_index_,
                    chare.num_moves_ + 1,
                    chare.next_reduction_,
                    chare.num_results_,
                    {},
                    chare.seen_ == nullptr ? from.elements_->handled : *chare.seen_,
                    0,
                    num_behind_state(chare),
                    chare.num_waiting_calls() != 0,
                    chare.set_};
  const auto pack_features = [this, &chare](Pup& p) {
    for (const Feature* const feature : features) feature->pack(chare, p);
  };
  const runtime::ElementId element{from.id(), chare.linear_index_};
  std::optional<runtime::MovingFutures> futures(std::in_place);
  Leaving counted(chares_.vectors());
  Pup sizer = Pup::sizer(&runtime_);
  pack_features(sizer);
  header.feature_bytes = static_cast<std::uint32_t>(sizer.offset_bytes());
  for (const auto& installed : runtime_.models()) installed.model->pack_moving(element, sizer);
  sizer.set_out_of_band(&counted);
  type.pup(chare, sizer);
  pack_waiting_calls(chare, sizer);
  header.out_of_band = counted.types();
  header.futures = futures->links();
  const std::size_t size_bytes = base::packed_size(header, &runtime_) + sizer.offset_bytes();
  MessagePtr message = Message::create(runtime_, first_handler_ + kMove, size_bytes);
  Leaving given(chares_.vectors(), message.get());
  Pup p = Pup::packer(message->payload(), message->payload_bytes(), &runtime_);
  p.set_carrier(message.get());
  p | header;
  pack_features(p);
  for (const auto& installed : runtime_.models()) installed.model->pack_moving(element, p);
  p.set_out_of_band(&given);
  type.pup(chare, p);
  pack_waiting_calls(chare, p);
  futures.reset();
  if (p.remaining_bytes() != 0 || given.types() != header.out_of_band) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("the pup function of {} visits {} bytes when it packs and {} when it counts; it "
                     "must visit the same members each time",
                     type.name, p.offset_bytes(), size_bytes));
  }
  // From here on the move is made, whatever the program's functions throw.
  from.elements_->directory.leave(header.index, to_pe, header.move);
  from.elements_->departures.add(header.index, header.move, to_pe, header.set);
  std::shared_ptr<ChareBase> left(&chare);
  try {
    for (const auto& installed : runtime_.models()) installed.model->element_has_moved(element, left);
    chare.departed();
    forward_waiting_calls(chare);
    if (!from.is_sparse())
      runtime_.reductions().contributor_left(scope_of(from), chare.first_reduction_here_);
    for (Feature* const feature : features) feature->left(from, chare);
  } catch (...) {
    runtime_.fail_unawaited(std::current_exception(),
                            base::format("the move of {} to PE {}", chare.where(), to_pe));
  }
  std::size_t sent_bytes = message->payload_bytes();
  for (const runtime::Attachment& attachment : message->attachments())
    sent_bytes += attachment.buffer().size_bytes;
  if (message->has_attachments()) {  // memory of the chare is in use until they have been sent
    runtime::Operation(runtime::report_sending(runtime_, *message))
        .then([this, left, where = chare.where(), to_pe](const base::Status& status, std::size_t) {
          if (status.ok()) return;
          runtime_.fail_unawaited(std::make_exception_ptr(base::Error(status.code(), status.to_string())),
                                  base::format("the move of {} to PE {}: its state is lost", where, to_pe));
        });
  }
  if (runtime_.observer() != nullptr) [[unlikely]]
    runtime_.observer()->element_left(element, to_pe);
  runtime_.send(to_pe, std::move(message));
  return sent_bytes;
}

// --- Arriving

runtime::Posting Chares::Parts::place_moved(Message& message,
                                            std::span<runtime::ReceiveBuffer> receive_buffers) {
  // It has waited for its collection: its vectors are where they landed.
  if (message.owns_attachments()) return runtime::Posting::kHandle;
  MoveHeader header;
  message.unpacker() | header;
  if (header.out_of_band.empty()) return runtime::Posting::kHandle;  // the class itself takes what lands
  if (header.out_of_band.size() != receive_buffers.size()) {
    runtime_.fail(
        base::format("PE {} has sent an element with {} large vectors, and {} come with it; do all "
                     "PEs run the same program?",
                     message.envelope().source_pe, header.out_of_band.size(), receive_buffers.size()));
    return runtime::Posting::kDrop;
  }
  auto received = std::make_shared<ReceivedVectors>();
  for (std::size_t i = 0; i < receive_buffers.size(); ++i) {
    runtime::ReceiveBuffer& one = receive_buffers[i];
    const base::ElementType* const type = base::ElementType::find(header.out_of_band[i]);
    std::unique_ptr<base::AnyVector>& made = received->vectors.emplace_back();
    // Otherwise it lands in memory of the runtime and is copied.
    if (type == nullptr || one.size_bytes % type->size_bytes() != 0 || !one.place.is_host()) continue;
    made = chares_.vectors().take(*type, one.size_bytes / type->size_bytes());
    one.into = runtime::Attachment({made->data(), one.size_bytes, {}, nullptr});
  }
  message.keep(std::move(received));
  return runtime::Posting::kHandle;
}

void Chares::Parts::on_moved_here(MessagePtr message) {
  MoveHeader header;
  Pup p = message->unpacker();
  p | header;
  Collection& target = chares_.collection(header.collection);
  if (target.destroyed_) return arrive_destroyed(header, *message, p);
  if (!target.created_) {
    target.elements_->waiting.push_back(std::move(message));
    return;
  }
  const int from_pe = static_cast<int>(message->envelope().source_pe);
  if (header.index >= target.shape().size() || !target.can_move() || target.type()->make == nullptr ||
      header.move == 0 || target.find(header.index) != nullptr || from_pe == runtime_.pe() ||
      !header.seen.is_valid(runtime_.num_pes()) || header.set > kMostSets ||
      (header.set != 0) != target.is_sparse()) {
    runtime_.fail(
        base::format("element {} of {}, which PE {} has sent to PE {}, does not fit there; do all PEs run "
                     "the same program?",
                     header.index, target.name(), from_pe, runtime_.pe()));
    return;
  }
  ChareBase* arrived = nullptr;
  Pup taken_along = features_of(header, p);
  try {
    for (const auto& installed : runtime_.models()) {
      installed.model->unpack_moving({header.collection, header.index}, p);
    }
    Arrived out_of_band(chares_.vectors(), *message);
    p.set_out_of_band(&out_of_band);
    arrived = &unpack_element(target, header, p);
  } catch (...) {
    return runtime_.fail_unawaited(
        std::current_exception(),
        base::format("the arrival of {} on PE {}", target.element_name(header.index), runtime_.pe()));
  }
  if (!target.is_sparse()) runtime_.reductions().contributor_arrived(scope_of(target), header.next_reduction);
  for (Feature* const feature : features) {
    if (!feature->arrived(*arrived, taken_along, from_pe)) return;
  }
  if (taken_along.remaining_bytes() != 0) {
    runtime_.fail(
        base::format("{} has taken along {} bytes from PE {} that PE {} does not know; do all PEs run "
                     "the same program?",
                     arrived->where(), taken_along.remaining_bytes(), from_pe, runtime_.pe()));
    return;
  }
  report_arrival(target, header, from_pe);
  if (runtime_.observer() != nullptr) [[unlikely]]
    runtime_.observer()->element_arrived({header.collection, header.index}, from_pe);
  try {
    arrived->migrated();
  } catch (...) {
    return runtime_.fail_unawaited(std::current_exception(), arrived->where() + " in migrated()");
  }
  arrived->run_ready_calls();
  release_held(target, header.index);
}

void Chares::Parts::arrive_destroyed(const MoveHeader& header, Message& message, Pup& state) {
  const runtime::ElementId element{header.collection, header.index};
  Collection& target = chares_.collection(header.collection);
  for (const std::uint64_t link : header.futures) {
    runtime::FutureTable::of(runtime_).release_link({message.envelope().source_pe, link});
  }
  try {
    static_cast<void>(features_of(header, state));
    for (const auto& installed : runtime_.models()) installed.model->unpack_moving(element, state);
    if (header.has_waiting_calls) {
      if (header.index >= target.shape().size() || target.type() == nullptr ||
          target.type()->make == nullptr || !header.seen.is_valid(runtime_.num_pes())) {
        base::refuse_claim("it does not fit there");
      }
      Arrived out_of_band(chares_.vectors(), message);
      state.set_out_of_band(&out_of_band);
      refuse_waiting_calls(*make_element(target, header, state));
    }
  } catch (...) {
    return runtime_.fail_unawaited(
        std::current_exception(),
        base::format("the arrival of {} on PE {}", target.element_name(header.index), runtime_.pe()));
  }
  for (const auto& installed : runtime_.models()) installed.model->element_ends(element, nullptr);
}

ChareBase& Chares::Parts::unpack_element(Collection& collection, const MoveHeader& header, Pup& state) {
  ChareBase& element = *make_element(collection, header, state).release();
  collection.elements_->directory.insert(header.index, &element);
  return element;
}

std::unique_ptr<ChareBase> Chares::Parts::make_element(Collection& collection, const MoveHeader& header,
                                                       Pup& state) {
  const ChareType& type = *collection.type();
  NewChare place(collection, header.index, header.set);
  std::unique_ptr<ChareBase> element = type.make(state);
  type.pup(*element, state);
  unpack_waiting_calls(*element, header.num_waiting_calls, state);
  const std::size_t num_out_of_band =
      state.out_of_band() == nullptr ? 0 : state.out_of_band()->types().size();
  if (state.remaining_bytes() != 0 || num_out_of_band != header.out_of_band.size()) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("the pup function of {} leaves {} bytes of the state unread, and takes {} of {} large "
                     "vectors; it must visit the same members when it packs and when it unpacks",
                     type.name, state.remaining_bytes(), num_out_of_band, header.out_of_band.size()));
  }
  element->next_reduction_ = header.next_reduction;
  element->first_reduction_here_ = header.next_reduction;
  element->num_results_ = header.num_results;
  element->num_moves_ = header.move;
  const SeenBroadcasts& handled = collection.elements_->handled;
  if (!handled.includes(header.seen) || !header.seen.includes(handled)) {
    element->seen_ = std::make_unique<SeenBroadcasts>(header.seen);
  }
  return element;
}

void Chares::Parts::report_arrival(Collection& collection, const MoveHeader& header, int from_pe) {
  MessagePtr report =
      Message::pack(runtime_, first_handler_ + kArrived,
                    Arrival{header.collection, header.index, header.move, collection.elements_->handled});
  report->envelope().flags |= runtime::kControlFlag;
  runtime_.send(from_pe, std::move(report));
  const int home = collection.home(header.index);
  if (home != from_pe && home != runtime_.pe()) {
    send_news(collection, header.index, home, runtime_.pe(), header.move);
  }
}

void Chares::Parts::on_arrived(MessagePtr message) {
  Arrival arrival;
  message->unpacker() | arrival;
  Collection& from = chares_.collection(arrival.collection);
  if (from.destroyed_) return;
  const auto [index, move] = std::pair(arrival.index, arrival.move);
  if (!arrival.handled.is_valid(runtime_.num_pes()) ||
      !from.elements_->departures.arrived(std::move(arrival), from.elements_->handled)) {
    runtime_.fail(
        base::format("PE {} reports the arrival of element {} of {} after move {}, which PE {} has not sent "
                     "there; do all PEs run the same program?",
                     message->envelope().source_pe, index, from.name(), move, runtime_.pe()));
  }
}

// --- Where elements are

void Chares::Parts::send_news(Collection& collection, std::uint64_t index, int to_pe, int at_pe,
                              std::uint32_t move) {
  MessagePtr news =
      Message::pack(runtime_, first_handler_ + kLocation, LocationNews{collection.id(), index, at_pe, move});
  news->envelope().flags |= runtime::kControlFlag;
  runtime_.send(to_pe, std::move(news));
}

void Chares::Parts::on_location(MessagePtr message) {
  LocationNews news;
  message->unpacker() | news;
  if (news.pe < 0 || news.pe >= runtime_.num_pes()) {
    runtime_.fail(base::format("PE {} reports an element on PE {} of {}; do all PEs run the same program?",
                               message->envelope().source_pe, news.pe, runtime_.num_pes()));
    return;
  }
  Collection& target = chares_.collection(news.collection);
  if (target.destroyed_ || runtime_.losses().is_lost(news.pe)) return;
  if (target.elements_->directory.learn(news.index, news.pe, news.move)) release_held(target, news.index);
}

void Chares::Parts::hold(Collection& collection, std::uint64_t index, MessagePtr message) {
  collection.elements_->held[index].push_back(std::move(message));
}

void Chares::Parts::release_held(Collection& collection, std::uint64_t index) {
  auto node = collection.elements_->held.extract(index);
  if (node.empty()) return;
  for (MessagePtr& message : node.mapped()) runtime_.send(runtime_.pe(), std::move(message));
}

}  // namespace weft::chare
