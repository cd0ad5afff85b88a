// How the arguments of an entry method are kept and how they travel. Used by entry.h and proxy.h; programs do not
// name these.
//
// An argument is a value: the method gets a copy that belongs to the call. A parameter of type
// std::span<const T> or std::string_view views that copy, which lasts as long as the call, a coroutine's included.
// The elements of a span stay where they arrived (view.h).
//
// Many elements of a plain type, for a std::vector or a std::span, travel out of band. The sender copies them at
// most once, out of the caller's container into a block of the PE's pool, or hands over the storage of a vector that
// was moved into the call. They land in the storage of the vector that the method gets, or in a block that it views.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/any_vector.h"
#include "weft/base/pup.h"
#include "weft/base/vector_pool.h"
#include "weft/chare/payload.h"
#include "weft/chare/view.h"
#include "weft/runtime/attachment.h"

namespace weft::chare::argument_detail {

// --- What is kept of a parameter's type

template <class T>
struct StoredAs {
  using Type = T;
};
template <class T>
struct StoredAs<std::span<const T>> {
  using Type = std::vector<T>;
};
template <class T>
  requires base::pup_detail::kIsBulk<T>
struct StoredAs<std::span<const T>> {
  static_assert(!std::is_same_v<T, bool>, "take a std::span<const std::uint8_t> in place of a span of bool");
  using Type = View<T>;
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

// Whether a type without a pup function holds a pointer. The elements of containers are looked at when they are packed.
template <class T>
inline constexpr bool kHoldsPointer = false;
template <class T>
  requires base::pup_detail::kIsBulk<T>
inline constexpr bool kHoldsPointer<T> = base::kHoldsPointer<T>;

template <class T>
inline constexpr bool kIsElementView = false;
template <class T>
inline constexpr bool kIsElementView<View<T>> = true;

// The view that a method gets of what is stored. REQUIRES: kIsView<Parameter>.
template <class Parameter>
decltype(auto) view_of(const Stored<Parameter>& stored) {
  if constexpr (kIsElementView<Stored<Parameter>> && !std::is_rvalue_reference_v<Parameter>) {
    return (stored.span());
  } else if constexpr (kIsElementView<Stored<Parameter>>) {
    return std::decay_t<Parameter>(stored.span());
  } else {
    return std::decay_t<Parameter>(stored);
  }
}

// The argument with which the method is called.
template <class Parameter>
decltype(auto) pass(Stored<Parameter>& stored) {
  if constexpr (kIsView<Parameter>) {
    return view_of<Parameter>(stored);
  } else {
    return std::move(stored);
  }
}

// --- Many elements

// A std::vector or a View of elements that are copied as bytes.
template <class T>
inline constexpr bool kIsBlock = false;
template <class T>
inline constexpr bool kIsBlock<std::vector<T>> = base::pup_detail::kIsBulk<T> && !std::is_same_v<T, bool>;
template <class T>
inline constexpr bool kIsBlock<View<T>> = true;
template <class T>
struct ElementOf {
  using Type = void;
};
template <class T>
struct ElementOf<std::vector<T>> {
  using Type = T;
};
template <class T>
struct ElementOf<View<T>> {
  using Type = T;
};
template <class Block>
using Element = typename ElementOf<Block>::Type;

// From this size on elements travel out of band: a message of its own costs less than the copy from the
// received message into a vector. The same size as in Python.
inline constexpr std::size_t kOutOfBandBytes = std::size_t{32} << 10;
inline constexpr std::size_t kOutOfBandHeaderBytes = sizeof(std::uint64_t) + sizeof(std::uint32_t);

template <class T>
bool is_large(std::span<const T> values) {
  return values.size_bytes() >= kOutOfBandBytes;
}

// Writes the count and the number, and attaches a copy, or memory that `release` frees, to the message of `p`.
void pack_copy(Pup& p, std::uint64_t count, const void* data, std::size_t size_bytes);
void pack_given(Pup& p, std::uint64_t count, runtime::Attachment block);
// Writes the count and the elements, and before them what aligns them at the receiver, of `padding_bytes`.
void pack_padded(Pup& p, std::uint64_t count, const void* data, std::size_t size_bytes,
                 std::size_t padding_bytes);

// Whether such a count is next. read_block() reads it. Throws Error for a buffer that does not come, has another size
// or is not in host memory.
bool is_out_of_band(const Pup& p);
struct OutOfBandBlock {
  std::uint64_t count = 0;
  std::uint32_t which = 0;
  runtime::ReceiveBuffer* receive_buffer = nullptr;
};
OutOfBandBlock read_block(Pup& p, std::span<runtime::ReceiveBuffer> receive_buffers,
                          std::size_t element_bytes);

// The number of the buffer of an argument that has none.
inline constexpr std::uint32_t kNoBuffer = ~std::uint32_t{0};
// Throws Error if two arguments name the same buffer. `which`: of the arguments that have not chosen where theirs lands.
void expect_distinct(std::span<const std::uint32_t> which,
                     std::span<const runtime::ReceiveBuffer> receive_buffers);
// Takes a buffer that has landed. Throws Error if it is gone.
runtime::Attachment take_landed(runtime::Message& message, std::uint32_t which);

base::VectorPool& vector_pool(runtime::Runtime& runtime);

// A block that is the storage of a vector of `count` elements. It goes to the pool when it has been sent.
runtime::Attachment attach_vector(base::VectorPool& pool, const base::ElementType& type, std::size_t count,
                                  std::unique_ptr<base::AnyVector> values);

// --- Sending

template <class Block, class Argument>
inline constexpr bool kIsSpanOf = std::is_constructible_v<std::span<const Element<Block>>, Argument>;

// An argument on its way into a message: the caller's own where the types agree, a span of the elements of another
// container, else what it converts to.
template <class Value, class Argument>
struct SendableAs {
  using Type = std::conditional_t<std::is_same_v<std::remove_cvref_t<Argument>, Value>, Argument&&, Value>;
};
template <class Value, class Argument>
  requires kIsBlock<Value>
struct SendableAs<Value, Argument> {
  using T = Element<Value>;
  using Given = std::remove_cvref_t<Argument>;
  static constexpr bool kIsSpan = kIsElementView<Given> || kIsSpanOf<Value, Argument>;
  using Type = std::conditional_t<std::is_same_v<Given, std::vector<T>>, Argument&&,
                                  std::conditional_t<kIsSpan, std::span<const T>, std::vector<T>>>;
};
template <class Value, class Argument>
using Sendable = typename SendableAs<Value, Argument>::Type;

template <class Value, class Argument>
Sendable<Value, Argument> sendable(Argument&& argument) {
  using Type = Sendable<Value, Argument>;
  if constexpr (std::is_reference_v<Type>) {
    static_assert(std::is_constructible_v<std::remove_cvref_t<Argument>, Argument&&>,
                  "this argument cannot be copied: move it into the call");
    return std::forward<Argument>(argument);
  } else if constexpr (kIsElementView<std::remove_cvref_t<Argument>>) {
    return argument.span();
  } else {
    static_assert(std::is_constructible_v<Type, Argument&&>,
                  "the argument does not convert to the method's parameter");
    return Type(std::forward<Argument>(argument));
  }
}

// `Value` is what the receiver stores, `argument` is sendable.
template <bool kMayTravelOutOfBand, class Value, class Argument>
std::size_t packed_size(const Argument& argument, void* context) {
  if constexpr (kIsBlock<Value>) {
    const std::span<const Element<Value>> values(argument);
    if (kMayTravelOutOfBand && is_large(values)) return kOutOfBandHeaderBytes;
    const std::size_t padding_bytes = kIsElementView<Value> ? kPaddingBytes<Element<Value>> : 0;
    return sizeof(std::uint64_t) + padding_bytes + values.size_bytes();
  } else {
    return base::packed_size(argument, context);
  }
}

// The bytes of a value that is stored: those that it would take in a message of its own.
template <class Value>
std::size_t stored_size(const Value& value, void* context) {
  if constexpr (kIsElementView<Value>) {
    return packed_size<false, Value>(value.span(), context);
  } else {
    return packed_size<false, Value>(value, context);
  }
}

template <bool kMayTravelOutOfBand, class Value, class Argument>
void pack_block(Pup& p, Argument&& argument) {
  using T = Element<Value>;
  base::pup_detail::expect_no_pointer<T>();
  const std::span<const T> values(argument);
  if (kMayTravelOutOfBand && is_large(values)) {
    if constexpr (std::is_same_v<Argument, std::vector<T>>) {  // moved into the call
      auto& pool = vector_pool(*static_cast<runtime::Runtime*>(p.context()));
      auto given = std::make_unique<base::AnyVectorOf<T>>(std::forward<Argument>(argument));
      pack_given(p, values.size(),
                 attach_vector(pool, base::ElementType::of<T>(), values.size(), std::move(given)));
    } else {
      pack_copy(p, values.size(), values.data(), values.size_bytes());
    }
  } else {
    pack_padded(p, values.size(), values.data(), values.size_bytes(),
                kIsElementView<Value> ? kPaddingBytes<T> : 0);
  }
}

template <bool kMayTravelOutOfBand, class Value, class Argument>
void pack(Pup& p, Argument&& argument) {
  if constexpr (kIsBlock<Value>) {
    pack_block<kMayTravelOutOfBand, Value>(p, std::forward<Argument>(argument));
  } else if constexpr (payload_detail::kIsPayload<Value>) {
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
  decltype(auto) given = sendable<Value, Argument>(std::forward<Argument>(argument));
  if constexpr (!kIsBlock<Value>) {
    return Value(std::forward<decltype(given)>(given));
  } else {
    using T = Element<Value>;
    if constexpr (std::is_same_v<decltype(given), std::vector<T>> ||
                  std::is_same_v<decltype(given), std::vector<T>&&>) {
      return Value(std::move(given));
    } else {
      const std::span<const T> values(given);
      if (!is_large(values)) return Value(std::vector<T>(values.begin(), values.end()));
      std::vector<T> own = vector_pool(runtime).template take<T>(values.size());
      std::memcpy(own.data(), values.data(), values.size_bytes());
      return Value(std::move(own));
    }
  }
}

// --- Receiving

// Reads an argument before the buffers of its message have landed. A large vector is given its storage, in which
// they will land. Of a view or a payload the number of its buffer is read, into `which`.
template <class Value>
void unpack_before_landing(Pup& p, Value& value, std::uint32_t& which, runtime::Runtime& runtime,
                           std::span<runtime::ReceiveBuffer> receive_buffers) {
  if constexpr (payload_detail::kIsPayload<Value>) {
    p | which;
    static_cast<void>(payload_detail::find(receive_buffers, which, sizeof(typename Value::Element)));
  } else if constexpr (kIsBlock<Value>) {
    if (!is_out_of_band(p)) return static_cast<void>(p | value);
    using T = Element<Value>;
    const OutOfBandBlock block = read_block(p, receive_buffers, sizeof(T));
    if constexpr (kIsElementView<Value>) {
      which = block.which;
      value.expect(block.count);
    } else {
      value = vector_pool(runtime).template take<T>(block.count);
      block.receive_buffer->into =
          runtime::Attachment(memory::Buffer{value.data(), block.count * sizeof(T), {}, nullptr});
    }
  } else {
    p | value;
  }
}

// Gives an argument the buffer that has landed for it.
template <class Value>
void take_after_landing(runtime::Message& message, Value& value, std::uint32_t which) {
  if constexpr (payload_detail::kIsPayload<Value>) {
    value = Value(std::move(message.attachments()[which]));
  } else if constexpr (kIsElementView<Value>) {
    if (value.is_expected()) value.land(take_landed(message, which));
  }
}

// Keeps the message for the views in it, of a method that suspends.
template <class Arguments>
void hold(Arguments& arguments, runtime::Message& message) {
  const auto one = [&message]<class Value>(Value& value) {
    if constexpr (kIsElementView<Value>) value.hold(message);
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (one(std::get<I>(arguments)), ...);
  }(std::make_index_sequence<std::tuple_size_v<Arguments>>());
}

// Keeps the storage of large vectors among arguments that the method has left there.
template <class Arguments>
void recycle([[maybe_unused]] runtime::Runtime& runtime, Arguments& arguments) {
  const auto keep = [&runtime]<class T>(std::vector<T>& values) {
    if (values.capacity() * sizeof(T) >= kOutOfBandBytes) vector_pool(runtime).keep(std::move(values));
  };
  const auto one = [&keep]<class Value>(Value& value) {
    if constexpr (kIsElementView<Value>) {
      keep(value.own());
    } else if constexpr (kIsBlock<Value>) {
      keep(value);
    }
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (one(std::get<I>(arguments)), ...);
  }(std::make_index_sequence<std::tuple_size_v<Arguments>>());
}

// An argument of a call that waits and moves with its chare: a view as the vector of its elements.
template <class Value>
void pup_waiting(Pup& p, Value& value) {
  if constexpr (kIsElementView<Value>) {
    const auto elements = value.span();
    std::vector<Element<Value>> own(elements.begin(), elements.end());
    p | own;
    if (p.is_unpacking()) value = Value(std::move(own));
  } else {
    p | value;
  }
}

template <class Arguments>
inline constexpr bool kHasBlock = false;
template <class... Values>
inline constexpr bool kHasBlock<std::tuple<Values...>> = (kIsBlock<Values> || ...);
template <class Arguments>
inline constexpr bool kHasElementView = false;
template <class... Values>
inline constexpr bool kHasElementView<std::tuple<Values...>> = (kIsElementView<Values> || ...);

}  // namespace weft::chare::argument_detail
