#include "models/mpi/objects/attributes.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "models/mpi/objects/error.h"

namespace weft::mpi {

int AttributeKeys::add(Ref<AttributeKey> key) {
  std::erase_if(keys_, [](const auto& numbered) { return numbered.second.is_over(); });
  keys_.emplace(next_, KeyEntry{.key = std::move(key)});
  return next_++;
}

Error AttributeKeys::find(int number, ObjectKind kind, Ref<AttributeKey>* key) const {
  const auto found = keys_.find(number);
  if (found == keys_.end() || found->second.is_over() || found->second.key->kind() != kind) {
    return {MPI_ERR_KEYVAL,
            base::format("{} is no attribute key for objects of this kind, or was freed", number)};
  }
  *key = found->second.key;
  return {};
}

Error AttributeKeys::free(int number, ObjectKind kind) {
  Ref<AttributeKey> key;
  if (Error error = find(number, kind, &key); !error.ok()) return error;
  keys_.find(number)->second.is_freed = true;
  return {};
}

const Attributes::AttributeEntry* Attributes::entry_of(int number) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const AttributeEntry& entry) { return entry.number == number; });
  return found == entries_.end() ? nullptr : &*found;
}

bool Attributes::find(int number, void** value) const {
  const AttributeEntry* const entry = entry_of(number);
  if (entry != nullptr) *value = entry->value;
  return entry != nullptr;
}

void Attributes::erase(int number) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const AttributeEntry& entry) { return entry.number == number; });
  if (found != entries_.end()) entries_.erase(found);
}

Error Attributes::function_error(const char* which, int number, int code) {
  return {code, base::format("the {} function of attribute key {} returned {}", which, number, code)};
}

}  // namespace weft::mpi
