// Storage of large vectors that entry methods no longer use, kept for the vectors that arrive next. The pool
// exists because a fresh allocation of several MiB costs a page fault per 4 KiB, which takes longer than
// moving the bytes.
//
// runtime::BlockPool does not serve: a std::vector owns its storage and frees it itself.
//
// Threads: the PE's thread.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "weft/base/any_vector.h"

namespace weft::base {

class VectorPool {
 public:
  VectorPool() = default;
  VectorPool(const VectorPool&) = delete;
  VectorPool& operator=(const VectorPool&) = delete;

  // A vector of that size; its elements have any values.
  std::unique_ptr<AnyVector> take(const ElementType& type, std::size_t size);
  template <class T>
  std::vector<T> take(std::size_t size) {
    const std::unique_ptr<AnyVector> taken = take(ElementType::of<T>(), size);
    return std::move(static_cast<AnyVectorOf<T>&>(*taken).values);
  }

  // Keeps the storage of `values` while there is room for it, else frees it. REQUIRES: the elements are of `type`.
  void keep(const ElementType& type, std::unique_ptr<AnyVector> values);
  template <class T>
  void keep(std::vector<T>&& values) {
    keep(ElementType::of<T>(), std::make_unique<AnyVectorOf<T>>(std::move(values)));
  }

  std::size_t kept_bytes() const { return kept_bytes_; }

 private:
  // A window of 64 messages of 4 MiB.
  static constexpr std::size_t kMaxKeptBytes = std::size_t{256} << 20;

  struct Kept {
    std::size_t capacity;
    std::unique_ptr<AnyVector> values;
  };
  // The storage of one element type, by capacity; of one capacity the last that was kept is behind the others.
  struct FreeList {
    const ElementType* type;
    std::vector<Kept> kept;
  };

  FreeList& free_list(const ElementType& type);

  std::vector<FreeList> free_lists_;
  std::size_t kept_bytes_ = 0;
};

// A vector whose storage is in use elsewhere, and goes to the pool afterwards.
struct GivenVector {
  VectorPool& pool;
  const ElementType& type;
  std::unique_ptr<AnyVector> values;

  static void release(void* self);
};

}  // namespace weft::base
