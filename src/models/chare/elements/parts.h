// Shared by the files of the chare model: its handlers, the state of Chares, and reading of headers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "weft/chare/chare.h"
#include "weft/chare/chares.h"

#include "models/chare/balancing/wanted_moves.h"
#include "models/chare/elements/collection.h"
#include "models/chare/elements/feature.h"
#include "models/chare/elements/lost_elements.h"
#include "models/chare/elements/moving.h"
#include "models/chare/elements/placements.h"
#include "models/chare/elements/postponed_calls.h"
#include "runtime/collective/reductions.h"
#include "runtime/owned_work.h"

namespace weft::chare {

// Offsets in the model's range of handlers; entry_handler() and broadcast_handler() are two of them. Those of the features follow,
// see FeatureTable. The functions in ../model.cpp are in this order.
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
  kElementFailed,
  kCallMoved,
  kRevive,
};

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

  // The reduction whose result the future gets, if it is one.
  std::optional<Key> find(const runtime::FutureState& future) const {
    if (std::ranges::find(first_, &future) != first_.end()) return first_key_;
    for (const auto& [key, states] : others_) {
      if (std::ranges::find(states, &future) != states.end()) return key;
    }
    return std::nullopt;
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
  void free_idle();

  Chares& chares_;
  std::unordered_map<ChareBase*, std::shared_ptr<ChareBase>> waiting_;
  std::vector<std::shared_ptr<ChareBase>> idle_;
  runtime::OwnedWork<&LeavingChares::free_idle> work_{*this};
};

// The private half of Chares. Its functions are in the files of their topics.
struct Chares::Parts {
  // In model.cpp, which makes all features.
  Parts(Chares& chares, runtime::Runtime& runtime, runtime::HandlerId first_handler);
  ~Parts();
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  Chares& chares_;
  runtime::Runtime& runtime_;
  FeatureTable features;
  runtime::HandlerId first_handler_;

  // --- State

  std::unordered_map<std::uint64_t, std::unique_ptr<Collection>> collections;
  std::set<ClassNames> class_names;  // of all classes of other languages that collections have had
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

  // Features know one another by these names. The other files of the model know `features` and `sets` alone. Features are asked in
  // this order: an element that is to be removed does not move, and one at a sync point moves by the plan of its step.
  std::unique_ptr<Sections> sections;
  std::unique_ptr<Feature> section_feature;
  std::unique_ptr<SparseArrays> sparse;
  std::unique_ptr<SyncPoints> sync;
  std::unique_ptr<PeriodicBalancing> periodic;
  std::unique_ptr<Checkpoints> checkpoints;
  std::unique_ptr<Bundles> bundles;
  ElementSets* sets = nullptr;
  std::unique_ptr<runtime::LargeMerges> large_merges;
  std::unique_ptr<LostElements> losses;  // null unless the job outlives losses
  void on_call_moved(runtime::MessagePtr message) {
    if (losses != nullptr) losses->on_call_moved(std::move(message));
  }
  void on_revive(runtime::MessagePtr message) {
    if (losses != nullptr) losses->on_revive(std::move(message));
  }

  // --- Messages and calls

  // Where to send the message for the element. Notes in it how often the element is known to have moved.
  inline int pe_of(Collection& collection, std::uint64_t index, runtime::Message& message) const;
  static void note_move(runtime::Message& message, std::uint32_t move);
  [[gnu::noinline]] Collection& find_or_make_collection(std::uint64_t id);
  void on_create(runtime::MessagePtr message);
  void on_entry(runtime::MessagePtr message);
  // The poster of messages with buffers: the chare, if it is on this PE, chooses where they land.
  runtime::Posting place(runtime::MessagePtr& message, std::span<runtime::ReceiveBuffer> receive_buffers);
  void place_dropped(runtime::Message& message);
  // For a message with buffers: runs the entry method if the chare has chosen where the buffers landed. Returns
  // whether it has.
  [[gnu::noinline]] bool invoke_if_placed(runtime::Message& message);
  void on_broadcast(runtime::MessagePtr message);
  // Makes one call for each of these elements, with the buffers of the broadcast.
  void share_broadcast(runtime::MessagePtr message, EntryHeader header, std::span<ChareBase* const> chares);
  void on_location(runtime::MessagePtr message);
  void on_gathered(runtime::MessagePtr message);
  // Sends the error of an element to the caller, which may wait for other elements in vain.
  [[gnu::cold, gnu::noinline]] void tell_failure(const ReplyTo& reply, std::span<const std::byte> error);
  void on_element_failed(runtime::MessagePtr message);
  // Ends a gather as if there were one element, which has failed.
  void end_gather(const std::function<void(Pup&)>& done, const std::exception_ptr& error);
  void on_all_reduced(runtime::MessagePtr message);
  void on_destroy(runtime::MessagePtr message);
  void on_await_created(runtime::MessagePtr message);
  void on_not_created(runtime::MessagePtr message);
  void on_ask_destroyed(runtime::MessagePtr message);

  // --- Elements that move, in migration.cpp

  void on_moved_here(runtime::MessagePtr message);
  // Makes the large vectors of an element that comes, so that they land in their storage.
  runtime::Posting place_moved(runtime::Message& message, std::span<runtime::ReceiveBuffer> receive_buffers);
  void on_arrived(runtime::MessagePtr message);
  // Fails with the reason if the program cannot ask for this move now.
  base::Status expect_movable(const ChareBase& chare, int to_pe) const;
  // Decides whether the elements of a collection are measured. To be called before they are made.
  void choose_balancing(Collection& made);
  // Moves the element if nothing of it is suspended, else when that has ended.
  void move_when_idle(runtime::ElementId element);
  // Returns the number of bytes sent.
  std::size_t depart(ChareBase& chare, int to_pe);
  // The collection was destroyed while the element was on its way: its peers are told, and the callers of calls that wait in
  // it. Only for these it is made.
  void arrive_destroyed(const MoveHeader& header, runtime::Message& message, Pup& state);
  // Makes the element from its state. Throws what its class throws. unpack_element() enters it in the directory.
  ChareBase& unpack_element(Collection& collection, const MoveHeader& header, Pup& state);
  std::unique_ptr<ChareBase> make_element(Collection& collection, const MoveHeader& header, Pup& state);
  // Of an element that is made anew: its next moves are numbered after these.
  static void set_moves(ChareBase& element, std::uint32_t moves) { element.num_moves_ = moves; }
  // Tells the element's home, and the PE that it has left.
  void report_arrival(Collection& collection, const MoveHeader& header, int from_pe);
  void send_news(Collection& collection, std::uint64_t index, int to_pe, int at_pe, std::uint32_t move);
  // Keeps a message for an element that is on its way to this PE.
  void hold(Collection& collection, std::uint64_t index, runtime::MessagePtr message);
  // Handles again what has been held for the element.
  void release_held(Collection& collection, std::uint64_t index);

  // --- Calls that wait for their condition, in waiting_calls.cpp

  // The gathered results of calls that wait in a chare that leaves will go to their callers directly.
  void reply_directly(ChareBase& chare);
  void run_postponed_calls(runtime::ElementId element);
  // How many travel behind the state. pack_waiting_calls() packs them, or counts their bytes.
  static std::uint32_t num_behind_state(const ChareBase& chare);
  static void pack_waiting_calls(ChareBase& chare, Pup& p);
  // Throws Error(kCorrupt) for a call that does not fit.
  void unpack_waiting_calls(ChareBase& chare, std::uint32_t count, Pup& p);
  // The chare has left: sends the calls that travel alone, and forgets all.
  void forward_waiting_calls(ChareBase& chare);
  // The collection has been destroyed: the callers get an error.
  void refuse_waiting_calls(ChareBase& chare);
  // Ends the call with `error`, because it cannot run any more. Without a caller the job ends.
  void refuse_waiting_call(ChareBase& chare, const WaitingCall& call);

  // --- Calls to all elements, in broadcasts.cpp

  void on_broadcast_copy(runtime::MessagePtr message);
  void on_broadcast_result(runtime::MessagePtr message);
  // Sends the broadcast to an element that has left and would miss it.
  void send_after(Collection& collection, runtime::Message& message, EntryHeader header, BroadcastId id,
                  const Departure& departure);
  // The target of a contribution of that element, if it is a method of all elements of a collection.
  runtime::Target numbered(const runtime::Target& target, ChareBase& contributor) const;
  // Writes the source and the number into a broadcast of this PE. Returns the number.
  std::uint64_t number_broadcast(Collection& collection, runtime::Message& message);
  // Takes part in a gather of all PEs, with a value.
  void take_part(std::uint32_t to_pe, std::uint64_t gather, bool value = false);
  // The gather `id` of this PE gets this error, if it is not over.
  void give_up_gather(std::uint64_t id, const std::exception_ptr& error);
  // `failure`: why the collection could not be created; empty if it is destroyed.
  runtime::Future<> end_everywhere(Collection& collection, const std::string& failure);
  // A message to all PEs. A small one goes to each directly, so that no PE waits for one that computes.
  void send_to_all(runtime::MessagePtr message);
  void on_refused(runtime::MessagePtr message);

  // --- Creation and the end, in collections.cpp, created.cpp and destruction.cpp

  // Frees the elements of this PE.
  void end_collection(Collection& collection, const std::string& failure);
  // Gives up these shares, and tells all models. REQUIRES: nothing of the chares runs.
  void free(std::vector<std::shared_ptr<ChareBase>> chares);
  // The last entry method of an element of a destroyed collection has ended.
  void free_later(ChareBase& chare);
  // A message for a destroyed collection: its caller gets an error. Without a caller the job ends.
  [[gnu::cold, gnu::noinline]] void refuse(Collection& collection, const EntryHeader& header,
                                           runtime::Message& message);
  // Refuses any call that its element does not get: its caller gets an error. Without a caller the job ends.
  void refuse(Collection& collection, const EntryHeader& header, const runtime::Message& message,
              base::StatusCode code, const std::string& why);
  std::string describe_call(const Collection& collection, const EntryHeader& header,
                            runtime::Message& message);
  // Fails with the reason if reductions of that scope can have no result any more.
  base::Status expect_open(std::uint32_t root_pe, std::uint64_t scope) const;
  // The collection's name; empty for a scope of no collection.
  std::string name_of_contributors(runtime::ScopeId scope) const;
  // Returns false if a constructor has ended the job, or has thrown: then the creator is told.
  bool construct_elements(Collection& collection, const ConstructorInfo& constructor,
                          std::span<const std::byte> arguments);
  // Tells the creator that `where` has thrown.
  void report_not_created(Collection& collection, const std::string& where, const std::exception_ptr& error);
  // created() of the elements that were constructed, in created.cpp.
  void begin_created(Collection& made);
  void end_created(ChareBase& chare, const std::exception_ptr& error, std::optional<base::StatusCode> code,
                   CreationPart part);
  // Messages for the collection have waited until all elements of this PE are there.
  void release_waiting(Collection& made);
  // All elements of this PE are made: opens their reductions, and handles the messages that have waited for them.
  // `exchanges`: whether results for all may travel by recursive doubling.
  void open_elements(Collection& made, bool exchanges);
  // Keeps the message until the collection is made, or forwards it.
  [[gnu::noinline]] void keep_or_forward(Collection& collection, const EntryHeader& header,
                                         runtime::MessagePtr&& message);
  void forward(Collection& collection, EntryHeader header, runtime::MessagePtr message);
  // Ends the job: the message comes from a program that is not this one.
  [[gnu::cold, gnu::noinline]] void fail_unfit(const EntryHeader& header);
  // Chares::find_or_forward() for a message whose header has been read.
  inline ChareBase* find_by_header(const EntryHeader& header, runtime::MessagePtr& message);
  // As Chares::find_or_forward(), but an element whose created() runs gets nothing yet.
  ChareBase* find_ready_or_forward(runtime::MessagePtr& message);
  inline void invoke(ChareBase& chare, const EntryInfo& entry, Pup&& arguments, const ReplyTo& reply);
  // As invoke(), for one of several elements that get the same message; see EntryInfo::invoke_shared.
  inline void invoke_shared(ChareBase& chare, const EntryInfo& entry, Pup&& arguments, const ReplyTo& reply,
                            std::unique_ptr<SharedCall>& shared);
  // Returns null, and fails the job, if the header does not fit the collection.
  const EntryInfo* checked_entry(Collection& collection, const EntryHeader& header);
  runtime::Target gather_target(const ReplyTo& reply) const;
};

// Whether results of reductions that all PEs get should travel by recursive doubling in this job.
bool exchanges_suit(const runtime::Runtime& runtime);

// `set`: of a sparse array, whose reductions are numbered anew for each set of counted elements; else 0.
inline runtime::ScopeId scope_of(const Collection& collection, std::uint32_t set = 0) {
  return {static_cast<std::uint32_t>(collection.id() >> 32),
          runtime::kFirstModelScope + (collection.id() & 0xffffffff) + (std::uint64_t{set} << 32)};
}

// The collection of a scope that scope_of() has made, or none.
inline std::optional<std::uint64_t> collection_of(runtime::ScopeId scope) {
  if (scope.id < runtime::kFirstModelScope || (scope.id & kGatherScopes) != 0) return std::nullopt;
  return std::uint64_t{scope.root_pe} << 32 | ((scope.id - runtime::kFirstModelScope) & 0xffffffff);
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

inline void Chares::Parts::invoke(ChareBase& chare, const EntryInfo& entry, Pup&& arguments,
                                  const ReplyTo& reply) {
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

inline void Chares::Parts::invoke_shared(ChareBase& chare, const EntryInfo& entry, Pup&& arguments,
                                         const ReplyTo& reply, std::unique_ptr<SharedCall>& shared) {
  try {
    entry.invoke_shared(chare, arguments, reply, shared);
  } catch (...) {
    fail_unpacking(chare, entry);
  }
}

}  // namespace weft::chare
