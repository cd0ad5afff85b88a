// Carries large vectors of a plain type beside the bytes of a Pup, with one copy: for the state of objects that move.
//
// The sender gives their storage away, so a vector is empty after it has been packed. The receiver makes vectors of the same
// element types before they arrive; when they have arrived, unpacking moves them into the object. Both sides count the
// vectors in the same order.
//
// Threads: one PE's. The list of element types is constant once main() runs, and when a library has been loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/vector_pool.h"

namespace weft::base {

// A vector of any element type.
class AnyVector {
 public:
  virtual ~AnyVector() = default;
  virtual void* data() = 0;
};

template <class T>
class AnyVectorOf final : public AnyVector {
 public:
  explicit AnyVectorOf(std::vector<T>&& values_in) : values(std::move(values_in)) {}
  void* data() override { return values.data(); }
  std::vector<T> values;
};

// An element type that large vectors of the program have. The id is the same in all processes of a program.
class ElementType {
 public:
  using Make = std::unique_ptr<AnyVector> (*)(VectorPool& pool, std::size_t count);

  ElementType(std::uint64_t id, std::size_t size_bytes, Make make)
      : id_(id), size_bytes_(size_bytes), make_(make), next_(std::exchange(first_, this)) {}

  // Null if no vector of this process has the type.
  static const ElementType* find(std::uint64_t id) {
    for (const ElementType* one = first_; one != nullptr; one = one->next_) {
      if (one->id_ == id) return one;
    }
    return nullptr;
  }
  template <class T>
  static const ElementType& of();

  std::uint64_t id() const { return id_; }
  std::size_t size_bytes() const { return size_bytes_; }
  std::unique_ptr<AnyVector> make(VectorPool& pool, std::size_t count) const { return make_(pool, count); }

 private:
  static inline const ElementType* first_ = nullptr;

  std::uint64_t id_;
  std::size_t size_bytes_;
  Make make_;
  const ElementType* next_;
};

namespace beside_detail {

// FNV-1a of the type's name.
template <class T>
constexpr std::uint64_t id_of() {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : std::string_view(__PRETTY_FUNCTION__)) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  return hash;
}

template <class T>
struct Registered {
  static inline const ElementType type{
      id_of<T>(), sizeof(T), [](VectorPool& pool, std::size_t count) -> std::unique_ptr<AnyVector> {
        return std::make_unique<AnyVectorOf<T>>(pool.template take<T>(count));
      }};
};

}  // namespace beside_detail

template <class T>
const ElementType& ElementType::of() {
  return beside_detail::Registered<T>::type;
}

class Beside {
 public:
  // Smaller ones are packed.
  static constexpr std::size_t kLeastBytes = std::size_t{32} << 10;

  Beside(VectorPool& pool, std::size_t most_vectors) : pool_(pool), most_vectors_(most_vectors) {}
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  virtual ~Beside() = default;

  // Whether a vector of so many elements may travel beside.
  template <class T>
  bool can_take(std::size_t count) const {
    return count >= kLeastBytes / sizeof(T) && types_.size() != most_vectors_;
  }
  // The next vector travels beside: in every pass, before give() and take().
  template <class T>
  void count() {
    types_.push_back(ElementType::of<T>().id());
  }
  // Those of the vectors so far.
  const std::vector<std::uint64_t>& types() const { return types_; }

  template <class T>
  void give(std::vector<T>&& values) {
    auto* const given = new GivenVector<T>{pool_, std::move(values)};
    attach(given->values.data(), given->values.size() * sizeof(T), given, &GivenVector<T>::release);
  }
  template <class T>
  std::vector<T> take(std::size_t count) {
    const std::span<const std::byte> bytes = next_bytes(count * sizeof(T));
    if (auto* const made = dynamic_cast<AnyVectorOf<T>*>(next_vector()); made != nullptr) {
      return std::move(made->values);
    }
    std::vector<T> values = pool_.take<T>(count);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

 protected:
  // `release(owner)` is called once, when the memory has been sent.
  virtual void attach(void* data, std::size_t size_bytes, void* owner, void (*release)(void* owner)) = 0;
  // What has arrived next. Throws Error(kCorrupt) if it is not of that size.
  virtual std::span<const std::byte> next_bytes(std::size_t size_bytes) = 0;
  // The vector that holds these bytes; null if they are in other memory.
  virtual AnyVector* next_vector() = 0;

 private:
  VectorPool& pool_;
  std::size_t most_vectors_;
  std::vector<std::uint64_t> types_;
};

}  // namespace weft::base
