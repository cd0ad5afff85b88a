#include "models/chare/elements/collection.h"

#include "weft/chare/chare.h"

#include "base/format.h"
#include "models/chare/elements/waiting_list.h"  // ChareBase owns it

namespace weft::chare {

Collection::Collection(Chares& chares, std::uint64_t id)
    : chares_(chares), id_(id), elements_(std::make_shared<Elements>(chares.runtime().pe())) {}

Collection::~Collection() = default;

std::string short_name_of(const EntryInfo& entry) {
  std::string_view method = entry.name;
  if (auto scope = method.rfind("::"); scope != std::string_view::npos) method.remove_prefix(scope + 2);
  return std::string(method);
}

void Collection::set_class_name(std::string_view name, std::string_view key) {
  class_names_ = &chares_.shared_names({std::string(name), std::string(key)});
}

ChareBase* Collection::find(std::uint64_t index) const { return elements_->directory.find(index); }

ChareBase* Collection::find_constructed(std::uint64_t index) const {
  if (!elements_->being_created.empty()) {
    const auto found = elements_->being_created.find(index);
    if (found != elements_->being_created.end()) return found->second;
  }
  return find(index);
}

bool Collection::can_move() const {
  return kind_ != CollectionKind::kGroup && type_ != nullptr && type_->pup != nullptr;
}

std::size_t Collection::num_local() const {
  return elements_->directory.num_local() + elements_->being_created.size();
}

int Collection::home(std::uint64_t index) const {
  const runtime::Runtime& runtime = chares_.runtime();
  return shape_.knows_homes() ? shape_.home(index, runtime.num_pes()) : runtime.pe();
}

std::string Collection::name() const {
  if (class_names_ != nullptr) return class_names_->name;
  return std::string(type_ == nullptr ? "chare" : type_->name);
}

std::string Collection::element_name(std::uint64_t index) const {
  std::string name = this->name();
  Index coordinates = shape_.index(index);
  name += base::format("[{}", coordinates[0]);
  for (int d = 1; d < coordinates.num_dimensions(); ++d) name += base::format(", {}", coordinates[d]);
  return name + "]";
}

namespace {

// Read by the constructor of ChareBase, because constructors of programs do not pass it on.
thread_local const NewChare* being_constructed = nullptr;

}  // namespace

NewChare::NewChare(Collection& collection_in, std::uint64_t index_in, std::uint32_t set_in)
    : collection(collection_in), index(index_in), set(set_in), outer(being_constructed) {
  being_constructed = this;
}

NewChare::~NewChare() { being_constructed = outer; }

ChareBase::ChareBase() {
  if (being_constructed == nullptr) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      "a chare cannot be made directly; make it with Array, Group or Singleton::create");
  }
  collection_ = &being_constructed->collection;
  linear_index_ = being_constructed->index;
  set_ = being_constructed->set;
  const bool has_conditions = collection_->type()->has_conditions;
  if (!collection_->is_balanced() && !has_conditions) return;
  load_ = new ElementLoad;
  load_->acquire();
  if (has_conditions) load_->conditional = this;
  if (collection_->is_balanced() && runtime().meter().counts_messages()) {
    load_->messages = std::make_unique<SentMessages>(runtime::ElementId{collection_->id(), linear_index_});
  }
}

std::string ChareBase::where() const {
  return base::format("{} on PE {}", collection_->element_name(linear_index_), pe());
}

std::string ChareBase::where(const EntryInfo& entry) const {
  return base::format("{}.{} on PE {}", collection_->element_name(linear_index_), short_name_of(entry), pe());
}

ChareBase::~ChareBase() {
  if (load_ == nullptr) return;
  load_->conditional = nullptr;
  load_->release();
}

}  // namespace weft::chare
