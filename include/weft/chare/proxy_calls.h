// What a call through a proxy becomes: a message with the packed arguments, or work on this PE that owns them. And what the method of a
// proxy becomes as the target of a reduction. Programs do not name these templates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/pup.h"
#include "weft/base/small_bytes.h"
#include "weft/chare/argument.h"
#include "weft/chare/chares.h"
#include "weft/chare/entry.h"
#include "weft/chare/outcome.h"
#include "weft/chare/view.h"
#include "weft/runtime/typed_target.h"

namespace weft::chare {

namespace proxy_detail {

// A call to a chare on this PE: its arguments move, nothing is packed. It has no payloads, whose calls are messages.
template <class Arguments>
struct LocalCallOf : runtime::Work {
  LocalCallOf(runtime::Work::Function turn, Collection& collection_in, std::uint64_t index_in,
              Arguments&& arguments_in, const ReplyTo& reply_in, std::int32_t priority_in)
      : runtime::Work(turn),
        collection(collection_in),
        index(index_in),
        arguments(std::move(arguments_in)),
        reply(reply_in),
        priority(priority_in) {}

  // Sends the call as a message, because the chare has moved to another PE.
  [[gnu::cold, gnu::noinline]] void send_on(const EntryInfo& entry);
  // Counts the bytes that the arguments would take in a message, so that calls on one PE and between PEs compare. The sizes of
  // arguments that are no plain bytes are those of their pup functions.
  [[gnu::noinline]] void count(runtime::WorkMeter& meter) const noexcept;

  Collection& collection;
  std::uint64_t index;
  Arguments arguments;
  ReplyTo reply;
  std::int32_t priority;
};

template <class T, auto Method>
struct LocalCall final : LocalCallOf<typename EntryMethod<T, Method>::Arguments> {
  using Arguments = typename EntryMethod<T, Method>::Arguments;

  LocalCall(Collection& collection, std::uint64_t index, Arguments&& arguments, const ReplyTo& reply,
            std::int32_t priority)
      : LocalCallOf<Arguments>(&LocalCall::turn, collection, index, std::move(arguments), reply, priority) {}

  static void turn(runtime::Work* self, runtime::Runtime& runtime, runtime::WorkAction action);
};

template <class Call, std::size_t... I, class... Args>
Call* make_local_call(runtime::Runtime& runtime, Collection& collection, std::uint64_t index,
                      const ReplyTo& reply, std::int32_t priority, std::index_sequence<I...>,
                      Args&&... arguments) {
  using Arguments = typename Call::Arguments;
  Arguments own(argument_detail::make_own<std::tuple_element_t<I, Arguments>>(
      runtime, std::forward<Args>(arguments))...);
  if (runtime.pool().needs_fresh_block(sizeof(Call))) [[unlikely]]
    runtime.expect_queue_room(sizeof(Call));
  return new (runtime.pool().allocate(sizeof(Call))) Call(collection, index, std::move(own), reply, priority);
}

// `values` are sendable.
template <class Packing, std::size_t... I, class... Values>
runtime::MessagePtr pack_values(Chares& chares, const EntryHeader& header, CallTo to,
                                std::index_sequence<I...>, Values&&... values) {
  using Arguments = typename Packing::Arguments;
  runtime::Runtime& runtime = chares.runtime();
  const std::size_t size_bytes =
      (std::size_t{0} + ... +
       argument_detail::packed_size<Packing::kBlocksTravelOutOfBand, std::tuple_element_t<I, Arguments>>(
           values, &runtime));
  runtime::MessagePtr message = chares.make_call_message(header, to, size_bytes);
  Pup p = Pup::packer(message->payload() + sizeof(EntryHeader), size_bytes, &runtime);
  if constexpr (Packing::kIsPlaced) p.set_carrier(message.get());
  (argument_detail::pack<Packing::kBlocksTravelOutOfBand, std::tuple_element_t<I, Arguments>>(
       p, std::forward<Values>(values)),
   ...);
  return message;
}

// The message of a call, with the arguments behind the header.
template <class Packing, class... Args>
runtime::MessagePtr pack_call(Chares& chares, const EntryHeader& header, CallTo to, Args&&... arguments) {
  return [&]<std::size_t... I>(std::index_sequence<I...> indices) {
    return pack_values<Packing>(
        chares, header, to, indices,
        argument_detail::sendable<std::tuple_element_t<I, typename Packing::Arguments>, Args>(
            std::forward<Args>(arguments))...);
  }(std::index_sequence_for<Args...>());
}

// The argument type of a method behind so many bound arguments, as a contribution packs it; void for nothing.
template <class Stored>
struct ContributedAs {
  using Type = Stored;
};
template <class T>
struct ContributedAs<argument_detail::View<T>> {
  using Type = std::vector<T>;
};
template <class Arguments, std::size_t kNumBound>
struct TakenBehind {
  static_assert(std::tuple_size_v<Arguments> <= kNumBound + 1,
                "the method takes more arguments than those that are bound and one result");
  using Type = void;
};
template <class Arguments, std::size_t kNumBound>
  requires(std::tuple_size_v<Arguments> == kNumBound + 1)
struct TakenBehind<Arguments, kNumBound> {
  using Type = typename ContributedAs<std::tuple_element_t<kNumBound, Arguments>>::Type;
};
// The method as the target of a reduction.
template <class T, auto Method, std::size_t kNumBound>
using TargetOfMethod =
    runtime::TargetOf<typename TakenBehind<typename EntryMethod<T, Method>::Arguments, kNumBound>::Type>;

// The start of a message that calls the method with `bound` and, behind them, one result.
template <class Entry, class... Bound>
base::SmallBytes pack_target(runtime::Runtime& runtime, const EntryHeader& header, const Bound&... bound) {
  using Arguments = typename Entry::Arguments;
  static_assert(!Entry::kHasPayload, "the result of a reduction cannot be a payload");
  static_assert(sizeof...(Bound) <= std::tuple_size_v<Arguments>, "the method takes fewer arguments");
  base::SmallBytes bytes = base::pack_small(header);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    static_assert(!(argument_detail::kIsElementView<std::tuple_element_t<I, Arguments>> || ...),
                  "only the result can be a std::span: take the bound argument as a std::vector");
    // In the types that the method takes.
    [[maybe_unused]] const auto append = [&](const auto& value) {
      const std::size_t at = bytes.size();
      bytes.resize(at + base::packed_size(value, &runtime));
      Pup p = Pup::packer(bytes.data() + at, bytes.size() - at, &runtime);
      p | value;
    };
    (append(std::tuple_element_t<I, Arguments>(bound)), ...);
  }(std::index_sequence_for<Bound...>());
  return bytes;
}

// Returns the state of the sends of its payloads, null if the method takes none.
template <class Packing, class... Args>
runtime::OperationState* send_packed(Collection& collection, std::uint64_t index, const EntryInfo& entry,
                                     const ReplyTo& reply, std::int32_t priority, IsForwarded is_forwarded,
                                     Args&&... arguments) {
  Chares& chares = collection.chares();
  runtime::MessagePtr message = pack_call<Packing>(chares, {collection.id(), index, entry.id, 0, reply},
                                                   CallTo::kElement, std::forward<Args>(arguments)...);
  message->envelope().priority = priority;
  return chares.send_call_message(collection, index, std::move(message), Packing::kHasPayload, is_forwarded);
}

// Sends a call whose caller does not wait for its payloads, if it has any: a failure to send them ends the job.
template <class Packing>
void forward_call(Collection& collection, std::uint64_t index, const EntryInfo& entry, const ReplyTo& reply,
                  std::int32_t priority, typename Packing::Arguments&& arguments) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    runtime::Operation(send_packed<Packing>(collection, index, entry, reply, priority, IsForwarded::kYes,
                                            std::move(std::get<I>(arguments))...))
        .detach();
  }(std::make_index_sequence<std::tuple_size_v<typename Packing::Arguments>>());
}

template <class T, auto Method>
void LocalCall<T, Method>::turn(runtime::Work* self, runtime::Runtime& runtime, runtime::WorkAction action) {
  using Entry = EntryMethod<T, Method>;
  auto* const call = static_cast<LocalCall*>(self);
  if (action == runtime::WorkAction::kRun) {
    runtime.count_processed();
    if (ChareBase* chare = call->collection.find(call->index)) [[likely]] {
      Entry::run(runtime, *chare, std::move(call->arguments), call->reply);
    } else {  // the element has moved
      call->send_on(Entry::info());
    }
  }
  call->~LocalCall();
  runtime.pool().deallocate(call, sizeof(LocalCall));
}

template <class Arguments>
void LocalCallOf<Arguments>::send_on(const EntryInfo& entry) {
  forward_call<entry_detail::Packing<Arguments, false>>(collection, index, entry, reply, priority,
                                                        std::move(arguments));
}

template <class Arguments>
void LocalCallOf<Arguments>::count(runtime::WorkMeter& meter) const noexcept {
  if (meter.running() == nullptr) return;
  std::uint64_t size_bytes = 0;
  try {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      size_bytes = (std::uint64_t{0} + ... +
                    argument_detail::stored_size(std::get<I>(arguments), &collection.chares().runtime()));
    }(std::make_index_sequence<std::tuple_size_v<Arguments>>());
  } catch (...) {  // it cannot be sent, and need not be
    size_bytes = sizeof(Arguments);
  }
  meter.count_message({collection.id(), index}, size_bytes);
}

}  // namespace proxy_detail

template <class T, auto Method, class Arguments>
void send_waiting_on(Collection& collection, std::uint64_t index, const ReplyTo& reply,
                     Arguments&& arguments) {
  using Entry = EntryMethod<T, Method>;
  proxy_detail::forward_call<typename Entry::Packing>(collection, index, Entry::info(), reply, 0,
                                                      std::forward<Arguments>(arguments));
}

}  // namespace weft::chare
