// A PE's knowledge of one segment, which may be its own or one of another PE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "weft/memory/buffer.h"
#include "weft/rma/global_ptr.h"
#include "weft/runtime/future.h"

#include "machine/machine.h"
#include "memory/page_lock.h"
#include "rma/segment/shared_parts.h"

namespace weft::rma {

// Whose memory an own segment has.
enum class SegmentMemory : std::uint8_t { kShared, kAllocated, kCaller };

// The state that only the owner of a segment has.
struct OwnSegment {
  SegmentMemory memory = SegmentMemory::kShared;
  // How other PEs' devices map it; made at the first question.
  bool is_export_tried = false;
  std::vector<std::byte> exported;
  std::uint64_t exported_offset = 0;
  // The PEs that know the segment, with the number of descriptions that were sent to each.
  std::map<int, std::uint32_t> told;
  std::optional<runtime::Future<>> released;
};

struct KnownSegment {
  GlobalAddress start;
  // Where this PE, or its device, reaches the segment. A null address: it does not.
  memory::Buffer memory;
  std::uint64_t size_bytes = 0;
  memory::Place owner_place;
  const std::uint8_t* state = nullptr;  // a SegmentState
  std::uint8_t state_by_message = 0;    // if the owner's states cannot be mapped
  SharedPart shared;                    // Weft's host memory, here or of another PE
  void* import = nullptr;               // of device memory
  memory::PageLock page_lock;           // of host memory that devices copy
  std::optional<machine::RemoteMemory> remote;

  // Used if another PE owns the segment.
  bool is_known = false;                     // a description has arrived
  runtime::Future<std::uint8_t> answer;      // to the question under way: a SegmentState
  bool is_asked = false;                     // whether there is one
  std::uint32_t num_descriptions = 0;        // that have arrived
  std::optional<std::uint32_t> freed_after;  // the owner has freed it; it has sent so many descriptions

  std::optional<OwnSegment> own;
  bool is_freed = false;
  int uses = 0;  // operations that need it to stay

  // Each begin_use() has one end_use(), which returns whether this use may be what the segment's memory was waiting for. The
  // caller then calls Segments::reclaim_if_unused(), which looks again.
  void begin_use() { ++uses; }
  bool end_use() {
    --uses;
    return uses == 0 && (is_freed || freed_after.has_value());
  }
  bool is_reached() const { return memory.data != nullptr; }
  memory::Buffer part(const GlobalAddress& at, std::size_t bytes) const {
    return {static_cast<std::byte*>(memory.data) + at.offset_bytes(), bytes, memory.place, nullptr};
  }
};

// Keeps a segment while an operation uses it.
class SegmentUse {
 public:
  using Ended = void (*)(void* segments, KnownSegment& segment);

  SegmentUse() = default;
  SegmentUse(KnownSegment& segment, Ended ended, void* segments)
      : segment_(&segment), ended_(ended), segments_(segments) {
    segment.begin_use();
  }
  SegmentUse(SegmentUse&& other) noexcept
      : segment_(std::exchange(other.segment_, nullptr)), ended_(other.ended_), segments_(other.segments_) {}
  SegmentUse& operator=(SegmentUse&& other) noexcept {
    std::swap(segment_, other.segment_);
    std::swap(ended_, other.ended_);
    std::swap(segments_, other.segments_);
    return *this;
  }
  ~SegmentUse() {
    if (segment_ == nullptr) return;
    if (segment_->end_use()) [[unlikely]]
      ended_(segments_, *segment_);
  }

  // The segment is gone.
  void forget() { segment_ = nullptr; }
  explicit operator bool() const { return segment_ != nullptr; }
  KnownSegment& operator*() const { return *segment_; }
  KnownSegment* operator->() const { return segment_; }

 private:
  KnownSegment* segment_ = nullptr;
  Ended ended_ = nullptr;
  void* segments_ = nullptr;
};

}  // namespace weft::rma
