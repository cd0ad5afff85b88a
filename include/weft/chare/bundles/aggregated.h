// Aggregated calls: many small calls without results to many chares. They travel in bundles, so a call costs a fraction of a message.
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
class Grid;
struct RunHeader;

// The bundles of one PE: open ones, one for each PE to which it sends, and those that arrive. Between many PEs the calls go through a
// grid. src/models/chare/bundles/README.md has the format and the ways.
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
    int pe = 0;  // where the call goes
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
  // A place for a call of the element in an open bundle. `is_here`: whether the element is on this PE. A full bundle is sent first. Flow
  // control may hold the call back, see Messenger::send_call(). An exception leaves all earlier calls in their bundles. Throws
  // Error(kClosed) if the collection has been destroyed, and Error(kInvalidArgument) during a Packing. REQUIRES: argument_bytes <=
  // kMostArgumentBytes.
  Place place(Collection& collection, std::uint64_t index, IsHere is_here, const EntryInfo& entry,
              std::size_t argument_bytes);
  // The arguments have been packed: the call is made. Without it there is no call.
  void commit(const Place& place);
  // The PE to which calls for PE `pe` go first.
  int first_pe_to(int pe) const;
  // Sends all open bundles of this PE. Flow control may hold them back, as a call. An exception leaves those that were not sent open.
  // Calls that go through another PE leave that PE when its bundle is full, and when the PE has nothing else to do, waits inside a call or
  // calls progress(). Throws
  // Error(kInvalidArgument) during a Packing.
  void flush();
  // Sends the open bundle to this PE itself, if this PE has made calls in it: what the caller queues now comes behind them.
  void send_own();
  // Drops all that is open or held back.
  void close();
  enum class Ways : bool { kDirect, kGrid };
  // For tests and measurements: the ways of the calls, in place of those that fit the number of PEs. REQUIRES: the same on all PEs, before
  // the first aggregated call. Throws Error(kInvalidArgument) after a call of this PE.
  void set_ways(Ways ways);
  // Of bundles for the PE that gets them, for tests; that of bundles to be passed on follows.
  runtime::HandlerId handler() const { return handler_; }

 private:
  struct Call;
  struct Open;
  struct Room;
  struct Source;

  [[gnu::noinline]] void list(Open& open);
  void send(Open& open);
  [[gnu::noinline]] void send_full(Open& open, std::size_t argument_bytes);
  void drop(Open& open);
  bool send_passed();
  void turn();
  void send_if_room(Open& open);
  void on_loss(int pe);
  void on_bundle(runtime::MessagePtr message);
  void hold(Source& source, std::uint64_t number, runtime::MessagePtr message);
  void handle_held(Source& source);
  void handle_found();
  void handle(runtime::Message& message);
  void run(runtime::Message& message);
  void begin_named(const Call& call, std::size_t call_bytes, std::uint32_t from_pe);
  void run_elsewhere(Collection& target, const EntryHeader& header, const Call& call);
  void pass_on(runtime::Message& message);
  bool goes_this_way(const Call& call, std::uint32_t from_pe) const;
  void expect_named(const RunHeader& run, const runtime::Message& message) const;
  [[noreturn, gnu::cold]] void refuse_pe(const Call& call, std::uint32_t from_pe) const;

  Chares& chares_;
  runtime::Runtime& runtime_;
  runtime::HandlerId handler_;
  bool is_packing_ = false;
  bool has_passed_ = false;           // send_passed() may have something to do
  std::unique_ptr<const Grid> grid_;  // null if each call goes to its destination
  std::vector<Open> open_;            // one for each PE to which this one sends
  std::vector<Open*> ways_;           // by destination, in open_
  std::vector<Open*> listed_;         // may have calls
  std::vector<Source> sources_;       // by PE
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
