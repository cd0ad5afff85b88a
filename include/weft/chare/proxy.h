// Proxies: cheap values that name a chare or a whole collection from anywhere, and can be sent in messages.
//
//   auto ring = weft::Array<Ring>::create(runtime, {8}, /*rounds=*/3);
//   ring[0].send<&Ring::token>(1);                              // asynchronous, nothing comes back
//   std::vector<double> all = co_await ring.call<&Ring::work>();  // every element's result, in index order
//
// Arguments are passed by value: the callee gets its own copies, also on the same PE. No call here blocks. A
// call with an argument of 32 KiB or more may wait, for up to six times the copy of what is in flight to that PE, while
// its receiver takes the bytes.
#pragma once

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/chare/argument.h"
#include "weft/chare/chare.h"
#include "weft/chare/chares.h"
#include "weft/chare/entry.h"
#include "weft/chare/outcome.h"
#include "weft/chare/proxy_calls.h"

namespace weft::chare {

struct Range;
template <class T>
class Aggregated;
template <class T>
class AggregatedElement;
template <class T>
class Section;

namespace proxy_detail {

// The type in which a constructor's argument travels: std::string for a string literal.
template <class T>
using Travelling =
    std::conditional_t<std::is_same_v<std::decay_t<T>, const char*> || std::is_same_v<std::decay_t<T>, char*>,
                       std::string, std::decay_t<T>>;

}  // namespace proxy_detail

template <class T>
class ElementProxy {
 public:
  ElementProxy() = default;
  ElementProxy(Collection& collection, std::uint64_t linear_index)
      : collection_(&collection), index_(linear_index) {}
  // Not trivially copyable: a struct that holds a proxy needs a pup function to travel.
  ElementProxy(const ElementProxy& other) : ElementProxy() { *this = other; }
  ElementProxy& operator=(const ElementProxy& other) = default;

  Collection& collection() const { return *collection_; }
  std::uint64_t linear_index() const { return index_; }
  Index index() const { return collection_->shape().index(index_); }

  // A proxy of the same element, whose messages run before (negative) or after (positive) those of priority 0.
  ElementProxy with_priority(std::int32_t priority) const {
    ElementProxy proxy = *this;
    proxy.priority_ = priority;
    return proxy;
  }

  // The same element for many small calls without results, which travel in bundles, see bundles/aggregated.h.
  AggregatedElement<T> aggregated() const;

  // Calls the method. For a method with payloads it returns an Operation that completes when their memory may
  // change again, else nothing.
  template <auto Method, class... Args>
  auto send(Args&&... arguments) const {
    runtime::OperationState* sending = send_call<Method>(ReplyTo{}, std::forward<Args>(arguments)...);
    if constexpr (EntryMethod<T, Method>::kHasPayload) return runtime::Operation(sending);
  }

  // Returns a future of the method's result or exception. If a payload cannot be sent, that failure is the
  // result. When the future is ready, the payloads' memory may change again.
  template <auto Method, class... Args>
  auto call(Args&&... arguments) const {
    using Value = typename EntryMethod<T, Method>::Value;
    runtime::Future<Value> result(collection_->chares().runtime());
    const ReplyTo reply = reply_to(*result.state());
    runtime::OperationState* sending = collection_->chares().send_expecting(
        reply, [&] { return send_call<Method>(reply, std::forward<Args>(arguments)...); });
    if constexpr (EntryMethod<T, Method>::kHasPayload) delay_until_sent(*result.state(), sending);
    return result;
  }

  // This element's method as the target of a reduction. Its arguments are `bound` and, behind them, the result: none if
  // nothing is reduced. The bound arguments are copied now, and travel with each contribution.
  template <auto Method, class... Bound>
  proxy_detail::TargetOfMethod<T, Method, sizeof...(Bound)> target(const Bound&... bound) const {
    proxy_detail::TargetOfMethod<T, Method, sizeof...(Bound)> target;
    target.handler = collection_->chares().entry_handler();
    target.pe = static_cast<std::uint32_t>(collection_->home(index_));
    target.prefix = proxy_detail::pack_target<EntryMethod<T, Method>>(
        collection_->chares().runtime(),
        {collection_->id(), index_, EntryMethod<T, Method>::info().id, 0, {}}, bound...);
    return target;
  }

  // Ends this element of a sparse array when its running and waiting methods have ended. The future is ready when it is gone. It
  // fails with Error(kNotFound) if there is no such element, with Error(kInvalidArgument) if the element has channels. Throws
  // Error(kInvalidArgument) if the collection is no sparse array.
  runtime::Future<> remove() const { return collection_->chares().remove(*collection_, index_); }

  void pup(Pup& p);

 private:
  template <class>
  friend class CollectionProxy;

  template <auto Method, class... Args>
  runtime::OperationState* send_call(const ReplyTo& reply, Args&&... arguments) const {
    using Entry = EntryMethod<T, Method>;
    using Arguments = typename Entry::Arguments;
    static_assert(std::tuple_size_v<Arguments> == sizeof...(Args),
                  "the method takes another number of arguments");
    // Calls with payloads are messages, also to this PE.
    if (Entry::kHasPayload || collection_->find(index_) == nullptr) {
      return proxy_detail::send_packed<typename Entry::Packing>(*collection_, index_, Entry::info(), reply,
                                                                priority_, IsForwarded::kNo,
                                                                std::forward<Args>(arguments)...);
    }
    using Call = proxy_detail::LocalCall<T, Method>;
    static_cast<void>(Entry::info());
    runtime::Runtime& runtime = collection_->chares().runtime();
    auto* call = proxy_detail::make_local_call<Call>(runtime, *collection_, index_, reply, priority_,
                                                     std::index_sequence_for<Args...>(),
                                                     std::forward<Args>(arguments)...);
    if (runtime.meter().counts_messages()) [[unlikely]]
      call->count(runtime.meter());
    runtime.count_sent();
    runtime.post(call, priority_);
    return nullptr;
  }

  Collection* collection_ = nullptr;
  std::uint64_t index_ = 0;
  std::int32_t priority_ = 0;
};

template <class T>
class CollectionProxy {
 public:
  CollectionProxy() = default;
  explicit CollectionProxy(Collection& collection) : collection_(&collection) {}
  CollectionProxy(const CollectionProxy& other) : CollectionProxy() { *this = other; }
  CollectionProxy& operator=(const CollectionProxy& other) = default;

  Collection& collection() const { return *collection_; }
  const Shape& shape() const { return collection_->shape(); }

  // Throws Error(kOutOfRange) naming index and shape.
  ElementProxy<T> operator[](const Index& index) const {
    return ElementProxy<T>(*collection_, collection_->shape().linear(index));
  }
  template <class... Ints>
  ElementProxy<T> operator()(Ints... coordinates) const {
    return (*this)[Index{static_cast<int>(coordinates)...}];
  }

  // The elements for many small calls without results, which travel in bundles, see bundles/aggregated.h.
  Aggregated<T> aggregated() const;

  // Some of the elements, see section.h, which has the functions. section(): those with these indices, in this order. Throws
  // Error(kOutOfRange) for an index outside of the shape, Error(kInvalidArgument) for one that is there twice.
  Section<T> section(std::initializer_list<Index> indices) const;
  Section<T> section(const std::vector<Index>& indices) const;
  // Those that the function `bool accepts(const Index&)` accepts, in row-major order. This and slice() throw
  // Error(kInvalidArgument) for a sparse array.
  template <class Accepts>
  Section<T> section_if(Accepts accepts) const;
  // One range for each dimension: grid.slice({Range::one(0), Range::all()}) is the first row.
  Section<T> slice(std::initializer_list<Range> ranges) const;

  // Runs the method on every element. For a method with payloads it returns an Operation that completes when
  // their memory may change again, else nothing.
  template <auto Method, class... Args>
  auto send(Args&&... arguments) const {
    runtime::OperationState* sending = broadcast<Method>(ReplyTo{}, std::forward<Args>(arguments)...);
    if constexpr (EntryMethod<T, Method>::kHasPayload) return runtime::Operation(sending);
  }

  // Runs the method on every element. Returns a future of their results in index order; or of the first exception that
  // arrives, at once, while other elements may run; or of the failure if payloads could not be sent to all.
  template <auto Method, class... Args>
  auto call(Args&&... arguments) const;

  // The method of every element as the target of a reduction, see ElementProxy::target.
  template <auto Method, class... Bound>
  proxy_detail::TargetOfMethod<T, Method, sizeof...(Bound)> target(const Bound&... bound) const;

  // Ready when all constructors have returned; if one has thrown, its exception is the result, and the collection is
  // destroyed. Call it in the turn in which the collection is made: co_await ring.created(). If nothing awaits the creation,
  // an exception of a constructor ends the job. Throws Error(kInvalidArgument) on another PE than the creator's.
  runtime::Future<> created() const { return collection_->chares().created(*collection_); }

  // Frees the elements on all PEs; any PE may call it. The future is ready when every PE has freed its elements that run
  // nothing; an element with an entry method that waits is freed when that method has ended, so an element may destroy
  // its own collection. A method that waits on a channel or a reduction gets Error(kClosed), which ends the method without
  // more if nothing awaits it. Await the calls before: calls that have not begun are refused with Error(kClosed), and one that
  // nothing awaits ends the job. Later uses of a proxy throw Error(kClosed). Futures of reductions that are not complete
  // fail with it too. Throws Error(kClosed) if the collection has been destroyed here.
  runtime::Future<> destroy() const { return collection_->chares().destroy(*collection_); }

  // --- Sparse arrays, which Array::create_sparse() makes. Any PE may call these. They throw Error(kInvalidArgument) for another
  // collection.

  // Makes an element, on its home PE. The future is ready when its constructor has returned. It fails with the exception of the
  // constructor, or if the element exists already.
  template <class... Args>
  runtime::Future<> insert(const Index& index, Args&&... arguments) const {
    return insert_on(-1, index, std::forward<Args>(arguments)...);
  }
  // insert() on PE `pe`. Throws Error(kOutOfRange) if there is no such PE.
  template <class... Args>
  runtime::Future<> insert_on(int pe, const Index& index, Args&&... arguments) const {
    using proxy_detail::Travelling;
    static_assert(!payload_detail::kHasPayload<std::tuple<Args...>>,
                  "a constructor cannot take a payload yet: insert the element, then send it");
    std::tuple<Travelling<Args>...> values(std::forward<Args>(arguments)...);
    Chares& chares = collection_->chares();
    const std::vector<std::byte> bytes = base::pack(values, &chares.runtime());
    return chares.insert(*collection_, shape().linear(index), pe, Constructor<T, Travelling<Args>...>::get(),
                         bytes);
  }
  // Counts the elements, when all insertions and removals that were called before on any PE are over. Calls with gathered
  // results and reductions need it, and concern the elements that it has counted. The future fails if an element that is to be
  // removed has a method that waits.
  runtime::Future<> done_inserting() const { return collection_->chares().done_inserting(*collection_); }

  // The number of elements; of a sparse array what the latest done_inserting() has counted, 0 before.
  std::uint64_t num_elements() const { return collection_->num_elements(); }

  // The element itself if it is on this PE, else null. For direct calls between chares of one PE, which run
  // at once, inside the caller. The pointer is valid until the caller suspends, because the element may move then.
  T* local(const Index& index) const {
    return static_cast<T*>(collection_->find(collection_->shape().linear(index)));
  }

  void pup(Pup& p);

 protected:
  template <class Kind, class... Args>
  static Kind make(CollectionKind kind, runtime::Runtime& runtime, const Shape& shape, Args&&... arguments) {
    using proxy_detail::Travelling;
    static_assert(
        !payload_detail::kHasPayload<std::tuple<Args...>>,
        "a constructor cannot take a payload yet: create the collection, then send each element its "
        "own with an entry method");
    std::tuple<Travelling<Args>...> values(std::forward<Args>(arguments)...);
    std::vector<std::byte> bytes = base::pack(values, &runtime);
    return Kind(
        runtime.model<Chares>().create(kind, shape, Constructor<T, Travelling<Args>...>::get(), bytes));
  }

 private:
  template <auto Method, class... Args>
  runtime::OperationState* broadcast(const ReplyTo& reply, Args&&... arguments) const {
    using Entry = EntryMethod<T, Method>;
    static_assert(std::tuple_size_v<typename Entry::Arguments> == sizeof...(Args),
                  "the method takes another number of arguments");
    Chares& chares = collection_->chares();
    return chares.broadcast_call_message(*collection_,
                                         proxy_detail::pack_call<typename Entry::Packing>(
                                             chares, {collection_->id(), 0, Entry::info().id, 0, reply},
                                             CallTo::kAll, std::forward<Args>(arguments)...),
                                         Entry::kHasPayload);
  }

  Collection* collection_ = nullptr;
};

// A collection over a shape; see Shape for its map.
template <class T>
class Array : public CollectionProxy<T> {
 public:
  using CollectionProxy<T>::CollectionProxy;
  template <class... Args>
  static Array create(runtime::Runtime& runtime, const Shape& shape, Args&&... arguments) {
    return Array::template make<Array>(CollectionKind::kArray, runtime, shape,
                                       std::forward<Args>(arguments)...);
  }
  // An array without elements: insert() makes them. `bounds` bounds the indices and has the map from indices to homes; round
  // robin suits indices that lie close together. Throws Error(kInvalidArgument) for bounds with a table.
  static Array create_sparse(runtime::Runtime& runtime, const Shape& bounds) {
    return Array(runtime.model<Chares>().create_sparse(bounds, NoElement<T>::get(), {}));
  }
};

// One chare per PE. Its index is the PE.
template <class T>
class Group : public CollectionProxy<T> {
 public:
  using CollectionProxy<T>::CollectionProxy;
  template <class... Args>
  static Group create(runtime::Runtime& runtime, Args&&... arguments) {
    return Group::template make<Group>(CollectionKind::kGroup, runtime,
                                       Shape(runtime.num_pes()).with_map(Map::kRoundRobin),
                                       std::forward<Args>(arguments)...);
  }
  // This PE's chare.
  T* on_this_pe() const { return this->local(this->collection().chares().runtime().pe()); }
};

// One chare on a PE of the creator's choice.
template <class T>
class Singleton : public CollectionProxy<T> {
 public:
  using CollectionProxy<T>::CollectionProxy;
  template <class... Args>
  static Singleton create(runtime::Runtime& runtime, int pe, Args&&... arguments) {
    return Singleton::template make<Singleton>(CollectionKind::kSingleton, runtime, Shape(1).on_pe(pe),
                                               std::forward<Args>(arguments)...);
  }
  ElementProxy<T> element() const { return (*this)[0]; }
};

// --- Implementation

template <class T>
void ElementProxy<T>::pup(Pup& p) {
  pup_collection(p, collection_);
  p | index_ | priority_;
  if (p.is_unpacking() && collection_ != nullptr && index_ >= collection_->shape().size()) {
    p.skip(p.remaining_bytes() + 1);  // throws: these bytes are not a proxy
  }
}

template <class T>
void CollectionProxy<T>::pup(Pup& p) {
  pup_collection(p, collection_);
}

template <class T>
template <auto Method, class... Bound>
proxy_detail::TargetOfMethod<T, Method, sizeof...(Bound)> CollectionProxy<T>::target(
    const Bound&... bound) const {
  const EntryHeader header{collection_->id(), 0, EntryMethod<T, Method>::info().id, 0, {}};
  proxy_detail::TargetOfMethod<T, Method, sizeof...(Bound)> target(
      collection_->chares().target_of_all(header));
  target.prefix =
      proxy_detail::pack_target<EntryMethod<T, Method>>(collection_->chares().runtime(), header, bound...);
  return target;
}

template <class T>
template <auto Method, class... Args>
auto CollectionProxy<T>::call(Args&&... arguments) const {
  using Value = typename EntryMethod<T, Method>::Value;
  static_assert(!payload_detail::kIsPayload<Value>,
                "the results of a collection are gathered and cannot be payloads: call each element");
  runtime::Future<GatheredValues<Value>> result(collection_->chares().runtime());
  const ReplyTo reply = collection_->chares().expect_gather(gather_into<Value>(result, {}), collection_);
  runtime::OperationState* sending = collection_->chares().send_expecting(
      reply, [&] { return broadcast<Method>(reply, std::forward<Args>(arguments)...); });
  if constexpr (EntryMethod<T, Method>::kHasPayload) delay_until_sent(*result.state(), sending);
  return result;
}

}  // namespace weft::chare
