// Collections are made on each PE.
#include <algorithm>

#include "weft/chare/chare.h"
#include "weft/chare/chares.h"

#include "base/format.h"
#include "models/chare/parts.h"

namespace weft::chare {

using runtime::Message;
using runtime::MessagePtr;
using runtime::Registry;

namespace {

struct CreateHeader {
  std::uint64_t collection = 0;
  CollectionKind kind = CollectionKind::kArray;
  std::uint32_t constructor = 0;
  Shape shape;
  // Whether reductions for all may run by recursive doubling; one PE decides for all.
  bool exchanges = true;
  void pup(Pup& p) { p | collection | kind | constructor | shape | exchanges; }
};

// Recursive doubling takes the fewest hops, but log2(PEs) messages for each PE. Where PEs share processors, each message
// keeps another PE from running: 64 PEs on 2 processors took 1.5 times as long as with the tree, 4 PEs 0.7 times.
bool exchanges_suit(const runtime::Runtime& runtime) {
  constexpr int kFewPes = 4;
  return !runtime.shares_processor() || runtime.num_pes() <= kFewPes;
}

}  // namespace

Collection& Chares::create(CollectionKind kind, const Shape& shape, const ConstructorInfo& constructor,
                           std::span<const std::byte> arguments) {
  shape.check_homes(runtime_.num_pes());  // a wrong map is an error of the caller
  std::uint64_t id = std::uint64_t{static_cast<std::uint32_t>(runtime_.pe())} << 32 | next_collection_++;
  Collection& made = collection(id);
  know_shape(made, kind, shape);
  made.type_ = constructor.type;
  CreateHeader header{id, kind, constructor.id, shape, exchanges_suit(runtime_)};
  std::size_t header_bytes = base::packed_size(header);
  MessagePtr message = Message::create(runtime_, first_handler_ + kCreate, header_bytes + arguments.size());
  Pup p = Pup::packer(message->payload(), header_bytes);
  p | header;
  std::copy(arguments.begin(), arguments.end(), message->payload() + header_bytes);
  runtime_.broadcast(std::move(message));
  return made;
}

Collection& Chares::collection(std::uint64_t id) {
  if (parts_->latest != nullptr && parts_->latest->id() == id) [[likely]]
    return *parts_->latest;
  return find_or_make_collection(id);
}

Collection& Chares::find_or_make_collection(std::uint64_t id) {
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
        base::format("PE {} makes a collection with a constructor that PE {} does not have; do all PEs run "
                     "the same program?",
                     message->envelope().source_pe, runtime_.pe()));
    return;
  }
  Collection& made = collection(header.collection);
  made.kind_ = header.kind;
  made.shape_ = header.shape;
  made.type_ = constructor->type;
  // After a failure the collection is never made. Its messages wait until the job ends.
  if (!construct_elements(made, *constructor, {p.cursor(), p.remaining_bytes()})) return;
  made.created_ = true;
  runtime_.reductions().open(scope_of(made), made.shape().size(), made.num_local(), false,
                             header.exchanges && made.elements_->on_every_pe);
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
      made.elements_->directory.insert(index, element.release());
    }
  } catch (...) {
    runtime_.fail_unawaited(std::current_exception(),
                            base::format("the constructor of {} on PE {}", made.element_name(index), pe));
    return false;
  }
  made.elements_->on_every_pe = num_homes == runtime_.num_pes();
  return true;
}

}  // namespace weft::chare
