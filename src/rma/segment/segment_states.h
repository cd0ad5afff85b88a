// Whether each segment of a PE is live: a byte for each number, in a file that the PEs of the host map. So they see that a
// segment is freed without a message.
//
// The file is sparse: a page of it is used for each 4096 segments. Threads: the PE's; other processes read.
#pragma once

#include <cstdint>

#include "weft/base/status.h"
#include "weft/rma/global_ptr.h"
#include "weft/rma/segment_cache.h"

#include "base/shared_mapping.h"

namespace weft::rma {

class SegmentStates {
 public:
  // Nothing is mapped.
  SegmentStates() = default;
  static base::Result<SegmentStates> create() {
    return of(base::SharedMapping::create("weft-segments", kBytes));
  }
  static base::Result<SegmentStates> open(const base::SharedMappingName& name) {
    return of(base::SharedMapping::open(name, kBytes));
  }

  explicit operator bool() const { return static_cast<bool>(file_); }
  const base::SharedMappingName& name() const { return file_.name(); }
  // REQUIRES: segment <= GlobalAddress::kMaxSegment.
  std::uint8_t* state(std::uint32_t segment) const {
    return reinterpret_cast<std::uint8_t*>(file_.data()) + base::SharedMapping::kNonceBytes + segment;
  }
  // For the owner.
  void set(std::uint32_t segment, SegmentState now) const {
    std::atomic_ref(*state(segment)).store(static_cast<std::uint8_t>(now), std::memory_order_release);
  }

 private:
  static constexpr std::size_t kBytes = base::SharedMapping::kNonceBytes + GlobalAddress::kMaxSegment + 1;
  static base::Result<SegmentStates> of(base::Result<base::SharedMapping> file) {
    if (!file.ok()) return file.status();
    SegmentStates states;
    states.file_ = std::move(*file);
    return states;
  }

  base::SharedMapping file_;
};

}  // namespace weft::rma
