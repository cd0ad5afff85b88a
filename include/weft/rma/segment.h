// weft::rma::Segment: memory of this PE that every PE of the job may reach by global pointers.
//
//   weft::pgas::Segment counters = pgas.make_segment<std::uint64_t>(100);
//   weft::GlobalPtr<std::uint64_t> first = counters.pointer<std::uint64_t>();   // may travel to other PEs
//
// A Segment is the owner's handle. When it is destroyed, the segment is freed: the destructor waits for nothing, and a later
// use of a pointer into the segment is an error. Operations that have begun on PEs that know the segment end well. Those of a
// PE that still has to ask for it may be too late: await them before. Weft keeps its own memory until all are over. Memory of the
// caller must stay valid until release() is ready.
//
// A Segment may outlive the job; then it does nothing.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "weft/memory/buffer.h"
#include "weft/rma/global_ptr.h"
#include "weft/runtime/future.h"

namespace weft::rma {

// The operations of the model that a Segment needs.
struct SegmentOwner {
  virtual void publish(const GlobalAddress& segment) = 0;
  virtual runtime::Future<> release(const GlobalAddress& segment) = 0;

 protected:
  ~SegmentOwner() = default;
};

class Segment {
 public:
  // No segment.
  Segment() = default;
  Segment(Segment&& other) noexcept { swap(other); }
  Segment& operator=(Segment&& other) noexcept {
    Segment(std::move(other)).swap(*this);
    return *this;
  }
  ~Segment();

  explicit operator bool() const { return !address_.is_null(); }
  GlobalAddress address() const { return address_; }
  std::size_t size_bytes() const { return buffer_.size_bytes; }
  memory::Place place() const { return buffer_.place; }
  // For kernels and for other operations of Weft. The CPU may use it only if the place is host memory.
  const memory::Buffer& buffer() const { return buffer_; }
  // To its element number `index`. It checks nothing.
  template <class T>
  GlobalPtr<T> pointer(std::ptrdiff_t index = 0) const {
    return GlobalPtr<T>(address_) + index;
  }
  // The elements at this PE's own addresses.
  template <class T>
  std::span<T> elements() const {
    return {static_cast<T*>(buffer_.data), buffer_.size_bytes / sizeof(T)};
  }

  // Tells all PEs how to reach the segment, so that their first use of a pointer into it need not ask. Optional, and not
  // collective.
  void publish() const;
  // Frees the segment. The future is ready when no PE uses or maps the memory any more. This object is empty afterwards.
  runtime::Future<> release() &&;

 private:
  friend class Segments;
  // The pointer is null after the job has ended.
  using Owner = std::shared_ptr<SegmentOwner*>;
  Segment(Owner owner, GlobalAddress address, const memory::Buffer& buffer)
      : owner_(std::move(owner)), address_(address), buffer_(buffer) {}
  void swap(Segment& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(address_, other.address_);
    std::swap(buffer_, other.buffer_);
  }

  Owner owner_;
  GlobalAddress address_;
  memory::Buffer buffer_;
};

}  // namespace weft::rma
