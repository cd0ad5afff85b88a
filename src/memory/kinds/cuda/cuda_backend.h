// The backend of kind cuda: memory, streams and copies of NVIDIA GPUs, through the CUDA driver.
//
// Threads: the PE's thread.
//
// The backend uses the primary context of each device, as CuPy, PyTorch and the CUDA runtime do. It retains a
// context at the first use of the device, so a program that does not use the GPU has none: a context took
// 0.12 s and 523 MiB of an H200's memory (driver 580). Every call makes the right context current and restores
// the thread's own current context. If no context is current at the first use of a device, the context of that
// device stays current. UCX needs a current context to decide whether it can map a peer's memory: without one,
// UCX before 1.20.1 silently stages.
//
// Copies to and from host memory that is not page-locked block the CPU: see host_copy_is_async(). Allocating
// and freeing memory may wait for the device, as cuMemAlloc, cuMemHostAlloc and cuMemFree do.
//
// An allocation's generation is the driver's buffer id, which a process never reuses. Allocations of a
// stream-ordered pool have one too. Managed memory counts as memory of its device.
//
// Memory is shared with other processes by CUDA IPC, which exports whole allocations of cuMemAlloc.
//
// A step or a reduction is one launch of a kernel of Weft's own (step_kernels.h). The driver compiles the kernels at their first use
// on a device, or in prepare_steps() and prepare_reductions(). That is not allowed while a graph is being captured, and it may wait
// for the device.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "memory/kinds/cuda/cuda_driver.h"
#include "memory/kinds/cuda/step_kernels.h"
#include "memory/kinds/kind.h"

namespace weft::memory {

class CudaBackend final : public KindBackend {
 public:
  // The PEs of a host get the devices in `devices` in turn. Empty: all visible devices.
  explicit CudaBackend(std::unique_ptr<CudaDriver> driver, std::vector<int> devices = {});
  ~CudaBackend() override;
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;

  Kind kind() const override { return Kind::kCuda; }
  int num_devices() const override { return static_cast<int>(devices_.size()); }
  std::string device_name(int device) const override;
  int device_of(int local_rank) const override;
  bool can_access_peer(int device, int peer) const override;
  std::string_view peer_access_advice() const override { return "`nvidia-smi topo -p2p r` tells why"; }
  bool cpu_accessible() const override { return false; }

  base::Result<void*> allocate(std::size_t size_bytes, int device) override;
  base::Status deallocate(void* data) override;
  std::optional<Allocation> find_allocation(const void* address) override;
  void first_seen(const Allocation& allocation) override;
  bool is_current(const Allocation& allocation, const void* address) override;
  base::Result<std::vector<std::byte>> export_allocation(const void* address) override;
  base::Result<Buffer> import_allocation(std::span<const std::byte> exported, int device) override;
  base::Status release_import(void* data) override;

  base::Status with_current(int device, const std::function<void()>& body) override;
  base::Status make_current(int device) override;
  bool use_is_expected() const override;

  base::Result<StreamHandle> create_stream(int device) override;
  base::Status destroy_stream(StreamHandle stream) override;
  base::Status copy_async(void* destination, Place destination_place, const void* source, Place source_place,
                          std::size_t size_bytes, StreamHandle stream) override;
  base::Status copy_rows_async(StridedRows destination, StridedRows source, Place place,
                               std::size_t row_bytes, std::size_t count, StreamHandle stream) override;
  base::Result<void*> allocate_host(std::size_t size_bytes, int device) override;
  void deallocate_host(void* data) override;
  base::Status lock_host(void* data, std::size_t size_bytes, int device) override;
  void unlock_host(void* data) override;
  bool host_copy_is_async(const void* host_address, std::size_t size_bytes) override;

  base::Result<EventHandle> record(StreamHandle stream, int device) override {
    return record(stream, device, false);
  }
  base::Status query(EventHandle event) override;
  bool is_idle(StreamHandle stream, int device) override;
  base::Status stream_wait(StreamHandle stream, int device, EventHandle event) override;
  void release_event(EventHandle event) override;
  bool is_capturing(StreamHandle stream, int device) override;
  base::Status prepare_steps(int device) override;
  base::Status prepare_reductions(int device, ElementType type, Combination combination) override;
  // No call of the driver tells a kernel that waits from one that works.
  Activity activity() override { return any_context() == nullptr ? Activity::kIdle : Activity::kUnknown; }
  base::Status queue_step(const DeviceStep& step, Place place, StreamHandle stream) override;
  base::Status queue_steps(std::span<const DeviceStep> steps, Place place, StreamHandle stream) override;
  base::Status queue_messages(std::span<const MessageEnd> ends, Place place, StreamHandle stream) override;
  base::Status queue_reduction(const DeviceReduction& reduction, Place place, StreamHandle stream) override;
  bool abort_steps() override;
  StreamHandle default_stream() const override { return cuda::kLegacyStream; }
  base::Result<EventHandle> record_timed(StreamHandle stream, int device) override {
    return record(stream, device, true);
  }
  base::Status elapsed(EventHandle begin, EventHandle end, double& seconds) override;
  void abandon() override { is_abandoned_ = true; }

 private:
  struct Event {
    CudaEvent handle = nullptr;
    int device = 0;
    bool is_timed = false;
  };
  struct Kernels {
    CudaFunction step = nullptr;
    CudaFunction short_step = nullptr;  // of module 0, as the next
    CudaFunction short_steps = nullptr;
    CudaFunction few_messages = nullptr;
    CudaFunction messages = nullptr;
    CudaFunction reduction = nullptr;
  };
  struct Device {
    CudaDevice handle = 0;
    CudaContext context = nullptr;  // null until the device is first used
    CudaStream own_stream = nullptr;
    std::vector<Event*> free_events;
    std::vector<Event*> free_timed_events;
    std::vector<Event*>& free_list(bool is_timed) { return is_timed ? free_timed_events : free_events; }
    std::array<Kernels, kNumStepModules> kernels;  // null until they are loaded
    std::vector<int> peers;  // devices for which enable_peer() was called, with or without success
  };

  // Retains the device's context if this is its first use.
  base::Result<Device*> use(int device);
  // Makes the device's context current if the thread has no current context.
  base::Status make_current_if_none(const Device& device, int ordinal);
  // Lets copies on `device` address the memory of `peer`, if the hardware can.
  void enable_peer(int device, int peer);
  // The driver's stream; a null handle means a stream of the backend's own.
  base::Result<CudaStream> stream_of(StreamHandle stream, Device& device);
  base::Result<Event*> take_event(Device& device, int ordinal, bool is_timed);
  base::Result<EventHandle> record(StreamHandle stream, int device, bool is_timed);
  // The context of any device that is in use; null if none is.
  CudaContext any_context() const;
  base::Status call_failed(CudaResult result, const char* call, int device) const;
  bool is_page_locked(std::uintptr_t address) const;
  // --- Steps, in cuda_steps.cpp
  // The kernels of a module, which are loaded if they are not, except while a graph is being captured from `stream`. Peers' memory
  // can then be used by kernels on the device. REQUIRES: the device's context is current.
  base::Result<Kernels> kernels_of(std::size_t module, Device& device, int ordinal, StreamHandle stream);
  base::Status load_kernels(std::size_t module, Device& device, int ordinal);
  // use(), or kUnsupported if the driver has no calls for kernels.
  base::Result<Device*> use_for_steps(int ordinal);
  // Calls `launch` with the kernels and the driver's stream. A failure says that it was about `what`.
  template <class Launch>
  base::Status with_kernels(std::size_t module, int ordinal, StreamHandle stream, const char* what,
                            Launch launch);
  CudaResult launch_step(const Kernels& kernels, const DeviceStep& step, CudaStream stream);
  CudaResult launch_short_steps(const Kernels& kernels, std::span<const ShortStep> steps, unsigned threads,
                                CudaStream stream);
  CudaResult launch_messages(const Kernels& kernels, std::span<const MessageEnd> ends, CudaStream stream);
  CudaResult launch_reduction(const Kernels& kernels, const DeviceReduction& reduction, CudaStream stream);
  // Empty unless a step has broken its device's context.
  std::string why_a_step_failed() const;

  // Copies into it that the driver calls synchronous are over when their call returns. REQUIRES: its context is current.
  void make_copies_synchronous(CudaAddress address);

  std::unique_ptr<CudaDriver> driver_;
  std::vector<Device> devices_;
  std::vector<int> devices_of_pes_;  // empty: all devices, in turn
  std::vector<std::unique_ptr<Event>> events_;
  CudaContext made_current_ = nullptr;
  std::unordered_map<StreamHandle, int> stream_devices_;  // of the streams that create_stream() made
  std::unordered_map<void*, int> import_devices_;
  StepReport* report_ = nullptr;  // of the steps of all devices; null until kernels are loaded
  bool steps_are_aborted_ = false;
  bool has_steps_ = false;  // of Weft or of a program
  bool is_abandoned_ = false;
};

}  // namespace weft::memory
