#include "weft/chare/chares.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "weft/chare/chare.h"
#include "weft/chare/entry.h"
#include "weft/chare/proxy.h"

#include "models/chare/collection.h"
#include "runtime/collective/reductions.h"

namespace weft::chare {

using runtime::Message;
using runtime::MessagePtr;
using runtime::Registry;
using runtime::ScopeId;
using runtime::Target;

namespace {

// Offsets in the model's range of handlers; entry_handler() and broadcast_handler() are two of them.
enum ChareHandler : runtime::HandlerId {
  kCreate,
  kEntry,
  kBroadcast,
  kLocation,
  kGathered,
  kAllReduced,
};

// Scopes of gathers: apart from those of collections, whose numbers stay below.
constexpr std::uint64_t kGatherScopes = std::uint64_t{1} << 62;

struct CreateHeader {
  std::uint64_t collection = 0;
  CollectionKind kind = CollectionKind::kArray;
  std::uint32_t constructor = 0;
  Shape shape;
  void pup(Pup& p) { p | collection | kind | constructor | shape; }
};

// Where an element was found, for those who sent to where it no longer is.
struct LocationNews {
  std::uint64_t collection = 0;
  std::uint64_t index = 0;
  std::int32_t pe = 0;
  std::uint32_t move = 0;
};

std::uint32_t creator_of(std::uint64_t collection) { return static_cast<std::uint32_t>(collection >> 32); }

ScopeId scope_of(const Collection& collection) {
  return {creator_of(collection.id()), runtime::kFirstModelScope + (collection.id() & 0xffffffff)};
}

EntryHeader read_header(Message& message) {
  EntryHeader header;
  message.unpacker() | header;
  return header;
}

Pup arguments_of(Message& message) {
  Pup p = message.unpacker();
  p.skip(sizeof(EntryHeader));
  return p;
}

}  // namespace

struct Chares::Parts {
  std::unordered_map<std::uint64_t, std::unique_ptr<Collection>> collections;
  Collection* latest = nullptr;  // messages come in runs to one collection
  std::unordered_map<std::uint64_t, std::function<void(Pup&)>> gathers;
  std::uint64_t next_gather = 1;
  // Futures of this PE's elements that wait for a reduction's result: by collection and sequence number.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<runtime::FutureState*>> all_reduces;
};

Chares::Chares(runtime::Runtime& runtime, const runtime::ModelRange& range)
    : runtime_(runtime), first_handler_(range.first_handler), parts_(std::make_unique<Parts>()) {
  static_cast<void>(Registry<ChareType>::all());
  static_cast<void>(Registry<ConstructorInfo>::all());
  static_cast<void>(Registry<EntryInfo>::all());
  static_cast<void>(Registry<MapInfo>::all());
  auto set = [this]<void (Chares::*Handle)(MessagePtr)>(ChareHandler handler) {
    runtime_.set_handler(
        first_handler_ + handler,
        [](void* context, MessagePtr message) {
          (static_cast<Chares*>(context)->*Handle)(std::move(message));
        },
        this);
  };
  set.operator()<&Chares::on_create>(kCreate);
  set.operator()<&Chares::on_entry>(kEntry);
  set.operator()<&Chares::on_broadcast>(kBroadcast);
  set.operator()<&Chares::on_location>(kLocation);
  set.operator()<&Chares::on_gathered>(kGathered);
  set.operator()<&Chares::on_all_reduced>(kAllReduced);
  runtime_.set_poster(
      entry_handler(),
      [](void* context, MessagePtr& message, std::span<runtime::Landing> landings) {
        const bool wanted = static_cast<Chares*>(context)->post_entry(*message, landings);
        return wanted ? runtime::Posting::kHandle : runtime::Posting::kDrop;
      },
      [](void* context, Message& message) { static_cast<Chares*>(context)->post_dropped(message); });
}

Chares::~Chares() {
  for (auto& [key, states] : parts_->all_reduces) {
    for (runtime::FutureState* state : states) state->release();
  }
}

void Chares::close() {
  for (auto& [id, collection] : parts_->collections) collection->elements_->waiting.clear();
}

std::vector<std::pair<std::string, std::string>> Chares::fingerprint() const {
  return {runtime::registry_fact<ChareType>("chare types"),
          runtime::registry_fact<ConstructorInfo>("constructors"),
          runtime::registry_fact<EntryInfo>("entry methods"), runtime::registry_fact<MapInfo>("maps")};
}

std::string Chares::obstacle_to_moving(runtime::ElementId element) const {
  const auto found = parts_->collections.find(element.collection);
  const ChareBase* const chare =
      found == parts_->collections.end() ? nullptr : found->second->find(element.index);
  if (chare == nullptr || chare->num_suspended() == 0) return {};
  return fmt::format("{} has {} coroutine{} that wait{}", chare->where(), chare->num_suspended(),
                     chare->num_suspended() == 1 ? "" : "s", chare->num_suspended() == 1 ? "s" : "");
}

// --- Collections

Collection& Chares::create(CollectionKind kind, const Shape& shape, const ConstructorInfo& constructor,
                           std::span<const std::byte> arguments) {
  shape.check_homes(runtime_.num_pes());  // a bad map is the caller's error, here and now
  std::uint64_t id = std::uint64_t{static_cast<std::uint32_t>(runtime_.pe())} << 32 | next_collection_++;
  Collection& made = collection(id);
  know_shape(made, kind, shape);
  made.type_ = constructor.type;
  CreateHeader header{id, kind, constructor.id, shape};
  std::size_t header_bytes = base::packed_size(header);
  MessagePtr message = Message::create(runtime_, first_handler_ + kCreate, header_bytes + arguments.size());
  Pup p = Pup::packer(message->payload(), header_bytes);
  p | header;
  std::copy(arguments.begin(), arguments.end(), message->payload() + header_bytes);
  runtime_.broadcast(std::move(message));
  return made;
}

Collection& Chares::collection(std::uint64_t id) {
  if (parts_->latest != nullptr && parts_->latest->id() == id) return *parts_->latest;
  auto& slot = parts_->collections[id];
  if (slot == nullptr) slot = std::make_unique<Collection>(*this, id);
  parts_->latest = slot.get();
  return *slot;
}

void Chares::know_shape(Collection& collection, CollectionKind kind, const Shape& shape) {
  if (collection.shape_.size() != 0) return;
  collection.kind_ = kind;
  collection.shape_ = shape;
}

void pup_collection(Pup& p, Collection*& collection) {
  std::uint64_t id = collection == nullptr ? 0 : collection->id();
  p | id;
  if (id == 0) {
    collection = nullptr;
    return;
  }
  CollectionKind kind = CollectionKind::kArray;
  Shape shape;
  if (!p.is_unpacking()) {
    kind = collection->kind();
    shape = collection->shape().without_table();
  }
  p | kind | shape;
  if (!p.is_unpacking()) return;
  auto& chares = static_cast<runtime::Runtime*>(p.context())->model<Chares>();
  collection = &chares.collection(id);
  chares.know_shape(*collection, kind, shape);
}

void Chares::on_create(MessagePtr message) {
  CreateHeader header;
  Pup p = message->unpacker();
  p | header;
  const ConstructorInfo* constructor = Registry<ConstructorInfo>::find(header.constructor);
  if (constructor == nullptr) {
    runtime_.fail(
        fmt::format("PE {} makes a collection with a constructor that PE {} does not have; do all PEs run "
                    "the same program?",
                    message->envelope().source_pe, runtime_.pe()));
    return;
  }
  Collection& made = collection(header.collection);
  made.kind_ = header.kind;
  made.shape_ = header.shape;
  made.type_ = constructor->type;
  // Without its elements it is never made; what is for them waits for the job's end.
  if (!construct_elements(made, *constructor, {p.cursor(), p.remaining_bytes()})) return;
  made.created_ = true;
  runtime_.reductions().open(scope_of(made), made.shape().size(), made.num_local(), false);
  std::vector<MessagePtr> waiting;
  waiting.swap(made.elements_->waiting);
  for (MessagePtr& early : waiting) runtime_.send(runtime_.pe(), std::move(early));
}

bool Chares::construct_elements(Collection& made, const ConstructorInfo& constructor,
                                std::span<const std::byte> arguments) {
  int pe = runtime_.pe();
  std::uint64_t size = made.shape().size();
  made.elements_->directory.reserve(size / static_cast<std::uint64_t>(runtime_.num_pes()) + 1);
  std::uint64_t index = 0;
  try {
    for (; index < size; ++index) {
      if (made.home(index) != pe) continue;
      NewChare place(made, index);
      Pup p = Pup::unpacker(arguments.data(), arguments.size(), &runtime_);
      std::unique_ptr<ChareBase> element = constructor.construct(p);
      if (element == nullptr) return false;
      made.elements_->directory.insert(index, element.release());
    }
  } catch (...) {
    runtime_.fail_unawaited(std::current_exception(),
                            fmt::format("the constructor of {} on PE {}", made.element_name(index), pe));
    return false;
  }
  return true;
}

// --- Entry methods

MessagePtr Chares::make_entry_message(const EntryHeader& header, std::size_t argument_bytes) {
  MessagePtr message = Message::create(runtime_, entry_handler(), sizeof header + argument_bytes);
  std::memcpy(message->payload(), &header, sizeof header);
  return message;
}

MessagePtr Chares::make_broadcast_message(const EntryHeader& header, std::size_t argument_bytes) {
  MessagePtr message = make_entry_message(header, argument_bytes);
  message->envelope().handler = broadcast_handler();
  return message;
}

void Chares::send_entry(Collection& collection, std::uint64_t index, MessagePtr message) {
  int to = runtime_.pe();
  if (collection.find(index) == nullptr) {
    to = collection.elements_->directory.route(index, collection.home(index));
  }
  runtime_.send(to, std::move(message));
}

void Chares::broadcast_entry(MessagePtr message) { runtime_.broadcast(std::move(message)); }

const EntryInfo* Chares::checked_entry(Collection& collection, const EntryHeader& header) {
  const EntryInfo* entry = Registry<EntryInfo>::find(header.entry);
  if (entry != nullptr && entry->type == collection.type() && header.index < collection.shape().size())
    return entry;
  runtime_.fail(
      fmt::format("a message to entry method {} of element {} of collection {:#x} does not fit that "
                  "collection; do all PEs run the same program?",
                  header.entry, header.index, header.collection));
  return nullptr;
}

void Chares::on_entry(MessagePtr message) {
  ChareBase* chare = find_or_forward(message);
  if (chare == nullptr) return;
  EntryHeader header = read_header(*message);
  const EntryInfo* entry = checked_entry(chare->collection(), header);
  if (entry == nullptr) return;
  if (!message->attachments().empty() && entry->post != nullptr) {
    // It came before the chare did: what has landed goes where the chare wants it.
    if (header.posted == 0) return runtime_.send(runtime_.pe(), std::move(message));
    chare->coroutine_ended();
  }
  invoke(*chare, *entry, arguments_of(*message), header.reply);
}

bool Chares::post_entry(Message& message, std::span<runtime::Landing> landings) {
  EntryHeader header = read_header(message);
  header.posted = 0;
  std::memcpy(message.payload(), &header, sizeof header);
  Collection& target = collection(header.collection);
  ChareBase* chare = target.created_ ? target.find(header.index) : nullptr;
  if (chare == nullptr) return true;  // on_entry keeps or forwards it, and its poster comes later
  const EntryInfo* entry = checked_entry(target, header);
  if (entry == nullptr) return false;
  if (entry->post == nullptr) return true;
  try {
    Pup arguments = arguments_of(message);
    if (!entry->post(*chare, arguments, header.reply, landings)) return false;
  } catch (...) {  // unpacking failed
    runtime_.fail_unawaited(std::current_exception(), chare->where(*entry));
    return false;
  }
  header.posted = 1;
  std::memcpy(message.payload(), &header, sizeof header);
  chare->coroutine_started();  // it stays where it has its buffers
  return true;
}

void Chares::post_dropped(Message& message) {
  const EntryHeader header = read_header(message);
  ChareBase* const chare = header.posted != 0 ? collection(header.collection).find(header.index) : nullptr;
  if (chare != nullptr) chare->coroutine_ended();
}

ChareBase* Chares::find_or_forward(MessagePtr& message) {
  EntryHeader header = read_header(*message);
  Collection& target = collection(header.collection);
  if (!target.created_) {
    target.elements_->waiting.push_back(std::move(message));
    return nullptr;
  }
  ChareBase* chare = target.find(header.index);
  if (chare == nullptr) forward(target, header, std::move(message));
  return chare;
}

void Chares::forward(Collection& target, const EntryHeader& header, MessagePtr message) {
  if (header.index >= target.shape().size()) {
    runtime_.fail(fmt::format("a message from PE {} is for element {} of a collection of shape {}",
                              message->envelope().source_pe, header.index, target.shape().to_string()));
    return;
  }
  int to = target.elements_->directory.route(header.index, target.home(header.index));
  if (to == runtime_.pe()) {
    runtime_.fail(fmt::format("{} is not on its home PE {} and nobody knows where it is",
                              target.element_name(header.index), to));
    return;
  }
  auto sender = static_cast<int>(message->envelope().source_pe);
  if (sender != runtime_.pe()) {
    LocationNews news{header.collection, header.index, to,
                      target.elements_->directory.known_move(header.index)};
    MessagePtr update = Message::pack(runtime_, first_handler_ + kLocation, news);
    update->envelope().flags |= runtime::kControlFlag;
    runtime_.send(sender, std::move(update));
  }
  runtime_.send(to, std::move(message));
}

void Chares::on_location(MessagePtr message) {
  LocationNews news;
  message->unpacker() | news;
  collection(news.collection).elements_->directory.learn(news.index, news.pe, news.move);
}

void Chares::invoke(ChareBase& chare, const EntryInfo& entry, Pup arguments, const ReplyTo& reply) {
  try {
    entry.invoke(chare, arguments, reply);
  } catch (...) {  // unpacking failed: what the method itself throws went where its caller waits
    runtime_.fail_unawaited(std::current_exception(), chare.where(entry));
  }
}

void Chares::on_broadcast(MessagePtr message) {
  EntryHeader header = read_header(*message);
  Collection& target = collection(header.collection);
  if (!target.created_) {
    target.elements_->waiting.push_back(std::move(message));
    return;
  }
  const EntryInfo* entry = checked_entry(target, header);
  if (entry == nullptr) return;
  if (header.reply.kind == ReplyTo::Kind::kGather) {
    runtime_.reductions().open({header.reply.pe, kGatherScopes | header.reply.id}, target.shape().size(),
                               target.num_local(), true);
  }
  // The directory may change while methods run, so the elements are noted first.
  std::vector<ChareBase*> chares;
  chares.reserve(target.num_local());
  target.elements_->directory.for_each(
      [&chares](std::uint64_t, ChareBase& chare) { chares.push_back(&chare); });
  if (!message->attachments().empty()) return share_broadcast(std::move(message), header, chares);
  for (ChareBase* chare : chares) {
    if (runtime_.stopped()) return;
    invoke(*chare, *entry, arguments_of(*message), header.reply);
  }
}

// --- Outcomes

ReplyTo Chares::expect_gather(std::function<void(Pup&)> done) {
  std::uint64_t id = parts_->next_gather++;
  parts_->gathers.emplace(id, std::move(done));
  return {ReplyTo::Kind::kGather, static_cast<std::uint32_t>(runtime_.pe()), id};
}

Target Chares::gather_target(const ReplyTo& reply) const {
  Target target;
  target.handler = first_handler_ + kGathered;
  target.pe = reply.pe;
  target.prefix = base::pack(reply.id);
  return target;
}

void Chares::contribute_outcome(const ReplyTo& reply, ChareBase& chare, std::span<const std::byte> outcome) {
  runtime_.reductions().contribute({reply.pe, kGatherScopes | reply.id}, 0, chare.linear_index(),
                                   runtime::Reducer::kGather, nullptr, outcome, gather_target(reply));
}

void Chares::on_gathered(MessagePtr message) {
  std::uint64_t id = 0;
  Pup p = message->unpacker();
  p | id;
  auto found = parts_->gathers.find(id);
  if (found == parts_->gathers.end()) {
    runtime_.fail("the results of a call arrived a second time");
    return;
  }
  std::function<void(Pup&)> done = std::move(found->second);
  parts_->gathers.erase(found);
  try {
    done(p);
  } catch (...) {
    runtime_.fail_unawaited(std::current_exception(),
                            fmt::format("the results of a call on PE {}", runtime_.pe()));
  }
}

void send_value(ChareBase& chare, const ReplyTo& reply, const std::function<void(Pup&)>& pack_value) {
  runtime::Runtime& runtime = chare.runtime();
  Pup sizer = Pup::sizer(&runtime);
  pack_value(sizer);
  if (reply.kind == ReplyTo::Kind::kGather) {
    std::vector<std::byte> outcome(1 + sizer.offset_bytes());
    Pup p = Pup::packer(outcome.data(), outcome.size(), &runtime);
    p | false;
    pack_value(p);
    chare.collection().chares().contribute_outcome(reply, chare, outcome);
    return;
  }
  runtime::FutureSetHeader header{reply.id, 0};
  MessagePtr message =
      Message::create(runtime, runtime::kFutureSetHandler, base::packed_size(header) + sizer.offset_bytes());
  Pup p = Pup::packer(message->payload(), message->payload_bytes(), &runtime);
  p.set_carrier(message.get());
  p | header;
  pack_value(p);
  runtime.send(static_cast<int>(reply.pe), std::move(message));
}

void send_error(ChareBase& chare, const ReplyTo& reply, const EntryInfo& entry,
                const std::exception_ptr& error) {
  runtime::Runtime& runtime = chare.runtime();
  if (reply.kind == ReplyTo::Kind::kNone) {
    runtime.fail_unawaited(error, chare.where(entry));
    return;
  }
  std::exception_ptr remote = runtime::as_remote_error(error, "in " + chare.where(entry));
  auto pack = [&](Pup& p) {
    if (reply.kind == ReplyTo::Kind::kGather) {
      p | true;
    } else {
      p | runtime::FutureSetHeader{reply.id, 1};
    }
    runtime::pack_error(p, remote);
  };
  Pup sizer = Pup::sizer(&runtime);
  pack(sizer);
  MessagePtr message = Message::create(runtime, runtime::kFutureSetHandler, sizer.offset_bytes());
  Pup p = Pup::packer(message->payload(), message->payload_bytes(), &runtime);
  pack(p);
  if (reply.kind == ReplyTo::Kind::kGather) {
    chare.collection().chares().contribute_outcome(reply, chare, message->payload_span());
  } else {
    runtime.send(static_cast<int>(reply.pe), std::move(message));
  }
}

// --- Reductions

void Chares::contribute(ChareBase& chare, runtime::Reducer reducer, const runtime::Combiner* combiner,
                        std::span<const std::byte> value, const Target& target) {
  runtime_.reductions().contribute(scope_of(chare.collection()), chare.next_reduction_++,
                                   chare.linear_index(), reducer, combiner, value, target);
}

void Chares::contribute_to_all(ChareBase& chare, runtime::Reducer reducer, const runtime::Combiner* combiner,
                               std::span<const std::byte> value, runtime::FutureState* state) {
  std::pair<std::uint64_t, std::uint64_t> key{chare.collection().id(), chare.next_reduction_};
  state->acquire();
  parts_->all_reduces[key].push_back(state);
  Target target;
  target.handler = first_handler_ + kAllReduced;
  target.flags = runtime::kBroadcastFlag;
  target.prefix = base::pack(key);
  contribute(chare, reducer, combiner, value, target);
}

void Chares::on_all_reduced(MessagePtr message) {
  std::pair<std::uint64_t, std::uint64_t> key;
  Pup p = message->unpacker();
  p | key;
  auto found = parts_->all_reduces.find(key);
  if (found == parts_->all_reduces.end()) return;  // no element here takes part
  std::vector<runtime::FutureState*> states = std::move(found->second);
  parts_->all_reduces.erase(found);
  for (runtime::FutureState* state : states) {
    Pup copy = p;
    state->set_packed(copy);
    state->release();
  }
}

}  // namespace weft::chare
