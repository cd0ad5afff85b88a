// Carries large vectors of a plain type out of band, beside the bytes of a Pup, with one copy: for the state of objects that move.
//
// The sender gives their storage away, so a vector is empty after it has been packed. The receiver makes vectors of the same
// element types before they arrive; when they have arrived, unpacking moves them into the object. Both sides count the
// vectors in the same order.
//
// Threads: one PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weft/base/any_vector.h"
#include "weft/base/vector_pool.h"

namespace weft::base {

class OutOfBand {
 public:
  // Smaller ones are packed.
  static constexpr std::size_t kLeastBytes = std::size_t{32} << 10;

  OutOfBand(VectorPool& pool, std::size_t most_vectors) : pool_(pool), most_vectors_(most_vectors) {}
  OutOfBand(const OutOfBand&) = delete;
  OutOfBand& operator=(const OutOfBand&) = delete;
  virtual ~OutOfBand() = default;

  // Whether a vector of so many elements may travel out of band.
  bool can_take(std::size_t count, std::size_t element_bytes) const {
    return count >= kLeastBytes / element_bytes && types_.size() != most_vectors_;
  }
  // The next vector travels out of band: in every pass, before give() and take().
  void count(const ElementType& type) { types_.push_back(type.id()); }
  // Those of the vectors so far.
  const std::vector<std::uint64_t>& types() const { return types_; }

  // `values` has `count` elements of `type`.
  void give(const ElementType& type, std::size_t count, std::unique_ptr<AnyVector> values);
  // A vector of `count` elements of T. Throws Error(kCorrupt) if what has arrived next has another size.
  template <class T>
  std::vector<T> take(std::size_t count) {
    const std::span<const std::byte> bytes = next_bytes(count * sizeof(T));
    if (auto* const made = dynamic_cast<AnyVectorOf<T>*>(next_vector()); made != nullptr) {
      return std::move(made->values);
    }
    const std::unique_ptr<AnyVector> copied = copy(ElementType::of<T>(), count, bytes);
    return std::move(static_cast<AnyVectorOf<T>&>(*copied).values);
  }

 protected:
  // `release(owner)` is called once, when the memory has been sent.
  virtual void attach(void* data, std::size_t size_bytes, void* owner, void (*release)(void* owner)) = 0;
  // Returns the next bytes that have arrived. Throws Error(kCorrupt) if it is not of that size.
  virtual std::span<const std::byte> next_bytes(std::size_t size_bytes) = 0;
  // The vector that holds these bytes; null if they are in other memory.
  virtual AnyVector* next_vector() = 0;

 private:
  std::unique_ptr<AnyVector> copy(const ElementType& type, std::size_t count,
                                  std::span<const std::byte> bytes);

  VectorPool& pool_;
  std::size_t most_vectors_;
  std::vector<std::uint64_t> types_;
};

}  // namespace weft::base
