// Atomic operations on device memory of this PE, which all PEs send here: the value is copied to the host, changed, and
// copied back, one operation at a time. They are therefore atomic among each other, and not with kernels.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "weft/base/status.h"
#include "weft/runtime/runtime.h"

#include "rma/atomic/words.h"
#include "rma/segment/segments.h"

namespace weft::rma {

class DeviceAtomics {
 public:
  // Called with the bits of the value before.
  using Ended = std::function<void(const base::Status& status, std::uint64_t before)>;

  DeviceAtomics(runtime::Runtime& runtime) : runtime_(runtime) {}  // implicit: it has no other state
  DeviceAtomics(const DeviceAtomics&) = delete;
  DeviceAtomics& operator=(const DeviceAtomics&) = delete;

  struct DeviceOperation {
    AtomicKind kind = AtomicKind::kLoad;
    AtomicType type = AtomicType::kInteger64;
    memory::Buffer word;
    SegmentUse use;
    std::uint64_t operand = 0;
    std::uint64_t compare = 0;
    Ended ended;
  };
  // REQUIRES: is_atomic().
  void start(DeviceOperation operation);
  // Those that are not over have no outcome.
  void close() { waiting_.clear(); }

 private:
  runtime::Task<> run();
  runtime::Task<> carry_out(const DeviceOperation& operation, std::uint64_t& before);

  runtime::Runtime& runtime_;
  std::deque<DeviceOperation> waiting_;
  bool is_running_ = false;
};

}  // namespace weft::rma
