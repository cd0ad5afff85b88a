// Collections are made on each PE.
#include <algorithm>
#include <cstring>

#include "weft/chare/chare.h"
#include "weft/chare/chares.h"
#include "weft/chare/outcome.h"

#include "base/format.h"
#include "models/chare/elements/parts.h"
#include "runtime/collective/exchange_plan.h"
#include "runtime/losses/losses.h"

namespace weft::chare {

using runtime::Message;
using runtime::MessagePtr;
using runtime::Registry;

namespace {

// The best route for results of reductions that all PEs get. Elements that move may leave a PE without any, which then takes part in an
// exchange only when a part reaches it. `exchanges`: whether that suits the PEs.
runtime::Route route_of(const Collection& made, bool on_every_pe, bool exchanges) {
  if (!on_every_pe) return runtime::Route::kTree;
  if (!exchanges) return runtime::Route::kFullTree;
  if (!made.can_move()) return runtime::Route::kExchange;
  const runtime::Runtime& runtime = made.chares().runtime();
  return runtime::ExchangePlan::reaches_all(runtime.num_pes(), runtime.host_groups())
             ? runtime::Route::kMovingExchange
             : runtime::Route::kFullTree;
}

struct CreateHeader {
  std::uint64_t collection = 0;
  CollectionKind kind = CollectionKind::kArray;
  std::uint32_t constructor = 0;
  Shape shape;
  // Whether reductions for all may run by recursive doubling; one PE decides for all.
  bool exchanges = true;
  void pup(Pup& p) { p | collection | kind | constructor | shape | exchanges; }
};

struct AwaitCreated {
  std::uint64_t collection = 0;
  std::uint64_t gather = 0;
  std::uint32_t pe = 0;
  std::uint32_t reserved = 0;
};

// The constructor that `where` names has thrown. The packed error follows.
struct NotCreated {
  std::uint64_t collection = 0;
  std::string where;
  void pup(Pup& p) { p | collection | where; }
};

}  // namespace

// Recursive doubling takes the fewest hops, but log2(PEs) messages for each PE. Where PEs share processors, each message
// keeps another PE from running: 64 PEs on 2 processors took 1.5 times as long as with the tree, 4 PEs 0.7 times.
bool exchanges_suit(const runtime::Runtime& runtime) {
  constexpr int kFewPes = 4;
  return !runtime.shares_processor() || runtime.num_pes() <= kFewPes;
}

Collection& Chares::create(CollectionKind kind, const Shape& shape, const ConstructorInfo& constructor,
                           std::span<const std::byte> arguments) {
  // A wrong map is an error of the caller. Bounds of a sparse array may have more indices than can be asked; insert() asks.
  if (kind != CollectionKind::kSparse || shape.map() != Map::kUser) shape.check_homes(runtime_.num_pes());
  std::uint64_t id = std::uint64_t{static_cast<std::uint32_t>(runtime_.pe())} << 32 | next_collection_++;
  Collection& made = collection(id);
  know_shape(made, kind, shape);
  made.type_ = constructor.type;
  const bool moves = has_movable_homes(kind) && runtime_.losses().count() > 0;
  CreateHeader header{id, kind, constructor.id, moves ? parts_->losses->living(shape) : shape,
                      exchanges_suit(runtime_)};
  std::size_t header_bytes = base::packed_size(header);
  MessagePtr message = Message::create(runtime_, first_handler_ + kCreate, header_bytes + arguments.size());
  Pup p = Pup::packer(message->payload(), header_bytes);
  p | header;
  std::copy(arguments.begin(), arguments.end(), message->payload() + header_bytes);
  parts_->send_to_all(std::move(message));
  return made;
}

void Chares::Parts::send_to_all(MessagePtr message) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  const int num_pes = runtime_.num_pes();
  if (message->payload_bytes() * static_cast<std::size_t>(num_pes) > kMostBytes) {
    return runtime_.broadcast(std::move(message));
  }
  for (int pe = 0; pe < num_pes; ++pe) {
    if (pe == runtime_.pe()) continue;
    MessagePtr copy = Message::create(runtime_, message->envelope().handler, message->payload_bytes());
    std::memcpy(copy->payload(), message->payload(), message->payload_bytes());
    runtime_.send(pe, std::move(copy));
  }
  runtime_.send(runtime_.pe(), std::move(message));
}

Collection& Chares::collection(std::uint64_t id) {
  if (parts_->latest != nullptr && parts_->latest->id() == id) [[likely]]
    return *parts_->latest;
  return parts_->find_or_make_collection(id);
}

Collection& Chares::Parts::find_or_make_collection(std::uint64_t id) {
  auto& slot = collections[id];
  if (slot == nullptr) slot = std::make_unique<Collection>(chares_, id);
  latest = slot.get();
  return *slot;
}

void Chares::know_shape(Collection& collection, CollectionKind kind, const Shape& shape) {
  if (collection.shape_.size() != 0) return;
  collection.kind_ = kind;
  collection.shape_ = shape;
  if (parts_->losses != nullptr) parts_->losses->leave_lost_homes(collection);
}

void Chares::Parts::on_create(MessagePtr message) {
  CreateHeader header;
  Pup p = message->unpacker();
  p | header;
  const ConstructorInfo* constructor = Registry<ConstructorInfo>::find(header.constructor);
  if (constructor == nullptr) {
    runtime_.fail(
        base::format("PE {} makes a collection with a constructor that PE {} does not have; do all PEs run "
                     "the same program?",
                     message->envelope().source_pe, runtime_.pe()));
    return;
  }
  Collection& made = chares_.collection(header.collection);
  made.kind_ = header.kind;
  made.shape_ = header.shape;
  made.type_ = constructor->type;
  made.set_balancing(constructor->type->balancing);
  made.set_has_created(constructor->type->begin_created != nullptr);
  if (constructor->name_collection != nullptr) {
    Pup arguments = Pup::unpacker(p.cursor(), p.remaining_bytes(), &runtime_);
    constructor->name_collection(made, arguments);
  }
  choose_balancing(made);
  if (losses != nullptr) losses->created(made, *constructor, {p.cursor(), p.remaining_bytes()});
  if (made.is_sparse()) return open_elements(made, false);
  if (construct_elements(made, *constructor, {p.cursor(), p.remaining_bytes()})) {
    if (losses != nullptr) losses->leave_lost_homes(made);  // of which the maker did not know
    open_elements(made, header.exchanges);
    return begin_created(made);
  }
  // The collection is never made on this PE. Its messages wait for its end, which may be among them, or for the job's.
  std::vector<MessagePtr>& waiting = made.elements_->waiting;
  const auto is_end = [this](const MessagePtr& one) {
    return one->envelope().handler == first_handler_ + kDestroy;
  };
  const auto end = std::find_if(waiting.begin(), waiting.end(), is_end);
  if (end == waiting.end()) return;
  MessagePtr held = std::move(*end);
  waiting.erase(end);
  runtime_.send(runtime_.pe(), std::move(held));
}

void Chares::Parts::choose_balancing(Collection& made) {
  made.is_balanced_ =
      std::ranges::any_of(features, [&made](const Feature* feature) { return feature->measures(made); });
}

void Chares::Parts::open_elements(Collection& made, bool exchanges) {
  made.created_ = true;
  for (Feature* const feature : features) feature->collection_begins(made);
  if (!made.is_sparse()) {
    runtime_.reductions().open(scope_of(made), made.shape().size(), made.num_local(), false,
                               route_of(made, made.elements_->on_every_pe, exchanges));
  }
  release_waiting(made);
}

bool Chares::Parts::construct_elements(Collection& made, const ConstructorInfo& constructor,
                                       std::span<const std::byte> arguments) {
  int pe = runtime_.pe();
  std::uint64_t size = made.shape().size();
  made.elements_->directory.reserve(size / static_cast<std::uint64_t>(runtime_.num_pes()) + 1);
  std::uint64_t index = 0;
  std::vector<bool> is_home(static_cast<std::size_t>(runtime_.num_pes()));
  int num_homes = 0;
  try {
    for (; index < size; ++index) {
      const int home = made.home(index);
      if (!is_home.at(static_cast<std::size_t>(home))) {
        is_home[static_cast<std::size_t>(home)] = true;
        ++num_homes;
      }
      if (home != pe) continue;
      NewChare place(made, index);
      Pup p = Pup::unpacker(arguments.data(), arguments.size(), &runtime_);
      std::unique_ptr<ChareBase> element = constructor.construct(p);
      if (element == nullptr) return false;
      if (made.has_created()) {
        made.elements_->being_created.emplace(index, element.release());
      } else {
        made.elements_->directory.insert(index, element.release());
      }
    }
  } catch (...) {
    const std::string where = base::format("the constructor of {} on PE {}", made.element_name(index), pe);
    report_not_created(made, where, runtime::as_remote_error(std::current_exception(), "in " + where));
    return false;
  }
  made.elements_->on_every_pe = num_homes == runtime_.num_pes();
  return true;
}

void Chares::Parts::report_not_created(Collection& collection, const std::string& where,
                                       const std::exception_ptr& error) {
  collection.failure_ = std::make_unique<std::string>(where + " has thrown");
  Pup sizer = Pup::sizer(&runtime_);
  sizer | NotCreated{collection.id(), where};
  runtime::pack_error(sizer, error);
  MessagePtr report = Message::create(runtime_, first_handler_ + kNotCreated, sizer.offset_bytes());
  Pup p = Pup::packer(report->payload(), report->payload_bytes(), &runtime_);
  p | NotCreated{collection.id(), where};
  runtime::pack_error(p, error);
  runtime_.send(static_cast<int>(collection.id() >> 32), std::move(report));
}

// --- Creations that are awaited

runtime::Future<> Chares::created(Collection& collection) {
  const auto creator = static_cast<int>(collection.id() >> 32);
  if (creator != runtime_.pe()) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      base::format("only PE {}, which has made the collection {}, can await its creation",
                                   creator, collection.name()));
  }
  collection.expect_alive();
  runtime::Future<> done(runtime_);
  const ReplyTo reply = expect_gather([this, done, &collection](Pup& p) {
    parts_->awaited_creations.erase(collection.id());
    const auto nothing = [](auto&&...) {};
    std::exception_ptr error = read_gathered(p, nothing, nothing);
    if (error && !parts_->failed_creations.contains(collection.id())) {  // refused, because it was destroyed
      error = std::make_exception_ptr(base::Error(base::StatusCode::kClosed, collection.why_gone()));
    }
    error ? done.set_error(error) : done.set();
  });
  parts_->awaited_creations.emplace(collection.id(), reply.id);
  parts_->send_to_all(Message::pack(runtime_, first_handler_ + kAwaitCreated,
                                    AwaitCreated{collection.id(), reply.id, reply.pe}));
  return done;
}

void Chares::Parts::on_await_created(MessagePtr message) {
  AwaitCreated awaited;
  message->unpacker() | awaited;
  if (awaited.pe >= static_cast<std::uint32_t>(runtime_.num_pes())) {
    runtime_.fail(base::format("PE {} awaits a creation for PE {} of {}; do all PEs run the same program?",
                               message->envelope().source_pe, awaited.pe, runtime_.num_pes()));
    return;
  }
  Collection& target = chares_.collection(awaited.collection);
  if (target.failure_ != nullptr) return;  // the creator is told, and gives up
  const bool is_ready = target.created_ && (target.is_sparse() || target.elements_->being_created.empty());
  if (target.destroyed_) {  // perhaps before it was ready
    const ReplyTo reply{ReplyTo::Kind::kGather, awaited.pe, awaited.gather | ReplyTo::kDirectly};
    if (is_given_up(reply, runtime_.pe())) return;
    // Opens the reduction of the gather, because contributions of other PEs pass through this PE.
    const runtime::ScopeId scope{awaited.pe, kGatherScopes | awaited.gather};
    runtime_.reductions().open(scope, static_cast<std::uint64_t>(runtime_.num_pes()), 0, true);
    refuse(target, {target.id(), 0, 0, 0, reply}, *message, base::StatusCode::kClosed, target.why_gone());
  } else if (is_ready) {
    take_part(awaited.pe, awaited.gather);
  } else {
    target.elements_->waiting.push_back(std::move(message));
  }
}

void Chares::Parts::on_not_created(MessagePtr message) {
  Pup p = message->unpacker();
  NotCreated report;
  p | report;
  Collection& target = chares_.collection(report.collection);
  const std::exception_ptr error = runtime::unpack_error(p);
  if (failed_creations.contains(target.id())) return;  // another PE has told it before
  const auto [first, last] = awaited_creations.equal_range(target.id());
  if (first == last) return runtime_.fail_unawaited(error, report.where);
  std::vector<std::uint64_t> waiting;
  std::for_each(first, last, [&waiting](const auto& one) { waiting.push_back(one.second); });
  failed_creations.insert(target.id());
  const std::string failure = report.where + " has thrown";
  static_cast<void>(end_everywhere(target, failure));
  if (!target.destroyed_) end_collection(target, failure);
  for (const std::uint64_t gather : waiting) give_up_gather(gather, error);
}

}  // namespace weft::chare
