// PUP (pack and unpack): one function per type names what a message carries. The same function sizes, packs
// and unpacks, so the three cannot disagree.
//
//   struct Particle { std::string name; std::vector<double> x;  void pup(weft::Pup& p) { p | name | x; } };
//
// These types need no pup function: trivially copyable types that hold no pointer, std::string, vector, array,
// pair, tuple, optional, variant, map, unordered_map, set and unique_ptr, and any combination of them. For a
// type of another library, write a free function `void pup(weft::Pup&, T&)` in the namespace of that type.
//
// Values are packed in the machine's byte order (Linux x86-64 and aarch64 are both little-endian). Unpacking
// checks every size and every tag against the bytes that arrived, and throws Error(kCorrupt) if one is wrong.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "weft/base/holds_pointer.h"
#include "weft/base/out_of_band.h"

namespace weft::base {

class Pup;

template <class T>
concept HasMemberPup = requires(T& value, Pup& p) { value.pup(p); };
template <class T>
concept HasFreePup = requires(T& value, Pup& p) { pup(p, value); };

class Pup {
 public:
  enum class Mode : std::uint8_t { kSizing, kPacking, kUnpacking };

  // `context` is the runtime of this PE. Proxies and futures need it when they are unpacked.
  static Pup sizer(void* context = nullptr) { return Pup(Mode::kSizing, nullptr, nullptr, context); }
  static Pup packer(void* data, std::size_t size_bytes, void* context = nullptr) {
    auto* begin = static_cast<std::byte*>(data);
    return Pup(Mode::kPacking, begin, begin + size_bytes, context);
  }
  static Pup unpacker(const void* data, std::size_t size_bytes, void* context = nullptr) {
    auto* begin = static_cast<std::byte*>(const_cast<void*>(data));
    return Pup(Mode::kUnpacking, begin, begin + size_bytes, context);
  }

  bool is_sizing() const { return mode_ == Mode::kSizing; }
  bool is_packing() const { return mode_ == Mode::kPacking; }
  bool is_unpacking() const { return mode_ == Mode::kUnpacking; }
  void* context() const { return context_; }
  // The runtime::Message that holds the bytes, for types whose data is sent out of band; or null.
  void* carrier() const { return carrier_; }
  void set_carrier(void* carrier) { carrier_ = carrier; }

  // Takes large vectors out of the bytes; null as a rule. Set in the same way when sizing, packing and unpacking.
  OutOfBand* out_of_band() const { return out_of_band_; }
  void set_out_of_band(OutOfBand* out_of_band) { out_of_band_ = out_of_band; }
  // Whether the storage of what is visited may be given away. REQUIRES: sizing or packing.
  bool gives() const { return gives_; }

  // The bytes counted, written or read so far.
  std::size_t offset_bytes() const {
    return is_sizing() ? sized_ : static_cast<std::size_t>(cursor_ - begin_);
  }
  // The bytes that are left. REQUIRES: packing or unpacking.
  std::size_t remaining_bytes() const { return static_cast<std::size_t>(end_ - cursor_); }
  const std::byte* cursor() const { return cursor_; }

  // Counts `size_bytes` raw bytes, or copies them from or to `data`.
  void bytes(void* data, std::size_t size_bytes) {
    if (mode_ == Mode::kSizing) {
      sized_ += size_bytes;
      return;
    }
    if (size_bytes > remaining_bytes()) overrun(size_bytes);
    if (size_bytes == 0) return;
    if (mode_ == Mode::kPacking) {
      std::memcpy(cursor_, data, size_bytes);
    } else {
      std::memcpy(data, cursor_, size_bytes);
    }
    cursor_ += size_bytes;
  }

  // Counts bytes that the caller will pack with bytes(). REQUIRES: sizing.
  void reserve(std::size_t size_bytes) { sized_ += size_bytes; }

  // Skips bytes that the caller reads in place at cursor(). REQUIRES: unpacking.
  void skip(std::size_t size_bytes) {
    if (size_bytes > remaining_bytes()) overrun(size_bytes);
    cursor_ += size_bytes;
  }

  // Throws Error(kCorrupt) if fewer than `size_bytes` are left. REQUIRES: unpacking.
  void expect(std::size_t size_bytes) const {
    if (size_bytes > remaining_bytes()) overrun(size_bytes);
  }

  // Throws Error(kCorrupt): the bytes hold `what`, for example "a bool that is neither 0 nor 1".
  [[noreturn]] void refuse(const char* what) const;

  // The number of elements of a container. Each element takes at least `element_bytes`. When unpacking, a
  // count that the remaining bytes cannot hold throws, so a corrupt count never causes a huge allocation.
  std::size_t count(std::size_t current, std::size_t element_bytes) {
    std::uint64_t value = current;
    bytes(&value, sizeof value);
    if (is_unpacking() && element_bytes != 0 && value > remaining_bytes() / element_bytes) overrun(value);
    return value;
  }

  template <class T>
  Pup& operator|(T& value) {
    visit(value);
    return *this;
  }
  // For temporaries and constants. REQUIRES: sizing or packing.
  template <class T>
  Pup& operator|(const T& value) {
    const bool gave = std::exchange(gives_, false);  // its storage cannot be given away
    visit(const_cast<T&>(value));
    gives_ = gave;
    return *this;
  }

 private:
  Pup(Mode mode, std::byte* begin, std::byte* end, void* context)
      : mode_(mode), begin_(begin), cursor_(begin), end_(end), context_(context) {}

  [[noreturn]] void overrun(std::size_t wanted_bytes) const;

  template <class T>
  void visit(T& value);

  Mode mode_;
  std::byte* begin_;
  std::byte* cursor_;
  std::byte* end_;
  std::size_t sized_ = 0;
  void* context_;
  void* carrier_ = nullptr;
  OutOfBand* out_of_band_ = nullptr;
  bool gives_ = true;
};

namespace pup_detail {

template <class T>
inline constexpr bool kIsBulk =
    std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !HasMemberPup<T> && !HasFreePup<T>;

// A type whose values may not be packed everywhere: expect_packable() throws where T::is_checked() is true.
template <class T>
concept IsCheckedWhenPacked = requires(const T& value) {
  T::is_checked();
  value.expect_packable();
};

template <class T>
void expect_packable([[maybe_unused]] const Pup& p, [[maybe_unused]] const T* values,
                     [[maybe_unused]] std::size_t count) {
  if constexpr (IsCheckedWhenPacked<T>) {
    if (!p.is_packing() || !T::is_checked()) return;
    for (std::size_t i = 0; i < count; ++i) values[i].expect_packable();
  }
}

// Refuses a type whose bytes are those of an address.
template <class T>
constexpr void expect_no_pointer() {
  static_assert(
      !kHoldsPointer<T>,
      "this argument cannot travel: it holds a pointer or a reference, which means nothing on another PE "
      "(std::string_view, std::span, std::reference_wrapper, a struct with a pointer, a union or a "
      "std::optional); "
      "send what it points to as std::string or std::vector, or give its type a member `void pup(weft::Pup& "
      "p)` "
      "that names what to send");
}

// The number of elements, then the elements, out of band or among the bytes. A large vector has a flag that says which.
template <class T>
void visit_out_of_band(Pup& p, std::vector<T>& values) {
  expect_no_pointer<T>();
  expect_packable(p, values.data(), values.size());
  const std::size_t size = p.count(values.size(), 0);
  if (size > std::vector<T>().max_size()) p.refuse("more elements than a vector can have");
  if (p.out_of_band()->can_take(size, sizeof(T))) {
    bool is_out_of_band = p.gives();
    p | is_out_of_band;
    if (is_out_of_band) {
      p.out_of_band()->count(ElementType::of<T>());
      if (p.is_packing()) {
        p.out_of_band()->give(ElementType::of<T>(), size,
                              std::make_unique<AnyVectorOf<T>>(std::move(values)));
      }
      if (p.is_unpacking()) values = p.out_of_band()->template take<T>(size);
      return;
    }
  }
  if (p.is_unpacking()) {
    p.expect(size * sizeof(T));
    values.resize(size);
  }
  p.bytes(values.data(), size * sizeof(T));
}

template <class Container>
void visit_sequence(Pup& p, Container& values) {
  using Element = typename Container::value_type;
  constexpr bool bulk = kIsBulk<Element> && !std::is_same_v<Element, bool>;
  std::size_t size = p.count(values.size(), bulk ? sizeof(Element) : 0);
  if constexpr (bulk) {
    expect_no_pointer<Element>();
    if (p.is_unpacking() && reinterpret_cast<std::uintptr_t>(p.cursor()) % alignof(Element) == 0) {
      // Writes the elements once; resize() would write zeros first.
      const auto* elements = reinterpret_cast<const Element*>(p.cursor());
      p.skip(size * sizeof(Element));
      values.assign(elements, elements + size);
    } else {
      if (p.is_unpacking()) values.resize(size);
      expect_packable(p, values.data(), size);
      p.bytes(values.data(), size * sizeof(Element));
    }
  } else if (p.is_unpacking()) {
    values.clear();
    for (std::size_t i = 0; i < size; ++i) {
      p.expect(1);  // otherwise elements of no bytes would make a corrupt count loop for ever
      Element element{};
      p | element;
      values.push_back(std::move(element));
    }
  } else {
    for (auto&& element : values) {
      Element copy_of_bool = element;  // std::vector<bool> has no addressable elements
      p | copy_of_bool;
    }
  }
}

template <class Container, class Element>
void visit_associative(Pup& p, Container& values) {
  std::size_t size = p.count(values.size(), 1);
  if (p.is_unpacking()) {
    values.clear();
    for (std::size_t i = 0; i < size; ++i) {
      Element element{};
      p | element;
      values.insert(std::move(element));
    }
  } else {
    for (auto& element : values) p | const_cast<Element&>(reinterpret_cast<const Element&>(element));
  }
}

inline void visit_type(Pup& p, std::string& value) { visit_sequence(p, value); }

template <class T, class A>
void visit_type(Pup& p, std::vector<T, A>& values) {
  if constexpr (kIsBulk<T> && !std::is_same_v<T, bool> && std::is_same_v<A, std::allocator<T>>) {
    if (p.out_of_band() != nullptr) return visit_out_of_band(p, values);
  }
  if constexpr (kIsBulk<T> || std::is_same_v<T, bool>) {
    visit_sequence(p, values);
  } else {
    std::size_t size = p.count(values.size(), 0);
    if (p.is_unpacking()) {
      values.clear();
      for (std::size_t i = 0; i < size; ++i) {
        p.expect(1);
        p | values.emplace_back();
      }
    } else {
      for (auto& value : values) p | value;
    }
  }
}

template <class T, std::size_t N>
void visit_type(Pup& p, std::array<T, N>& values) {
  for (auto& value : values) p | value;
}

template <class A, class B>
void visit_type(Pup& p, std::pair<A, B>& value) {
  p | value.first | value.second;
}

template <class... Ts>
void visit_type(Pup& p, std::tuple<Ts...>& values) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((p | std::get<I>(values)), ...);
  }(std::index_sequence_for<Ts...>());
}

template <class T>
void visit_type(Pup& p, std::optional<T>& value) {
  bool has = value.has_value();
  p | has;
  if (!has) {
    value.reset();
    return;
  }
  if (p.is_unpacking()) value.emplace();
  p | *value;
}

template <class T>
void visit_type(Pup& p, std::unique_ptr<T>& value) {
  bool has = value != nullptr;
  p | has;
  if (!has) {
    value.reset();
    return;
  }
  if (p.is_unpacking()) value = std::make_unique<T>();
  p | *value;
}

template <class K, class V, class C, class A>
void visit_type(Pup& p, std::map<K, V, C, A>& values) {
  visit_associative<std::map<K, V, C, A>, std::pair<K, V>>(p, values);
}
template <class K, class V, class H, class E, class A>
void visit_type(Pup& p, std::unordered_map<K, V, H, E, A>& values) {
  visit_associative<std::unordered_map<K, V, H, E, A>, std::pair<K, V>>(p, values);
}
template <class K, class C, class A>
void visit_type(Pup& p, std::set<K, C, A>& values) {
  visit_associative<std::set<K, C, A>, K>(p, values);
}

template <std::size_t I, class Variant>
void emplace_alternative(Variant& value, std::size_t wanted) {
  if constexpr (I < std::variant_size_v<Variant>) {
    if (I == wanted) {
      value.template emplace<I>();
    } else {
      emplace_alternative<I + 1>(value, wanted);
    }
  }
}

template <class... Ts>
void visit_type(Pup& p, std::variant<Ts...>& value) {
  std::uint8_t which = static_cast<std::uint8_t>(value.index());
  p | which;
  if (p.is_unpacking()) {
    if (which >= sizeof...(Ts)) p.refuse("an alternative that the variant does not have");
    emplace_alternative<0>(value, which);
  }
  std::visit([&p](auto& alternative) { p | alternative; }, value);
}

template <class T>
concept HasVisitType = requires(Pup& p, T& value) { visit_type(p, value); };

template <class>
inline constexpr bool kAlwaysFalse = false;

}  // namespace pup_detail

template <class T>
void Pup::visit(T& value) {
  if constexpr (HasMemberPup<T>) {
    value.pup(*this);
  } else if constexpr (HasFreePup<T>) {
    pup(*this, value);
  } else if constexpr (std::is_same_v<T, bool>) {
    std::uint8_t byte = is_unpacking() || value == false ? 0 : 1;
    bytes(&byte, sizeof byte);
    if (is_unpacking()) {
      if (byte > 1) refuse("a bool that is neither 0 nor 1");
      value = byte != 0;
    }
  } else if constexpr (pup_detail::HasVisitType<T>) {
    pup_detail::visit_type(*this, value);
  } else if constexpr (pup_detail::kIsBulk<T> && std::is_empty_v<T>) {
    std::byte nothing{};  // the one byte of an empty class has no value
    bytes(&nothing, sizeof nothing);
  } else if constexpr (pup_detail::kIsBulk<T>) {
    pup_detail::expect_no_pointer<T>();
    pup_detail::expect_packable(*this, &value, 1);
    bytes(&value, sizeof value);
  } else {
    static_assert(
        pup_detail::kAlwaysFalse<T>,
        "this argument cannot travel: give its type a member `void pup(weft::Pup& p) { p | a | b; }` that "
        "names what to send, or send what a pointer points to");
  }
}

template <class T>
std::size_t packed_size(const T& value, void* context = nullptr) {
  if constexpr (pup_detail::kIsBulk<T>) {
    return sizeof(T);
  } else {
    Pup p = Pup::sizer(context);
    p | value;
    return p.offset_bytes();
  }
}

template <class T>
std::vector<std::byte> pack(const T& value, void* context = nullptr) {
  std::vector<std::byte> bytes(packed_size(value, context));
  Pup p = Pup::packer(bytes.data(), bytes.size(), context);
  p | value;
  return bytes;
}

template <class T>
T unpack(std::span<const std::byte> bytes, void* context = nullptr) {
  Pup p = Pup::unpacker(bytes.data(), bytes.size(), context);
  T value{};
  p | value;
  return value;
}

}  // namespace weft::base

namespace weft {
using base::Pup;
}
