// Says which work on a device stream is a chare's, for load balancing by device time:
//
//   void Block::iterate() {
//     weft::DeviceWork work(*this, stream_);
//     launch_kernels(..., stream_.handle());
//   }                                          // the end of the work
//
// The device measures the time between both ends, see runtime/metering/device_time.h; nothing waits for it. What else is queued on the
// stream between them counts too. Objects of one chare and one stream may overlap, and then count once. An object may live
// across co_await. It does nothing if the chare's class takes no part in load balancing.
//
// device_group() makes collectives of device arrays among the elements of a collection.
//
// Threads: the PE's.
#pragma once

#include "weft/chare/chare.h"
#include "weft/memory/buffer.h"
#include "weft/queued/device_group.h"
#include "weft/runtime/device/device.h"
#include "weft/runtime/future.h"

namespace weft::chare {

class DeviceWork {
 public:
  // REQUIRES: the stream outlives this object.
  DeviceWork(ChareBase& chare, const runtime::Stream& stream)
      : DeviceWork(chare, stream.place(), stream.handle()) {}
  // A stream of the program's own. Null: the stream of programs that name none; of cuda, the legacy default stream.
  DeviceWork(ChareBase& chare, memory::Place place, memory::StreamHandle stream)
      : place_(place), stream_(stream) {
    runtime::Runtime& runtime = chare.runtime();
    if (chare.load() != nullptr && chare.collection().is_balanced()) {
      load_ = chare.load();
      load_->acquire();
      time_ = &load_->device_time(runtime);
    } else if (runtime.observer() != nullptr) {
      time_ = &runtime.device_meter().of_others(runtime);
    } else {
      return;
    }
    time_->begin(place_, stream_);
  }
  ~DeviceWork() {
    if (time_ != nullptr) time_->end(place_, stream_);
    if (load_ != nullptr) load_->release();
  }
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;

 private:
  runtime::DeviceTime* time_ = nullptr;
  ElementLoad* load_ = nullptr;  // a coroutine with this object may outlive the element on its PE
  memory::Place place_;
  memory::StreamHandle stream_;
};

// Collectives of device arrays among the elements of a collection, queued on streams:
//
//   weft::DeviceGroup group = co_await weft::device_group(*this, device);      // all elements
//   group.all_reduce(gradient, gradient, n, weft::memory::ElementType::kFloat32, weft::Reducer::kSum, stream);
//
// The element number i of the collection is the member of rank i. Elements are on PEs of one host whose devices reach one another, one
// or several on a PE. Each has a stream of its own, because a stream waits in an operation for those of all others.
//
// Collective: all elements, at most 16, call it with the same options, and contribute to no reduction of the collection before the
// future is ready. `device`: the PE's own. The element does not move until the future is ready, and not later if its state has the
// group: a DeviceGroup cannot travel. If one element fails, all get its Error, see weft/queued/device_group.h.
runtime::Future<queued::DeviceGroup> device_group(ChareBase& self, memory::Place device,
                                                  const queued::DeviceGroupOptions& options = {});

}  // namespace weft::chare
