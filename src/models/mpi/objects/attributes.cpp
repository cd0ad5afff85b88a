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

// A new value may have been set while the function for the end of the old one runs.
bool Attributes::find(int number, void** value) const {
  const auto found = std::find_if(entries_.rbegin(), entries_.rend(),
                                  [&](const AttributeEntry& entry) { return entry.number == number; });
  if (found != entries_.rend()) *value = found->value;
  return found != entries_.rend();
}

Attributes::AttributeEntry* Attributes::entry_to_remove(int number) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const AttributeEntry& entry) {
    return entry.number == number && !entry.is_going;
  });
  return found == entries_.end() ? nullptr : &*found;
}

const Attributes::AttributeEntry* Attributes::last_to_remove() const {
  const auto found = std::find_if(entries_.rbegin(), entries_.rend(),
                                  [](const AttributeEntry& entry) { return !entry.is_going; });
  return found == entries_.rend() ? nullptr : &*found;
}

void Attributes::end_removal(const AttributeEntry& going, bool has_gone) {
  const auto found = std::find(entries_.begin(), entries_.end(), going);
  if (found == entries_.end()) return;
  if (has_gone) {
    entries_.erase(found);
  } else {
    found->is_going = false;
  }
}

Error Attributes::function_error(const char* which, int number, int code) {
  return {code, base::format("the {} function of attribute key {} returned {}", which, number, code)};
}

}  // namespace weft::mpi
