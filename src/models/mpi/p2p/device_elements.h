// Elements with gaps in device memory. The device copies their runs to and from a dense block of its own memory, which is sent or
// received. So the bytes between the runs are neither read nor written, and no byte passes through the host.
//
// Threads: the PE's.
#pragma once

#include <cstddef>

#include "weft/base/status.h"
#include "weft/runtime/attachment.h"
#include "weft/runtime/messenger.h"

#include "models/mpi/p2p/data_view.h"
#include "models/mpi/p2p/device_streams.h"

namespace weft::mpi {

class DeviceElements {
 public:
  explicit DeviceElements(runtime::Messenger& messenger)
      : messenger_(messenger), streams_(messenger.memory()) {}

  // Memory for packed bytes on the device of the view.
  base::Result<runtime::Attachment> allocate(std::size_t size_bytes, const DataView& view);
  // A block with the packed bytes of the view, after the work on the block's stream. That work comes after the work queued on the
  // view's stream. REQUIRES: the elements stay as they are until the block has been sent.
  base::Result<runtime::Attachment> pack(const DataView& view);
  // Copies the leading `size_bytes` of the packed form from `packed`, memory of the same device, to the elements, after the work
  // queued on the view's stream. The copies are done when the work that is queued on the lease's stream now is done.
  // REQUIRES: `packed` stays valid until then.
  base::Result<DeviceStreams::Lease> unpack(const DataView& view, const std::byte* packed,
                                            std::size_t size_bytes);

 private:
  enum class Direction { kPack, kUnpack };
  base::Status copy_runs(Direction direction, const DataView& view, std::byte* packed, std::size_t size_bytes,
                         memory::StreamHandle stream);

  runtime::Messenger& messenger_;
  DeviceStreams streams_;
};

}  // namespace weft::mpi
