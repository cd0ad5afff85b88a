// The private half of a collection: its elements, and what waits for it.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/chare/chares.h"

#include "runtime/location/directory.h"

namespace weft::chare {

struct Collection::Elements {
  explicit Elements(int pe) : directory(pe) {}

  runtime::Directory<ChareBase> directory;
  // Entry and broadcast messages that came before the collection was made here.
  std::vector<runtime::MessagePtr> waiting;
};

// While it lives, chares constructed on this thread belong to that place.
struct NewChare {
  NewChare(Collection& collection_in, std::uint64_t index_in);
  ~NewChare();
  NewChare(const NewChare&) = delete;
  NewChare& operator=(const NewChare&) = delete;

  Collection& collection;
  std::uint64_t index;
  const NewChare* outer;
};

}  // namespace weft::chare
