// How collections travel in proxies. A checkpoint has its own numbers of collections.
#include <cstdint>

#include "weft/chare/chares.h"

#include "models/chare/checkpoint/checkpoints.h"

namespace weft::chare {

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
    collection->chares().checkpoints().note_proxy(*collection);
    kind = collection->kind();
    shape = collection->shape().without_table();
  }
  p | kind | shape;
  if (!p.is_unpacking()) return;
  auto& chares = static_cast<runtime::Runtime*>(p.context())->model<Chares>();
  if (chares.checkpoints().translates_proxies()) [[unlikely]] {
    collection = &chares.checkpoints().translated(id);
    return;
  }
  collection = &chares.collection(id);
  chares.know_shape(*collection, kind, shape);
}

bool pup_collection_id(Pup& p, std::uint64_t& id) {
  auto* const runtime = static_cast<runtime::Runtime*>(p.context());
  Chares* const chares = runtime == nullptr ? nullptr : &runtime->model<Chares>();
  if (!p.is_unpacking() && id != 0 && chares != nullptr)
    chares->checkpoints().note_proxy(chares->collection(id));
  p | id;
  if (!p.is_unpacking() || id == 0 || chares == nullptr || !chares->checkpoints().translates_proxies())
    return false;
  id = chares->checkpoints().translated(id).id();
  return true;
}

}  // namespace weft::chare
