// Vectors whose element type is known at run time only. Storage that travels or is kept for reuse goes through these, so that
// the code for it exists once and not once for each element type of a program.
//
// Threads: the list of element types is constant once main() runs, and when a library has been loaded. A vector belongs to one
// PE's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::base {

// A vector of any element type.
class AnyVector {
 public:
  virtual ~AnyVector() = default;
  virtual void* data() = 0;
  // The number of elements that fit into its storage.
  virtual std::size_t capacity() const = 0;
  // New elements are zero.
  virtual void resize(std::size_t count) = 0;
};

template <class T>
class AnyVectorOf final : public AnyVector {
 public:
  AnyVectorOf() = default;
  explicit AnyVectorOf(std::vector<T>&& values_in) : values(std::move(values_in)) {}
  void* data() override { return values.data(); }
  std::size_t capacity() const override { return values.capacity(); }
  void resize(std::size_t count) override { values.resize(count); }

  std::vector<T> values;
};

// An element type that large vectors of the program have. The id is the same in all processes of a program.
class ElementType {
 public:
  using Make = std::unique_ptr<AnyVector> (*)();

  constexpr ElementType(std::uint64_t id, std::size_t size_bytes, Make make)
      : id_(id), size_bytes_(size_bytes), make_(make) {}

  // Makes it known to find(), once and before main() runs. It lives as long as the program.
  static bool add(ElementType& type) {
    type.next_ = std::exchange(first_, &type);
    return true;
  }
  // Null if no vector of this process has the type.
  static const ElementType* find(std::uint64_t id);
  template <class T>
  static const ElementType& of();

  std::uint64_t id() const { return id_; }
  std::size_t size_bytes() const { return size_bytes_; }
  // A vector without elements.
  std::unique_ptr<AnyVector> make() const { return make_(); }

 private:
  static inline const ElementType* first_ = nullptr;

  std::uint64_t id_;
  std::size_t size_bytes_;
  Make make_;
  const ElementType* next_ = nullptr;
};

namespace any_vector_detail {

// FNV-1a.
constexpr std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash;
}

// The hash of the type's name.
template <class T>
constexpr std::uint64_t id_of() {
  return hash_of(__PRETTY_FUNCTION__);
}

template <class T>
struct Registered {
  static std::unique_ptr<AnyVector> make() { return std::make_unique<AnyVectorOf<T>>(); }
  static inline constinit ElementType type{id_of<T>(), sizeof(T), &make};
  static inline const bool is_known = ElementType::add(type);
};

}  // namespace any_vector_detail

template <class T>
const ElementType& ElementType::of() {
  static_cast<void>(any_vector_detail::Registered<T>::is_known);
  return any_vector_detail::Registered<T>::type;
}

}  // namespace weft::base
