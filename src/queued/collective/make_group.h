// How members make a DeviceGroup together.
//
// Each member makes its memory, tells the others where it is, and maps theirs. Then all tell one another whether that was possible.
// So a failure of one member fails all, with its sentence, and no member waits for it.
//
// Threads: the PE's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "weft/queued/device_group.h"
#include "weft/rma/global_ptr.h"
#include "weft/runtime/future.h"
#include "weft/runtime/runtime.h"
#include "weft/runtime/task.h"

#include "queued/collective/group_state.h"

namespace weft::queued {

// What a member tells the others. It is a claim.
struct MemberRecord {
  rma::GlobalAddress rooms;
  rma::GlobalAddress words;
  std::uint64_t place_bytes = 0;
  std::uint32_t failure = 0;       // a StatusCode; 0: none
  std::array<char, 300> reason{};  // of the failure
};

// An all-gather among the members: the records by rank.
using GatherRecords = std::function<runtime::Future<std::vector<MemberRecord>>(const MemberRecord&)>;

// Collective. `gather` is called twice by each member. Throws Error on all members if one fails: kUnsupported for a kind without steps,
// or if a device does not reach the memory of a peer; kInvalidArgument for a device that is not the PE's own one, sizes that
// differ, or more members than kMaxStepPeers. REQUIRES: a model has offered GlobalMemory.
runtime::Task<DeviceGroup> make_device_group(runtime::Runtime& runtime, GroupMember member,
                                             DeviceGroupOptions options, GatherRecords gather);

}  // namespace weft::queued
