// A feature of elements, such as sections or load balancing, as the rest of the chare model sees it: what takes part in the life of
// elements and collections, what it keeps of them, and the handlers of its messages. A new feature is a folder beside this one and
// a member of Chares::Parts.
//
// All features are asked in each event, in the order of these members. Threads: one PE's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/pup.h"
#include "weft/base/status.h"
#include "weft/chare/chares.h"
#include "weft/runtime/runtime.h"

namespace weft::chare {

// The state that a feature keeps of one collection, in Collection::Elements.
struct FeatureState {
  FeatureState() = default;
  FeatureState(const FeatureState&) = delete;
  FeatureState& operator=(const FeatureState&) = delete;
  virtual ~FeatureState() = default;
};

// By the number of the feature; null for one that keeps nothing yet.
inline constexpr std::size_t kMostFeatures = 4;
using FeatureStates = std::array<std::unique_ptr<FeatureState>, kMostFeatures>;

class Feature;

// The features of a PE, and the numbers that they get when they are made. All PEs make them in the same order, so a handler has the
// same number on all.
class FeatureTable {
 public:
  FeatureTable(runtime::Runtime& runtime, runtime::HandlerId first_handler)
      : runtime_(runtime), first_handler_(first_handler), next_handler_(first_handler) {}

  auto begin() const { return features_.begin(); }
  auto end() const { return features_.end(); }

  // Returns the feature's number.
  std::size_t add(Feature& feature) {
    features_.push_back(&feature);
    return features_.size() - 1;
  }
  // Sets functions of `owner` as the handlers of the next numbers, in a row. Returns the first number.
  template <auto... kFunctions, class Owner>
  runtime::HandlerId add_handlers(Owner& owner) {
    const runtime::HandlerId first = next_handler_;
    (runtime_.set_handler(
         next_handler_++,
         [](void* context, runtime::MessagePtr message) {
           (static_cast<Owner*>(context)->*kFunctions)(std::move(message));
         },
         &owner),
     ...);
    return first;
  }
  // Fails if there are more features or other handlers than the rest of the model expects.
  base::Status check() const;

 private:
  runtime::Runtime& runtime_;
  runtime::HandlerId first_handler_;
  runtime::HandlerId next_handler_;
  std::vector<Feature*> features_;
};

class Feature {
 public:
  explicit Feature(FeatureTable& table) : number_(table.add(*this)) {}
  Feature(const Feature&) = delete;
  Feature& operator=(const Feature&) = delete;
  virtual ~Feature() = default;

  // --- Collections

  // Whether the elements of the collection, which is being made, are to be measured.
  virtual bool measures(const Collection& /*made*/) const { return false; }
  // The collection is there, with the elements of this PE.
  virtual void collection_begins(Collection& /*made*/) {}
  // The collection ends, and its elements are still there.
  virtual void collection_ends(Collection& /*target*/) {}
  // It is marked as destroyed, and has no elements any more. `states`: what the features have kept of it. Returns messages
  // that have waited there; they are handled as messages for a destroyed collection.
  virtual std::vector<runtime::MessagePtr> collection_ended(Collection& /*target*/, FeatureStates& /*states*/,
                                                            const std::string& /*why*/) {
    return {};
  }
  // The job ends: messages that wait are dropped.
  virtual void close(Collection& /*target*/) {}

  // --- Elements that move

  // Fails with the reason if the program cannot move it now.
  virtual base::Status obstacle(const ChareBase& /*chare*/) const { return {}; }
  // Nothing of the element is suspended, or the models may be ready for it to move. Returns true if the feature has done what is
  // to be done with the element, or will; nothing else moves it then.
  virtual bool continue_move(ChareBase& /*chare*/) { return false; }
  // The element was to move, and stays.
  virtual void stayed(ChareBase& /*chare*/) {}
  // The element is to be removed, or is: it will not move.
  virtual void moves_no_more(const ChareBase& /*chare*/) {}
  // Packs what the element takes along. Called twice in one turn, for the size and for the bytes.
  virtual void pack(const ChareBase& /*chare*/, Pup& /*p*/) const {}
  // The element is not in the directory any more.
  virtual void left(Collection& /*from*/, const ChareBase& /*chare*/) {}
  // The element is in the directory. Unpacks what pack() has packed. Returns false if that does not fit: the job ends.
  virtual bool arrived(ChareBase& /*chare*/, Pup& /*p*/, int /*from_pe*/) { return true; }

 protected:
  // The number of this feature: the index of its state in FeatureStates.
  std::size_t number() const { return number_; }

 private:
  std::size_t number_;
};

// Sets are numbered from 1; the number is part of the number of a gather.
inline constexpr std::uint32_t kMostSets = (std::uint32_t{1} << 22) - 1;

// Sparse arrays, as the rest of the chare model sees them: which elements a call or a reduction concerns while elements come and go.
// See src/models/chare/sparse/. REQUIRES, but for expect_open(): the collection is a sparse array.
class ElementSets {
 public:
  ElementSets() = default;
  ElementSets(const ElementSets&) = delete;
  ElementSets& operator=(const ElementSets&) = delete;

  // created() of an inserted element has ended, or has thrown. See created.cpp.
  virtual void is_made(ChareBase& chare) = 0;
  virtual void not_made(ChareBase& chare, const std::exception_ptr& with_place) = 0;
  // A message for an element that its home, this PE, does not know. It waits for the element, or is refused.
  virtual void has_no_element(Collection& target, EntryHeader header, runtime::MessagePtr message) = 0;
  // The latest set that this PE knows; 0: none.
  virtual std::uint32_t latest_set(const Collection& collection) const = 0;
  // The number of a gather over the latest set. Throws Error(kInvalidArgument) if there is none, or if elements have come or gone
  // on this PE since, or by its insertions.
  virtual std::uint64_t gather_of_set(Collection& collection, std::uint64_t gather) = 0;
  // Whether the elements of this PE are those of the gather's set. Otherwise the call is refused. If the set is empty, the
  // result is sent at once.
  virtual bool serves_gather(Collection& target, const EntryHeader& header, runtime::Message& message) = 0;
  // Takes away the elements that belong to later sets only: a gathered call does not concern them.
  virtual void keep_those_of_set(Collection& target, std::vector<ChareBase*>& chares) = 0;
  // Fails with the reason if reductions of that set have no result any more.
  virtual base::Status expect_open(Collection& collection, std::uint32_t set) = 0;

 protected:
  ~ElementSets() = default;
};

}  // namespace weft::chare
