// weft::Chare<T>, the base of a program's objects.
//
//   struct Ring : weft::Chare<Ring> {
//     explicit Ring(int rounds);
//     void token(int n);          // an entry method: any method that a program passes to send<> or call<>
//     weft::Task<double> work();  // an entry method that may wait
//   };
//
// A chare lives on one PE at a time. Its entry methods run there one after the other, each to its end or to
// its next co_await. index(), proxy() and runtime() work in its constructor too.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "weft/chare/chares.h"
#include "weft/chare/element_load.h"

namespace weft::chare {

class Checkpoints;
class Sections;
class SeenBroadcasts;
class SparseArrays;
class SyncPoints;
class WaitingCall;
class WaitingCalls;

template <class T>
class CollectionProxy;
template <class T>
class CombinedSection;
template <class T>
class Section;

class ChareBase {
 public:
  ChareBase();
  ChareBase(const ChareBase&) = delete;
  ChareBase& operator=(const ChareBase&) = delete;
  virtual ~ChareBase();

  runtime::Runtime& runtime() const { return collection_->chares().runtime(); }
  Collection& collection() const { return *collection_; }
  int pe() const { return runtime().pe(); }
  int num_pes() const { return runtime().num_pes(); }
  Index index() const { return collection_->shape().index(linear_index_); }
  // The position in the row-major order of the collection.
  std::uint64_t linear_index() const { return linear_index_; }
  // "Ring[3] on PE 1".
  std::string where() const;
  // "Ring[3].work on PE 1".
  std::string where(const EntryInfo& entry) const;

  // Moves this chare to that PE when the running entry method has returned. Its class needs `void pup(weft::Pup&)`, which
  // names its members, and a constructor without arguments, or one that takes weft::Moved. Proxies, calls under way,
  // broadcasts and reductions follow it; pointers to it, as of CollectionProxy::local(), become invalid. migrated() runs on
  // the new PE. Nothing happens if the chare is there already; the last call before the move counts.
  //
  // A method that has been called since and waits delays the move to its end. So do calls whose large arguments have not landed,
  // and sends and receives of the chare's channels that are not complete. Throws Error(kInvalidArgument) if the chare cannot move
  // now, with the reason: a method of it waits, it is pinned, or its class cannot move; Error(kOutOfRange) if there is no such PE;
  // LostPe if that PE is lost. The chare stays if the PE is lost before the move.
  void migrate(int to_pe);
  // A pinned chare does not move. A move that has been asked for and has not begun is cancelled.
  void set_pinned(bool pinned);
  bool is_pinned() const { return is_pinned_; }
  // How often it has moved to another PE. In a sparse array the insertions and removals of its index count too.
  std::uint32_t num_moves() const { return num_moves_; }
  // Runs on the new PE after a move, before any call that has waited.
  virtual void migrated() {}
  // Runs on the old PE when the state has been packed. The chare is freed when the memory that travels is not needed there
  // any more.
  virtual void departed() {}

  // Ends this element of a sparse array when the running entry method has returned, and others that wait have ended. Calls that
  // come later find no element. Throws Error(kInvalidArgument) if the collection is no sparse array. If the element has channels
  // then, the job ends.
  void remove_self();
  // Whether it has been removed: true in its destructor.
  bool is_removed() const { return is_removed_; }

  // Says that this element has reached a sync point. When all elements of the collection have, the job's load-balancing
  // strategy decides from the times of their entry methods since the last step, elements move, and then
  // resume_from_sync() runs once on each element, on its new PE, after migrated(). Does not block; calls that arrive
  // meanwhile run as usual, and migrate() is refused until then. See docs/load-balancing.md.
  //
  // An element stays if it is pinned, if its class cannot move, if it is one of a group, or if a method of it waits, or a send
  // or receive of its channels is not complete, when the caller has returned. If a move of its own is pending, the element
  // reaches the sync point when it has moved, or where it is if such a send or receive is not complete. Throws
  // Error(kInvalidArgument) if its class does not override resume_from_sync(), or if the element waits at the sync point
  // already; Error(kClosed) if the collection has been destroyed.
  void at_sync();
  // Runs after a step of load balancing. The elements of a class that overrides it are measured.
  virtual void resume_from_sync() {}
  // The load that the following steps use in place of the measured one, in seconds from 0 to 1e12; nothing: the measured
  // one again. It travels with the element. Throws Error(kInvalidArgument) for another number, and if the class takes no part
  // in load balancing.
  void set_load_s(std::optional<double> load_s);
  // The time that the thread has worked for this element since the last step, in seconds, or the load that was set. 0 if
  // the class takes no part in load balancing in this job. The running entry method counts when it ends or suspends.
  double load_s() const { return load_ != nullptr && collection_->is_balanced() ? load_->load_s() : 0; }
  // The time that devices have worked for this element since the last step, in seconds, as far as they are done with its work: the
  // spans of its DeviceWork objects. Other than load_s(), it is never the load that was set. 0 if the class takes no part in load
  // balancing in this job.
  double device_load_s() const {
    return load_ != nullptr && collection_->is_balanced() ? load_->device_load_s() : 0;
  }
  // Null if the element is not measured. An element of a C++ class with conditions is measured too, because that tells when
  // a coroutine of it has been resumed.
  ElementLoad* load() const { return load_; }

  // --- Calls that wait until the condition of their entry method holds, see when.h

  // Their number.
  std::size_t num_waiting_calls() const;

  // For the languages. A method of this chare has run, or a coroutine of it was resumed: runs the waiting calls whose
  // condition holds, in order of arrival, and asks the others again after each.
  void run_ready_calls() {
    if (waiting_calls_ != nullptr) [[unlikely]]
      run_ready_calls_now();
  }
  // Whether waiting calls that can run have been left for a later turn. A call that arrives meanwhile waits behind them.
  bool has_postponed_calls() const { return waiting_calls_ != nullptr && postpones_calls(); }
  // Keeps the call until its condition holds. `was_asked`: it does not hold as the chare is now. If the collection has been destroyed,
  // the caller gets an error.
  void add_waiting_call(std::unique_ptr<WaitingCall> call, bool was_asked = false);
  // In order of arrival. REQUIRES: used before anything runs on this PE.
  std::vector<WaitingCall*> waiting_calls() const;

  // The number of suspended entry methods of this chare, and of calls whose buffers land. It does not migrate unless this is 0.
  std::uint32_t num_suspended() const { return num_suspended_ & ~(kLeaves | kMoves); }
  // Those that are suspended: they may wait for anything. A call that lands waits for its buffers alone.
  std::uint32_t num_waiting_methods() const { return num_suspended() - num_landing_; }
  void coroutine_started() { ++num_suspended_; }
  void coroutine_ended() {
    if (--num_suspended_ >= kMoves) [[unlikely]]
      ended_while_leaving();
  }
  // For the runtime: the buffers of a call land, and have landed.
  void landing_started() {
    ++num_landing_;
    coroutine_started();
  }
  void landing_ended() {
    --num_landing_;
    coroutine_ended();
  }

 private:
  friend class Chares;
  friend class PeriodicBalancing;
  friend class Sections;
  friend class SparseArrays;
  friend class SyncPoints;
  friend class Checkpoints;

  // Set in num_suspended_ when the collection has been destroyed: the chare is freed when nothing of it is suspended.
  static constexpr std::uint32_t kLeaves = std::uint32_t{1} << 31;
  // Set in it when the chare moves as soon as nothing of it is suspended.
  static constexpr std::uint32_t kMoves = std::uint32_t{1} << 30;
  [[gnu::cold]] void ended_while_leaving();
  [[gnu::noinline]] void run_ready_calls_now();
  [[gnu::noinline]] bool postpones_calls() const;

  Collection* collection_;
  std::uint64_t linear_index_;
  std::uint32_t num_suspended_ = 0;
  std::uint32_t num_landing_ = 0;  // of these
  std::uint32_t next_reduction_ = 0;
  std::uint32_t first_reduction_here_ = 0;
  // Reductions to which it has contributed whose result goes to all of the collection.
  std::uint32_t num_results_ = 0;
  std::uint32_t num_moves_ = 0;
  std::uint32_t set_ =
      0;  // of a sparse array: the first set of counted elements that it belongs to, or a later one
  std::int32_t move_to_ = -1;  // -1: no move was asked for
  bool is_pinned_ = false;
  bool is_removed_ = false;
  // The broadcasts that it has run, if they are not those that this PE has handled.
  std::unique_ptr<SeenBroadcasts> seen_;
  std::unique_ptr<WaitingCalls> waiting_calls_;  // null if there are none
  ElementLoad* load_ = nullptr;                  // holds a reference
};

// A constructor with this parameter makes an element that has moved. Its pup function then unpacks the state.
struct Moved {};

template <class T>
class Chare : public ChareBase {
  // Its argument does not say what `Value` is.
  template <class Value>
  using TargetFor = std::type_identity_t<runtime::TargetFor<Value>>;

 public:
  // This chare's collection: proxy()[i] is an element, proxy().send<&T::m>() reaches all.
  CollectionProxy<T> proxy() const { return CollectionProxy<T>(collection()); }

  // Takes part in the collection's next reduction; every element must, in the same order and with the same reducer and
  // target. The result goes to `target`: target_of(future), proxy[i].target<&T::method>(), or
  // proxy.target<&T::method>() for all elements. It must take what the reducer gives: a Value, or with kGather a
  // std::vector<Value>. The compiler refuses another type. If only the reducer does not fit, Error(kInvalidArgument) is thrown.
  template <class Value>
  void contribute(const Value& value, runtime::Reducer reducer, TargetFor<Value> target) {
    if constexpr (runtime::may_be_large_contribution<Value>) {
      if (runtime::is_large_contribution(value)) {
        return chares().contribute_large(*this, reducer, runtime::value_combiner<Value>(reducer),
                                         runtime::pack_large_contribution(value, reducer, runtime()),
                                         target.target(reducer));
      }
    }
    chares().contribute(*this, reducer, runtime::value_combiner<Value>(reducer),
                        runtime::pack_contribution(value, reducer, runtime()), target.target(reducer));
  }
  // With a function `Value merge(Value, Value)`, associative and commutative: contribute<&merge>(value,
  // target).
  template <auto Merge, class Value>
  void contribute(const Value& value, TargetFor<Value> target) {
    chares().contribute(*this, runtime::Reducer::kCustom, runtime::custom_combiner<Value, Merge>(),
                        base::pack_small(value, &runtime()), target.target(runtime::Reducer::kCustom));
  }
  // Without a value: says that this element is there. When all elements have contributed, a target method without
  // parameters runs, and a Future<> is ready. Every element must contribute nothing to this reduction.
  void contribute(runtime::TargetFor<void> target) {
    chares().contribute(*this, runtime::Reducer::kCustom, runtime::nothing_combiner(), {}, target.target());
  }

  // Contributes to a reduction over a section, see section.h: every member must contribute, and only they. Members number their reductions over
  // each section on its own. kGather and kConcat keep the order of the section. Throws Error(kInvalidArgument) if this chare is
  // no member.
  template <class Value>
  void contribute(const Value& value, runtime::Reducer reducer, TargetFor<Value> target,
                  const Section<T>& section);
  template <auto Merge, class Value>
  void contribute(const Value& value, TargetFor<Value> target, const Section<T>& section);
  void contribute(runtime::TargetFor<void> target, const Section<T>& section);
  // Contributes to a reduction over members of several collections, see combined_section.h.
  template <class Value>
  void contribute(const Value& value, runtime::Reducer reducer, TargetFor<Value> target,
                  const CombinedSection<T>& section);
  template <auto Merge, class Value>
  void contribute(const Value& value, TargetFor<Value> target, const CombinedSection<T>& section);
  void contribute(runtime::TargetFor<void> target, const CombinedSection<T>& section);

  // A reduction whose result every element gets: co_await allreduce(x, Reducer::kSum).
  template <class Value>
  runtime::Future<Value> allreduce(const Value& value, runtime::Reducer reducer) {
    if (reducer == runtime::Reducer::kGather) {
      throw base::Error(base::StatusCode::kInvalidArgument,
                        "allreduce with kGather has another type: call allgather");
    }
    runtime::Future<Value> result(runtime());
    if constexpr (runtime::may_be_large_contribution<Value>) {
      if (runtime::is_large_contribution(value)) {
        chares().contribute_large_to_all(*this, reducer, runtime::value_combiner<Value>(reducer),
                                         runtime::pack_large_contribution(value, reducer, runtime()),
                                         result.state());
        return result;
      }
    }
    chares().contribute_to_all(*this, reducer, runtime::value_combiner<Value>(reducer),
                               runtime::pack_contribution(value, reducer, runtime()), result.state());
    return result;
  }
  template <auto Merge, class Value>
  runtime::Future<Value> allreduce(const Value& value) {
    runtime::Future<Value> result(runtime());
    chares().contribute_to_all(*this, runtime::Reducer::kCustom, runtime::custom_combiner<Value, Merge>(),
                               base::pack_small(value, &runtime()), result.state());
    return result;
  }
  // Without a value: ready when all elements have called it.
  runtime::Future<> allreduce() {
    runtime::Future<> result(runtime());
    chares().contribute_to_all(*this, runtime::Reducer::kCustom, runtime::nothing_combiner(), {},
                               result.state());
    return result;
  }
  // Every element gets the values of all elements, in index order.
  template <class Value>
  runtime::Future<std::vector<Value>> allgather(const Value& value) {
    runtime::Future<std::vector<Value>> result(runtime());
    chares().contribute_to_all(*this, runtime::Reducer::kGather, nullptr, base::pack_small(value, &runtime()),
                               result.state());
    return result;
  }

 private:
  Chares& chares() const { return collection().chares(); }
};

}  // namespace weft::chare
