// Collectives of device arrays among the elements of a collection, queued on streams:
//
//   weft::DeviceGroup group = co_await weft::device_group(*this, device);      // all elements
//   group.all_reduce(gradient, gradient, n, weft::memory::ElementType::kFloat32, weft::Reducer::kSum, stream);
//
// The element number i of the collection is the member of rank i. Elements are on PEs of one host whose devices reach one another, one
// or several on a PE. Each has a stream of its own, because a stream waits in an operation for those of all others.
//
// Threads: the PE's.
#pragma once

#include "weft/chare/chare.h"
#include "weft/memory/buffer.h"
#include "weft/queued/device_group.h"
#include "weft/runtime/future.h"

namespace weft::chare {

// Collective: all elements, at most 16, call it with the same options, and contribute to no reduction of the collection before the
// future is ready. `device`: the PE's own. The element does not move until the future is ready, and not later if its state has the
// group: a DeviceGroup cannot travel. If one element fails, all get its Error, see weft/queued/device_group.h.
runtime::Future<queued::DeviceGroup> device_group(ChareBase& self, memory::Place device,
                                                  const queued::DeviceGroupOptions& options = {});

}  // namespace weft::chare
