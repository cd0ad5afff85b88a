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
#include <string>
#include <vector>

#include "weft/chare/chares.h"

namespace weft::chare {

template <class T>
class CollectionProxy;

class ChareBase {
 public:
  ChareBase();
  ChareBase(const ChareBase&) = delete;
  ChareBase& operator=(const ChareBase&) = delete;
  virtual ~ChareBase() = default;

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

  // The number of suspended entry methods of this chare. It does not migrate unless this is 0.
  std::uint32_t num_suspended() const { return num_suspended_ & ~kLeaves; }
  void coroutine_started() { ++num_suspended_; }
  void coroutine_ended() {
    if (--num_suspended_ == kLeaves) [[unlikely]]
      left();
  }

 private:
  friend class Chares;

  // Set in num_suspended_ when the collection has been destroyed: the chare is freed when nothing of it is suspended.
  static constexpr std::uint32_t kLeaves = std::uint32_t{1} << 31;
  [[gnu::cold]] void left();

  Collection* collection_;
  std::uint64_t linear_index_;
  std::uint32_t num_suspended_ = 0;
  std::uint32_t next_reduction_ = 0;
};

template <class T>
class Chare : public ChareBase {
 public:
  // This chare's collection: proxy()[i] is an element, proxy().send<&T::m>() reaches all.
  CollectionProxy<T> proxy() const { return CollectionProxy<T>(collection()); }

  // Takes part in the collection's next reduction; every element must, in the same order and with the same reducer and
  // target. The result goes to `target`: target_of(future), proxy[i].target<&T::method>(), or
  // proxy.target<&T::method>() for all elements.
  template <class Value>
  void contribute(const Value& value, runtime::Reducer reducer, const runtime::Target& target) {
    chares().contribute(*this, reducer, runtime::value_combiner<Value>(reducer),
                        runtime::pack_contribution(value, reducer, runtime()), target);
  }
  // With a function `Value merge(Value, Value)`, associative and commutative: contribute<&merge>(value,
  // target).
  template <auto Merge, class Value>
  void contribute(const Value& value, const runtime::Target& target) {
    chares().contribute(*this, runtime::Reducer::kCustom, runtime::custom_combiner<Value, Merge>(),
                        base::pack_small(value, &runtime()), target);
  }

  // The same, and every element gets the result: co_await allreduce(x, Reducer::kSum).
  template <class Value>
  runtime::Future<Value> allreduce(const Value& value, runtime::Reducer reducer) {
    if (reducer == runtime::Reducer::kGather) {
      throw base::Error(base::StatusCode::kInvalidArgument,
                        "allreduce with kGather has another type: call allgather");
    }
    runtime::Future<Value> result(runtime());
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
