// Aggregated calls: many small calls without results to many chares. They travel in bundles, one for each PE, so a call costs a
// fraction of a message.
//
//   const auto counters = table.aggregated();
//   for (const Update& update : updates) counters[update.place].send<&Counter::add>(update.value);
//   counters.flush();
//
// A bundle is sent when it is full, when its PE has nothing else to do, and on flush(). docs/aggregated-calls.md says what holds for
// such calls. Threads: one PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "weft/base/pup.h"
#include "weft/chare/argument.h"
#include "weft/chare/chares.h"
#include "weft/chare/entry.h"
#include "weft/chare/proxy.h"
#include "weft/chare/proxy_calls.h"

namespace weft::chare {

class FeatureTable;

// The bundles of one PE: open ones, one for each PE, and those that arrive. src/models/chare/bundles/README.md has the format.
class Bundles {
 public:
  // A call whose arguments take more bytes travels alone, as any call.
  static constexpr std::size_t kMostArgumentBytes = 1024;

  Bundles(Chares& chares, FeatureTable& features);
  ~Bundles();
  Bundles(const Bundles&) = delete;
  Bundles& operator=(const Bundles&) = delete;

  // Where the arguments of one call are packed. Valid until the next call of a function of this class.
  struct Place {
    std::byte* arguments = nullptr;
    int pe = 0;  // where the bundle goes
  };
  // While it lives, the arguments of a call are packed by code of the program: place() and flush() throw.
  class Packing {
   public:
    explicit Packing(Bundles& bundles) : bundles_(bundles) { bundles_.is_packing_ = true; }
    ~Packing() { bundles_.is_packing_ = false; }
    Packing(const Packing&) = delete;
    Packing& operator=(const Packing&) = delete;

   private:
    Bundles& bundles_;
  };
  enum class IsHere : bool { kNo, kYes };
  // A place for a call of the element in the open bundle to its PE. `is_here`: whether the element is on this PE. A full bundle is sent
  // first: flow control may hold it back, see Messenger::send_call(). An exception leaves all earlier calls in their bundles. Throws
  // Error(kClosed) if the collection has been destroyed, and Error(kInvalidArgument) during a Packing, or while an earlier call sends
  // the bundle to that PE. REQUIRES: argument_bytes <= kMostArgumentBytes.
  Place place(Collection& collection, std::uint64_t index, IsHere is_here, const EntryInfo& entry,
              std::size_t argument_bytes);
  // The arguments have been packed: the call is made. Without it there is no call.
  void commit(const Place& place);
  // Sends all open bundles of this PE, except those that an earlier call sends already. Flow control may hold them back, as a call. An
  // exception leaves those that were not sent open. Throws Error(kInvalidArgument) during a Packing.
  void flush();
  // Sends the open bundle to this PE itself, if there is one: what the caller queues now comes behind its calls.
  void send_own();
  // Drops all that is open or held back.
  void close();
  // Of bundles, for tests.
  runtime::HandlerId handler() const { return handler_; }

 private:
  struct Open;
  struct Room;
  struct Source;
  class Sending;

  enum class Sender : bool { kTurn, kCall };

  void send(int pe, Sender sender);
  void turn();
  void send_if_room(int pe);
  void on_loss(int pe);
  void on_bundle(runtime::MessagePtr message);
  void run(runtime::Message& message);
  void run_one(Collection& target, const EntryHeader& header, const EntryInfo* entry,
               std::span<const std::byte> arguments, runtime::Message& message);

  Chares& chares_;
  runtime::Runtime& runtime_;
  runtime::HandlerId handler_;
  bool is_packing_ = false;
  std::vector<Open> open_;     // by PE
  std::vector<int> open_pes_;  // those that may have open bundles
  std::vector<Source> sources_;
  // Sends the open bundles in a turn of its own.
  struct Turn;
  std::unique_ptr<Turn> turn_;
};

namespace proxy_detail {

// `values` are sendable. The element is on another PE.
template <class Packing, std::size_t... I, class... Values>
void bundle_values(Collection& collection, std::uint64_t index, const EntryInfo& entry,
                   std::index_sequence<I...>, Values&&... values) {
  using Arguments = typename Packing::Arguments;
  runtime::Runtime& runtime = collection.chares().runtime();
  const std::size_t size_bytes =
      (std::size_t{0} + ... +
       argument_detail::packed_size<false, std::tuple_element_t<I, Arguments>>(values, &runtime));
  if (size_bytes > Bundles::kMostArgumentBytes) [[unlikely]] {
    send_packed<Packing>(collection, index, entry, {}, 0, IsForwarded::kNo, std::forward<Values>(values)...);
    return;
  }
  Bundles& bundles = collection.chares().bundles();
  const Bundles::Place place = bundles.place(collection, index, Bundles::IsHere::kNo, entry, size_bytes);
  {
    const Bundles::Packing packing(bundles);
    [[maybe_unused]] Pup p = Pup::packer(place.arguments, size_bytes, &runtime);
    (argument_detail::pack<false, std::tuple_element_t<I, Arguments>>(p, std::forward<Values>(values)), ...);
  }
  bundles.commit(place);
}

}  // namespace proxy_detail

// One chare, whose calls travel in bundles.
template <class T>
class AggregatedElement {
 public:
  AggregatedElement(Collection& collection, std::uint64_t linear_index)
      : collection_(&collection), index_(linear_index) {}

  // Calls the method; what it returns is dropped. An exception that it throws ends the job. A call to a chare of this PE is queued at
  // once, and a call with payloads travels alone: these are those of ElementProxy::send(). Flow control may hold the call back, as any
  // call.
  template <auto Method, class... Args>
  auto send(Args&&... arguments) const {
    using Entry = EntryMethod<T, Method>;
    static_assert(std::tuple_size_v<typename Entry::Arguments> == sizeof...(Args),
                  "the method takes another number of arguments");
    if constexpr (!Entry::kHasPayload) {
      if (collection_->find(index_) == nullptr) return bundle<Entry>(std::forward<Args>(arguments)...);
      collection_->chares().bundles().send_own();  // earlier calls, which found the chare not made yet
    }
    return ElementProxy<T>(*collection_, index_).template send<Method>(std::forward<Args>(arguments)...);
  }

 private:
  template <class Entry, class... Args>
  void bundle(Args&&... arguments) const {
    [&]<std::size_t... I>(std::index_sequence<I...> indices) {
      proxy_detail::bundle_values<typename Entry::Packing>(
          *collection_, index_, Entry::info(), indices,
          argument_detail::sendable<std::tuple_element_t<I, typename Entry::Arguments>, Args>(
              std::forward<Args>(arguments))...);
    }(std::index_sequence_for<Args...>());
  }

  Collection* collection_;
  std::uint64_t index_;
};

// A collection, whose calls to single elements travel in bundles. It does not travel itself: send the collection's proxy.
template <class T>
class Aggregated {
 public:
  explicit Aggregated(Collection& collection) : collection_(&collection) {}

  // Throws Error(kOutOfRange) naming index and shape.
  AggregatedElement<T> operator[](const Index& index) const {
    return AggregatedElement<T>(*collection_, collection_->shape().linear(index));
  }
  template <class... Ints>
  AggregatedElement<T> operator()(Ints... coordinates) const {
    return (*this)[Index{static_cast<int>(coordinates)...}];
  }

  // Sends the open bundles of this PE, also calls to other collections.
  void flush() const { collection_->chares().bundles().flush(); }

 private:
  Collection* collection_;
};

// --- Implementation

template <class T>
Aggregated<T> CollectionProxy<T>::aggregated() const {
  return Aggregated<T>(*collection_);
}

template <class T>
AggregatedElement<T> ElementProxy<T>::aggregated() const {
  return AggregatedElement<T>(*collection_, index_);
}

}  // namespace weft::chare
