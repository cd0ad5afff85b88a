// How the arguments of an entry method are kept and how they travel. Used by entry.h and proxy.h; programs do not
// name these.
//
// An argument is a value: the method gets a copy that belongs to the call. A parameter of type
// std::span<const T> or std::string_view views that copy, which lasts as long as the call, a coroutine's included.
//
// A large std::vector of plain elements travels beside the message. The sender copies it at most once, into a block of
// the PE's pool, or hands over its storage when it was moved into the call; it lands in the storage of the vector that
// the method gets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/pup.h"
#include "weft/chare/payload.h"
#include "weft/chare/vector_pool.h"
#include "weft/runtime/attachment.h"

namespace weft::chare::argument_detail {

// --- What is kept of a parameter's type

template <class T>
struct StoredAs {
  using Type = T;
};
template <class T>
struct StoredAs<std::span<const T>> {
  static_assert(!std::is_same_v<T, bool>, "take a std::span<const std::uint8_t> in place of a span of bool");
  using Type = std::vector<T>;
};
template <>
struct StoredAs<std::string_view> {
  using Type = std::string;
};
template <class Parameter>
using Stored = typename StoredAs<std::decay_t<Parameter>>::Type;

template <class Parameter>
inline constexpr bool kIsView = !std::is_same_v<Stored<Parameter>, std::decay_t<Parameter>>;

template <class Parameter>
inline constexpr bool kIsMutableReference =
    std::is_lvalue_reference_v<Parameter> && !std::is_const_v<std::remove_reference_t<Parameter>>;

// Of what has no pup function; the elements of containers are looked at when they are packed.
template <class T>
inline constexpr bool kHoldsPointer = false;
template <class T>
  requires base::pup_detail::kIsBulk<T>
inline constexpr bool kHoldsPointer<T> = base::kHoldsPointer<T>;

// What the method is called with.
template <class Parameter>
decltype(auto) pass(Stored<Parameter>& stored) {
  if constexpr (kIsView<Parameter>) {
    return std::decay_t<Parameter>(stored);
  } else {
    return std::move(stored);
  }
}

// --- Large vectors

template <class T>
inline constexpr bool kIsBlock = false;
template <class T>
inline constexpr bool kIsBlock<std::vector<T>> = base::pup_detail::kIsBulk<T> && !std::is_same_v<T, bool>;

// From this size on a vector travels beside the message: a message of its own costs less than the copy from the
// received message into the vector. The same size as in Python.
inline constexpr std::size_t kBesideBytes = std::size_t{32} << 10;
// In the count in front of a vector's elements: a number of 4 bytes follows, of the buffer that has them.
inline constexpr std::uint64_t kBesideFlag = std::uint64_t{1} << 63;
inline constexpr std::size_t kBesideHeaderBytes = sizeof(std::uint64_t) + sizeof(std::uint32_t);

template <class T>
bool is_large(const std::vector<T>& values) {
  return values.size() * sizeof(T) >= kBesideBytes;
}

// Writes the count and the number, and attaches a copy, or memory that `release` frees, to the message of `p`.
void pack_copy(Pup& p, std::uint64_t count, const void* data, std::size_t size_bytes);
void pack_given(Pup& p, std::uint64_t count, runtime::Attachment block);
// Whether such a count is next. Reads it, and has the buffer land at `data(count)`. Throws Error for a buffer that
// does not come or has another size.
bool is_beside(const Pup& p);
struct BesideBlock {
  std::uint64_t count = 0;
  runtime::Landing* landing = nullptr;
};
BesideBlock read_block(Pup& p, std::span<runtime::Landing> landings, std::size_t element_bytes);

VectorPool& vector_pool(runtime::Runtime& runtime);

template <class T>
struct GivenVector {
  VectorPool& pool;
  std::vector<T> values;

  static runtime::Attachment attach(VectorPool& pool, std::vector<T>&& values) {
    auto* given = new GivenVector{pool, std::move(values)};
    const memory::Buffer buffer{given->values.data(), given->values.size() * sizeof(T), {}, nullptr};
    runtime::Attachment attachment(
        buffer,
        [](void* owner, const memory::Buffer&) {
          auto* self = static_cast<GivenVector*>(owner);
          self->pool.keep(std::move(self->values));
          delete self;
        },
        given);
    attachment.give_away();
    return attachment;
  }
};

// --- Sending

// An argument on its way into a message: the caller's own where the types agree, else what it converts to.
template <class Value, class Argument>
using Sendable = std::conditional_t<std::is_same_v<std::remove_cvref_t<Argument>, Value>, Argument&&, Value>;

template <class Value, class Argument>
Value convert(Argument&& argument) {
  if constexpr (std::is_constructible_v<Value, Argument&&>) {
    return Value(std::forward<Argument>(argument));
  } else {
    static_assert(kIsBlock<Value>, "the argument does not convert to the method's parameter");
    const std::span<const typename Value::value_type> values(argument);
    return Value(values.begin(), values.end());
  }
}

template <class Value, class Argument>
Sendable<Value, Argument> sendable(Argument&& argument) {
  if constexpr (std::is_same_v<std::remove_cvref_t<Argument>, Value>) {
    static_assert(std::is_constructible_v<Value, Argument&&>,
                  "this argument cannot be copied: move it into the call");
    return std::forward<Argument>(argument);
  } else {
    return convert<Value>(std::forward<Argument>(argument));
  }
}

template <bool kMayTravelBeside, class Value>
std::size_t packed_size(const Value& value, void* context) {
  if constexpr (kMayTravelBeside && kIsBlock<Value>) {
    if (is_large(value)) return kBesideHeaderBytes;
  }
  return base::packed_size(value, context);
}

template <bool kMayTravelBeside, class Argument>
void pack(Pup& p, Argument&& argument) {
  using Value = std::remove_cvref_t<Argument>;
  if constexpr (kMayTravelBeside && kIsBlock<Value>) {
    if (is_large(argument)) {
      const std::uint64_t count = argument.size();
      if constexpr (std::is_same_v<Argument, Value>) {  // moved into the call
        auto& pool = vector_pool(*static_cast<runtime::Runtime*>(p.context()));
        pack_given(p, count,
                   GivenVector<typename Value::value_type>::attach(pool, std::forward<Argument>(argument)));
      } else {
        pack_copy(p, count, argument.data(), count * sizeof(typename Value::value_type));
      }
      return;
    }
  }
  if constexpr (payload_detail::kIsPayload<Value>) {
    p | argument;
  } else {  // payloads inside it are refused, as where no argument is a payload
    void* const carrier = p.carrier();
    p.set_carrier(nullptr);
    p | argument;
    p.set_carrier(carrier);
  }
}

// A call's own copy of an argument.
template <class Value, class Argument>
Value make_own(runtime::Runtime& runtime, Argument&& argument) {
  if constexpr (kIsBlock<Value> && std::is_same_v<std::remove_cvref_t<Argument>, Value> &&
                std::is_lvalue_reference_v<Argument>) {
    if (is_large(argument)) {
      Value own = vector_pool(runtime).template take<typename Value::value_type>(argument.size());
      std::memcpy(own.data(), argument.data(), argument.size() * sizeof(typename Value::value_type));
      return own;
    }
  }
  return convert<Value>(std::forward<Argument>(argument));
}

// --- Receiving

// Reads an argument before the buffers of its message have landed. A large vector is given its storage, in which
// they will land, and of a payload the number of its buffer is read, into `which`.
template <class Value>
void unpack_before_landing(Pup& p, Value& value, std::uint32_t& which, runtime::Runtime& runtime,
                           std::span<runtime::Landing> landings) {
  if constexpr (payload_detail::kIsPayload<Value>) {
    p | which;
    static_cast<void>(payload_detail::find(landings, which, sizeof(typename Value::Element)));
  } else if constexpr (kIsBlock<Value>) {
    if (!is_beside(p)) return static_cast<void>(p | value);
    using Element = typename Value::value_type;
    const BesideBlock block = read_block(p, landings, sizeof(Element));
    value = vector_pool(runtime).template take<Element>(block.count);
    block.landing->into =
        runtime::Attachment(memory::Buffer{value.data(), block.count * sizeof(Element), {}, nullptr});
  } else {
    p | value;
  }
}

// Keeps the storage of large vectors among arguments that the method has left there.
template <class Arguments>
void recycle([[maybe_unused]] runtime::Runtime& runtime, Arguments& arguments) {
  const auto one = [&runtime]<class Value>(Value& value) {
    if constexpr (kIsBlock<Value>) {
      if (value.capacity() * sizeof(typename Value::value_type) >= kBesideBytes) {
        vector_pool(runtime).keep(std::move(value));
      }
    }
  };
  std::apply([&one](auto&... value) { (one(value), ...); }, arguments);
}

template <class Arguments>
inline constexpr bool kHasBlock = false;
template <class... Values>
inline constexpr bool kHasBlock<std::tuple<Values...>> = (kIsBlock<Values> || ...);

}  // namespace weft::chare::argument_detail
