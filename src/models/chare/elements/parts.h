// Shared by the files of the chare model: its handlers, the state of Chares, and reading of headers.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "weft/chare/chare.h"
#include "weft/chare/chares.h"

#include "models/chare/balancing/wanted_moves.h"
#include "models/chare/elements/collection.h"
#include "models/chare/elements/feature.h"
#include "models/chare/elements/moving.h"
#include "models/chare/elements/placements.h"
#include "models/chare/elements/postponed_calls.h"
#include "runtime/collective/reductions.h"

namespace weft::chare {

// Offsets in the model's range of handlers; entry_handler() and broadcast_handler() are two of them.
enum ChareHandler : runtime::HandlerId {
  kCreate,
  kEntry,
  kBroadcast,
  kLocation,
  kGathered,
  kAllReduced,
  kDestroy,
  kRefused,
  kAwaitCreated,
  kNotCreated,
  kMove,
  kArrived,
  kBroadcastCopy,
  kBroadcastResult,
  kAskDestroyed,
  kSync,
  kCheckpointStep,
  kCheckpointStepDone,
  kSparse,
  kRemove,
  kSectionCall,
  kSectionTarget,
  kSectionPart,
  kPeriodic,
  kCombinedTarget,
  kElementFailed,
  kNumChareHandlers,
};
// Otherwise the last ones are those of the next model.
static_assert(kNumChareHandlers == Chares::kNeeds.num_handlers);

// Set in the scopes of gathers, to separate them from those of collections, whose numbers are smaller.
inline constexpr std::uint64_t kGatherScopes = std::uint64_t{1} << 62;

// The PE of an element, sent to a PE that addressed it elsewhere, and to its home.
struct LocationNews {
  std::uint64_t collection = 0;
  std::uint64_t index = 0;
  std::int32_t pe = 0;
  std::uint32_t move = 0;
};

// A call from the choice of its memory until its entry method has run. The chare does not migrate meanwhile.
struct Placement {
  ChareBase& chare;
  const EntryInfo& entry;
  ReplyTo reply;
  Placements::Ranges ranges;
  std::shared_ptr<void> kept;  // by EntryInfo::place
};

// Futures of this PE's elements that wait for the result of a reduction, by collection and sequence number. As a rule
// there is one reduction at a time: its list is used again for the next.
class AllReduces {
 public:
  using Key = std::pair<std::uint64_t, std::uint64_t>;

  AllReduces() = default;
  AllReduces(const AllReduces&) = delete;
  AllReduces& operator=(const AllReduces&) = delete;
  ~AllReduces() {
    for (runtime::FutureState* state : first_) state->release();
    for (auto& [key, states] : others_) {
      for (runtime::FutureState* state : states) state->release();
    }
  }

  // Keeps a share of `state` until its reduction is complete.
  void wait(Key key, runtime::FutureState* state) {
    state->acquire();
    if (first_.empty() && !others_.contains(key)) first_key_ = key;
    (first_key_ == key ? first_ : others_[key]).push_back(state);
  }

  // Sets the futures of the reduction, if any element of this PE takes part.
  void complete(Key key, const Pup& result) {
    std::vector<runtime::FutureState*> states;
    if (!first_.empty() && first_key_ == key) {
      states.swap(first_);
    } else if (auto found = others_.find(key); found != others_.end()) {
      states.swap(found->second);
      others_.erase(found);
    }
    for (runtime::FutureState* state : states) {
      Pup copy = result;
      state->set_packed(copy);
      state->release();
    }
    if (!first_.empty()) return;
    states.clear();
    first_.swap(states);
  }

  // The reductions of that collection below that number have no result: their futures get `error`.
  void fail(std::uint64_t collection, const std::exception_ptr& error,
            std::uint64_t below = ~std::uint64_t{0}) {
    std::vector<runtime::FutureState*> failed;
    if (first_key_.first == collection && first_key_.second < below) failed.swap(first_);
    for (auto it = others_.lower_bound({collection, 0});
         it != others_.end() && it->first.first == collection && it->first.second < below;
         it = others_.erase(it)) {
      failed.insert(failed.end(), it->second.begin(), it->second.end());
    }
    for (runtime::FutureState* state : failed) {
      state->set_error(error);
      state->release();
    }
  }

 private:
  Key first_key_;
  std::vector<runtime::FutureState*> first_;
  std::map<Key, std::vector<runtime::FutureState*>> others_;
};

// Chares of destroyed collections: those whose entry methods wait, and those that can be freed. Models may have shares of
// them too, see Model::element_ends().
class LeavingChares {
 public:
  explicit LeavingChares(Chares& chares) : chares_(chares) {}
  LeavingChares(const LeavingChares&) = delete;
  LeavingChares& operator=(const LeavingChares&) = delete;
  // Frees all.
  ~LeavingChares();

  void add(std::shared_ptr<ChareBase> chare);
  // Frees the chare in a turn of its own: the caller may be its entry method. REQUIRES: added.
  void free_later(runtime::Runtime& runtime, ChareBase& chare);
  // Frees all.
  void clear() {
    const auto waiting = std::exchange(waiting_, {});
    const auto idle = std::exchange(idle_, {});
  }

 private:
  struct FreeWork : runtime::Work {
    explicit FreeWork(LeavingChares& owner_in) : runtime::Work(&FreeWork::turn), owner(owner_in) {}
    static void turn(runtime::Work* self, runtime::Runtime&, runtime::WorkAction action);
    LeavingChares& owner;
  };

  Chares& chares_;
  std::unordered_map<ChareBase*, std::shared_ptr<ChareBase>> waiting_;
  std::vector<std::shared_ptr<ChareBase>> idle_;
  FreeWork work_{*this};
};

struct Chares::Parts {
  // In model.cpp, which makes all features.
  Parts(Chares& chares, runtime::Runtime& runtime);
  ~Parts();
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  std::unordered_map<std::uint64_t, std::unique_ptr<Collection>> collections;
  // Those of all destroyed collections, which have none and get none. So a PE keeps little of a destroyed collection. A sparse array
  // has its own also then, because outcomes of insertions may come later.
  std::shared_ptr<Collection::Elements> no_elements;
  Collection* latest = nullptr;  // successive messages are often for one collection
  // An empty function: an element has failed, and the caller knows. What the others give is awaited and dropped.
  std::unordered_map<std::uint64_t, std::function<void(Pup&)>> gathers;
  std::uint64_t next_gather = 1;
  // Gathers of this PE that have got an error before all parts were there. What comes of them is dropped.
  std::unordered_set<std::uint64_t> given_up;
  // The latest call whose caller this PE has told of a failure, by the caller's PE and the gather. If all elements fail, as in one turn,
  // each PE tells one.
  std::pair<std::uint32_t, std::uint64_t> told_failure;
  bool is_given_up(const ReplyTo& reply, int pe) const {
    return !given_up.empty() && reply.kind == ReplyTo::Kind::kGather &&
           reply.pe == static_cast<std::uint32_t>(pe) && given_up.contains(reply.gather());
  }
  // The gathers that await the creation of a collection.
  std::unordered_multimap<std::uint64_t, std::uint64_t> awaited_creations;
  // Collections that this PE has made and whose awaiting callers know that a constructor has thrown.
  std::unordered_set<std::uint64_t> failed_creations;
  AllReduces all_reduces;
  Placements placements;
  LeavingChares leaving;
  WantedMoves wanted_moves;
  PostponedCalls postponed_calls;
  base::VectorPool vectors;

  // Features know one another by these names. The other files of the model know `features` and `sets` alone.
  std::unique_ptr<SyncPoints> sync;
  std::unique_ptr<PeriodicBalancing> periodic;
  std::unique_ptr<Checkpoints> checkpoints;
  std::unique_ptr<SparseArrays> sparse;
  std::unique_ptr<Sections> sections;
  std::unique_ptr<Feature> section_feature;
  std::vector<Feature*> features;
  ElementSets* sets = nullptr;
};

// Whether results of reductions that all PEs get should travel by recursive doubling in this job.
bool exchanges_suit(const runtime::Runtime& runtime);

// `set`: of a sparse array, whose reductions are numbered anew for each set of counted elements; else 0.
inline runtime::ScopeId scope_of(const Collection& collection, std::uint32_t set = 0) {
  return {static_cast<std::uint32_t>(collection.id() >> 32),
          runtime::kFirstModelScope + (collection.id() & 0xffffffff) + (std::uint64_t{set} << 32)};
}

// Distinguishes the reductions of different sets of a sparse array.
inline std::uint64_t reduction_number(std::uint32_t set, std::uint32_t reduction) {
  return std::uint64_t{set} << 32 | reduction;
}

// Throws Error(kCorrupt) for a message that is shorter than a header.
inline EntryHeader read_header(runtime::Message& message) {
  if (message.payload_bytes() < sizeof(EntryHeader)) [[unlikely]]
    message.unpacker().expect(sizeof(EntryHeader));
  EntryHeader header;
  std::memcpy(&header, message.payload(), sizeof header);
  return header;
}

inline Pup arguments_of(runtime::Message& message) {
  Pup p = message.unpacker();
  p.skip(sizeof(EntryHeader));
  return p;
}

// The arguments did not unpack. REQUIRES: called in a catch block.
[[gnu::cold, gnu::noinline]] void fail_unpacking(const ChareBase& chare, const EntryInfo& entry);

inline void Chares::invoke(ChareBase& chare, const EntryInfo& entry, Pup&& arguments, const ReplyTo& reply) {
  try {
    entry.invoke(chare, arguments, reply);
  } catch (...) {  // unpacking failed; exceptions of the method itself went to its caller
    fail_unpacking(chare, entry);
  }
}

// Unpacking fewer bytes of arguments costs less than sharing what they hold.
inline constexpr std::size_t kFewestSharedBytes = 20;

// Whether invoke_shared() is to call the elements.
inline bool shares_arguments(const EntryInfo& entry, std::size_t num_elements, std::size_t argument_bytes) {
  return entry.invoke_shared != nullptr && num_elements > 1 && argument_bytes >= kFewestSharedBytes;
}

inline void Chares::invoke_shared(ChareBase& chare, const EntryInfo& entry, Pup&& arguments,
                                  const ReplyTo& reply, std::unique_ptr<SharedCall>& shared) {
  try {
    entry.invoke_shared(chare, arguments, reply, shared);
  } catch (...) {
    fail_unpacking(chare, entry);
  }
}

}  // namespace weft::chare
