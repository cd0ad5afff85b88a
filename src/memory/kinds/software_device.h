// SoftwareDevice: launches kernels of a kind whose device code runs on the CPU of this process. Programs launch the
// kernels of other kinds by the means of those devices.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"

namespace weft::memory {

class SoftwareDevice {
 public:
  // Called at a poll. ok: done; pending: call again at the next poll; any other status: its failure.
  using Kernel = std::function<base::Status()>;

  // Queues a kernel behind the work on `stream` (null: the device's own stream). It reaches device memory
  // through device_view().
  virtual base::Status launch(StreamHandle stream, int device, Kernel kernel) = 0;
  // A graph as CUDA has it: between the two calls, what is queued on the stream is taken up and not done. launch_graph()
  // queues it, as often as wanted. A kernel in it is copied for each launch.
  using Graph = std::vector<Kernel>;
  virtual base::Status begin_capture(StreamHandle stream, int device) = 0;
  virtual base::Result<Graph> end_capture(StreamHandle stream, int device) = 0;
  virtual base::Status launch_graph(const Graph& graph, StreamHandle stream, int device) = 0;
  // Where a kernel finds [address, address + size_bytes). kInvalidArgument if that is not inside one
  // allocation.
  virtual base::Result<void*> device_view(const void* address, std::size_t size_bytes) = 0;
  // Makes the devices slow or faulty, for tests; the kind defines the text. kInvalidArgument for another
  // text.
  virtual base::Status inject_faults(std::string_view text) = 0;

 protected:
  ~SoftwareDevice() = default;
};

}  // namespace weft::memory
