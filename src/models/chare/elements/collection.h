// The private half of a collection: its elements, and the messages that wait for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "weft/chare/chares.h"

#include "models/chare/elements/feature.h"
#include "models/chare/elements/moving.h"
#include "runtime/location/directory.h"

namespace weft::chare {

struct Collection::Elements {
  explicit Elements(int pe) : directory(pe) {}

  runtime::Directory<ChareBase> directory;
  // Those whose created() has not ended, by index. They are not in the directory. See created.cpp.
  std::map<std::uint64_t, ChareBase*> being_created;
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
  FeatureStates states;  // null before their first use

  template <class State>
  State& state(std::size_t feature) {
    std::unique_ptr<FeatureState>& state = states[feature];
    if (state == nullptr) state = std::make_unique<State>();
    return static_cast<State&>(*state);
  }
  template <class State>
  const State* find_state(std::size_t feature) const {
    return static_cast<const State*>(states[feature].get());
  }
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
