// The shared files whose pages are locked, so that kernels on devices of this process reach the host memory in them, also that of
// other PEs, by the address that the CPU has. A file is locked as a whole, because small segments share its pages.
//
// Threads: the PE's.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"
#include "weft/rma/segment.h"

#include "memory/kinds/kind.h"
#include "rma/segment/known_segment.h"

namespace weft::rma {

class LockedFiles {
 public:
  // `owner`: null when the job has ended, as for handles of segments.
  explicit LockedFiles(std::shared_ptr<SegmentOwner*> owner) : owner_(std::move(owner)) {}

  // Has kernels of `device` reach the host memory of the segment while the result exists, which is then destroyed before the segment's
  // memory is unmapped, or after the job has ended. Null if its pages are locked already. REQUIRES: the segment is in host memory that this PE reaches.
  base::Result<std::shared_ptr<void>> lock(const KnownSegment& segment, memory::KindBackend& kind,
                                           memory::Place device);

 private:
  std::shared_ptr<SegmentOwner*> owner_;
  std::map<const base::SharedMapping*, std::weak_ptr<void>> locks_;
};

}  // namespace weft::rma
