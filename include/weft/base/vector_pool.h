// Storage of large vectors that entry methods no longer use, kept for the vectors that arrive next. The pool
// exists because a fresh allocation of several MiB costs a page fault per 4 KiB, which takes longer than
// moving the bytes.
//
// runtime::BlockPool does not serve: a std::vector owns its storage and frees it itself.
//
// Threads: the PE's thread.
#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <typeindex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weft::base {

class VectorPool {
 public:
  VectorPool() = default;
  VectorPool(const VectorPool&) = delete;
  VectorPool& operator=(const VectorPool&) = delete;

  // A vector of that size; its elements have any values.
  template <class T>
  std::vector<T> take(std::size_t size) {
    std::vector<T> values;
    auto& kept = shelf<T>().kept;
    // Takes storage of up to twice the size, so that sizes that differ a little share it.
    // Of storage of one size the last that was kept: the cache may still hold it.
    if (auto found = kept.lower_bound(size); found != kept.end() && found->first / 2 <= size) {
      found = std::prev(kept.upper_bound(found->first));
      values = std::move(found->second);
      kept_bytes_ -= found->first * sizeof(T);
      kept.erase(found);
    }
    values.resize(size);  // kept storage has its former size: only further elements are written
    return values;
  }

  // Keeps the storage of `values` while there is room for it, else frees it.
  template <class T>
  void keep(std::vector<T>&& values) {
    std::vector<T> storage = std::move(values);
    const std::size_t size_bytes = storage.capacity() * sizeof(T);
    if (size_bytes == 0 || size_bytes > kMaxKeptBytes - kept_bytes_) return;
    kept_bytes_ += size_bytes;
    shelf<T>().kept.emplace(storage.capacity(), std::move(storage));
  }

  std::size_t kept_bytes() const { return kept_bytes_; }

 private:
  // A window of 64 messages of 4 MiB.
  static constexpr std::size_t kMaxKeptBytes = std::size_t{256} << 20;

  struct Shelf {
    virtual ~Shelf() = default;
  };
  template <class T>
  struct ShelfOf final : Shelf {
    std::multimap<std::size_t, std::vector<T>> kept;  // by capacity
  };

  template <class T>
  ShelfOf<T>& shelf() {
    std::unique_ptr<Shelf>& slot = shelves_[typeid(T)];
    if (slot == nullptr) slot = std::make_unique<ShelfOf<T>>();
    return static_cast<ShelfOf<T>&>(*slot);
  }

  std::unordered_map<std::type_index, std::unique_ptr<Shelf>> shelves_;
  std::size_t kept_bytes_ = 0;
};

// A vector whose storage is in use elsewhere, and goes to the pool afterwards.
template <class T>
struct GivenVector {
  VectorPool& pool;
  std::vector<T> values;

  static void release(void* self) {
    auto* const given = static_cast<GivenVector*>(self);
    given->pool.keep(std::move(given->values));
    delete given;
  }
};

}  // namespace weft::base
