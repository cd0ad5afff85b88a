// Device time in steps of load balancing. A PE reports its elements when devices are done with their work: a device may be far
// behind the host, and the time of what it has not done belongs to this step. Elements whose load the program has set need no
// time. Nothing blocks meanwhile; calls to the elements run as usual. The PE does not wait for device work that these calls add,
// because such a wait might never end.
//
// The spans of a PE are numbered in the order of their ends. The PE waits for the last one, and then looks again, because
// earlier ones may be on other streams.
#include <cstdint>

#include "weft/chare/chare.h"

#include "models/chare/elements/parts.h"
#include "models/chare/sync/local_sync.h"
#include "models/chare/sync/sync_points.h"

namespace weft::chare {

bool SyncPoints::waits_for_devices(Collection& collection) {
  LocalSync& here = local(collection);
  if (here.waits_for_devices) return true;
  if (here.device_mark == 0) here.device_mark = runtime().device_meter().num_spans;
  std::uint64_t last = 0;
  runtime::DeviceTime* time = nullptr;  // with that span
  for (const std::uint64_t index : here.unreported) {
    const ElementLoad& load = *collection.find(index)->load_;
    if (load.device == nullptr || load.sync.set_load_s) continue;
    load.device->settle();
    const std::uint64_t pending = load.device->last_pending(here.device_mark);
    if (pending <= last) continue;
    last = pending;
    time = load.device.get();
  }
  if (time == nullptr) {
    here.device_mark = 0;
    return false;
  }
  here.waits_for_devices = true;
  runtime().count_sent();  // for quiescence, as a message
  time->when_done(last, [this, id = collection.id()] {
    runtime().count_processed();
    Collection& reported = chares_.collection(id);
    if (runtime().stopped() || !reported.created_) return;  // destroyed
    local(reported).waits_for_devices = false;
    post_report(reported);
  });
  return true;
}

}  // namespace weft::chare
