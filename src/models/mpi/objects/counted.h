// Objects that handles of the program and operations in flight share: an intrusive count of references.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <utility>

namespace weft::mpi {

// Derive from it. The object begins with one reference, its maker's.
class Counted {
 public:
  Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  void acquire() { ++references_; }
  void acquire(std::uint32_t count) { references_ += count; }
  void release() {
    if (--references_ == 0) destroy();
  }
  std::uint32_t num_references() const { return references_; }

 protected:
  virtual ~Counted() = default;
  // Called once, with the last reference.
  virtual void destroy() { delete this; }

 private:
  std::uint32_t references_ = 1;
};

// One reference to a T, which derives from Counted; or none.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  // Adds a reference.
  explicit Ref(T& object) : object_(&object) { object.acquire(); }
  Ref(const Ref& other) : object_(other.object_) {
    if (object_ != nullptr) object_->acquire();
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) object_->release();
  }
  // Takes over the reference that the caller has, for instance a maker's.
  static Ref adopt(T* object) {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  // Gives the reference to the caller.
  T* leave() { return std::exchange(object_, nullptr); }

  T* get() const { return object_; }
  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

}  // namespace weft::mpi
