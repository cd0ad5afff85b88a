// The private half of a collection: its elements, and the messages that wait for it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "weft/chare/chares.h"

#include "models/chare/moving.h"
#include "models/chare/periodic/local_round.h"
#include "models/chare/sparse/messages.h"
#include "models/chare/sparse/state.h"
#include "models/chare/sync/local_sync.h"
#include "runtime/location/directory.h"

namespace weft::chare {

// An element whose created() has not ended.
struct BeingCreated {
  ChareBase* chare = nullptr;
  std::optional<SparseMessage> insertion = std::nullopt;  // of an element of a sparse array
};

struct Collection::Elements {
  explicit Elements(int pe) : directory(pe) {}

  runtime::Directory<ChareBase> directory;
  // Not in the directory, by index. See created.cpp.
  std::map<std::uint64_t, BeingCreated> being_created;
  // Whether each PE is the home of an element; the same on all PEs.
  bool on_every_pe = false;
  // Entry and broadcast messages that arrived before the collection was made on this PE.
  std::vector<runtime::MessagePtr> waiting;
  // Messages for elements that are on their way to this PE, by index.
  std::unordered_map<std::uint64_t, std::vector<runtime::MessagePtr>> held;
  // Calls to all elements: how many this PE has sent, and which ones it has handled.
  std::uint64_t next_broadcast = 0;
  SeenBroadcasts handled;
  Departures departures;
  LocalSync sync;
  LocalRound periodic;
  std::unique_ptr<SparseState> sparse;  // null before its first use, and for another collection
};

// "token" of "&Ring::token".
std::string short_name_of(const EntryInfo& entry);

// While it exists, a chare that this thread constructs gets this collection and index.
struct NewChare {
  // `set_in`: see ChareBase::set_.
  NewChare(Collection& collection_in, std::uint64_t index_in, std::uint32_t set_in = 0);
  ~NewChare();
  NewChare(const NewChare&) = delete;
  NewChare& operator=(const NewChare&) = delete;

  Collection& collection;
  std::uint64_t index;
  std::uint32_t set;
  const NewChare* outer;
};

}  // namespace weft::chare
