#include "memory/kinds/cuda/cuda_backend.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "memory/kinds/cuda/cuda_runtime.h"

namespace weft::memory {

using base::Result;
using base::Status;
using base::StatusCode;

namespace {

CudaAddress to_cuda(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

CudaBackend::CudaBackend(std::unique_ptr<CudaDriver> driver, std::vector<int> devices)
    : driver_(std::move(driver)), devices_of_pes_(std::move(devices)) {
  driver_->explain = [this] { return why_a_step_failed(); };
  devices_.resize(static_cast<std::size_t>(driver_->num_devices()));
  // Other libraries allocate device memory without telling Weft, and it may have any address.
  widen_address_range(0, std::numeric_limits<std::uintptr_t>::max());
  // The driver maps all memory that it counts as device or managed memory.
  declare_in_own_mappings();
}

// Results are ignored: at the end of the process the driver may have shut down already. Every call then
// fails, and the driver has released everything itself.
CudaBackend::~CudaBackend() {
  if (is_abandoned_) return;
  CudaContext current = nullptr;
  if (made_current_ != nullptr && driver_->CtxGetCurrent(&current) == cuda::kSuccess &&
      current == made_current_) {
    driver_->CtxSetCurrent(nullptr);
  }
  abort_steps();
  if (report_ != nullptr) deallocate_host(report_);  // which waits for the steps
  for (Device& device : devices_) {
    if (device.context == nullptr) continue;
    {
      CudaContextScope scope(*driver_, device.context);
      for (const auto& [data, ordinal] : import_devices_) {
        if (&devices_[static_cast<std::size_t>(ordinal)] == &device)
          driver_->IpcCloseMemHandle(to_cuda(data));
      }
      for (const auto& event : events_) {
        if (&devices_[static_cast<std::size_t>(event->device)] == &device)
          driver_->EventDestroy(event->handle);
      }
      for (const auto& [stream, ordinal] : stream_devices_) {
        if (&devices_[static_cast<std::size_t>(ordinal)] == &device) {
          driver_->StreamDestroy(static_cast<CudaStream>(stream));
        }
      }
      if (device.own_stream != nullptr) driver_->StreamDestroy(device.own_stream);
    }
    driver_->DevicePrimaryCtxRelease(device.handle);
  }
}

std::string CudaBackend::device_name(int device) const {
  CudaDevice handle = 0;
  std::array<char, 128> name{};
  if (driver_->DeviceGet(&handle, device) != cuda::kSuccess ||
      driver_->DeviceGetName(name.data(), static_cast<int>(name.size()) - 1, handle) != cuda::kSuccess) {
    return "unknown CUDA device";
  }
  return name.data();
}

int CudaBackend::device_of(int local_rank) const {
  if (devices_of_pes_.empty()) return KindBackend::device_of(local_rank);
  return devices_of_pes_[static_cast<std::size_t>(local_rank) % devices_of_pes_.size()];
}

bool CudaBackend::can_access_peer(int device, int peer) const {
  if (device == peer) return true;
  CudaDevice from = 0;
  CudaDevice to = 0;
  int can = 0;
  return driver_->DeviceGet(&from, device) == cuda::kSuccess &&
         driver_->DeviceGet(&to, peer) == cuda::kSuccess &&
         driver_->DeviceCanAccessPeer(&can, from, to) == cuda::kSuccess && can != 0;
}

Status CudaBackend::call_failed(CudaResult result, const char* call, int device) const {
  return driver_->status(result, call, place_name({Kind::kCuda, static_cast<std::int16_t>(device)}));
}

Result<CudaBackend::Device*> CudaBackend::use(int ordinal) {
  if (ordinal < 0 || ordinal >= num_devices()) {
    return Status(StatusCode::kOutOfRange,
                  base::format("there is no cuda:{}: {} CUDA devices are visible", ordinal, num_devices()));
  }
  Device& device = devices_[static_cast<std::size_t>(ordinal)];
  if (device.context == nullptr) {
    CudaResult result = driver_->DeviceGet(&device.handle, ordinal);
    if (result != cuda::kSuccess) return call_failed(result, "cuDeviceGet", ordinal);
    result = driver_->DevicePrimaryCtxRetain(&device.context, device.handle);
    if (result != cuda::kSuccess) {
      device.context = nullptr;
      return call_failed(result, "cuDevicePrimaryCtxRetain", ordinal);
    }
    // Without a current context only other libraries choose another device; that is no failure of this call.
    static_cast<void>(make_current_if_none(device, ordinal));
  }
  return &device;
}

Status CudaBackend::make_current_if_none(const Device& device, int ordinal) {
  CudaContext current = nullptr;
  CudaResult result = driver_->CtxGetCurrent(&current);
  if (result != cuda::kSuccess) return call_failed(result, "cuCtxGetCurrent", ordinal);
  if (current != nullptr) return {};
  result = driver_->CtxSetCurrent(device.context);
  if (result != cuda::kSuccess) return call_failed(result, "cuCtxSetCurrent", ordinal);
  made_current_ = device.context;
  return {};
}

Status CudaBackend::make_current(int ordinal) {
  CudaContext current = nullptr;
  // Asked before use() makes a context, which would cost time and memory for nothing.
  if (driver_->CtxGetCurrent(&current) == cuda::kSuccess && current != nullptr) return {};
  Result<Device*> device = use(ordinal);
  return device.ok() ? make_current_if_none(**device, ordinal) : device.status();
}

bool CudaBackend::use_is_expected() const { return !devices_of_pes_.empty() || contains_cuda_runtime(); }

Result<void*> CudaBackend::allocate(std::size_t size_bytes, int ordinal) {
  if (size_bytes == 0) return static_cast<void*>(nullptr);
  Result<Device*> device = use(ordinal);
  if (!device.ok()) return device.status();
  CudaContextScope scope(*driver_, (*device)->context);
  CudaAddress address = 0;
  const CudaResult result =
      scope.result() == cuda::kSuccess ? driver_->MemAlloc(&address, size_bytes) : scope.result();
  if (result != cuda::kSuccess) {
    return driver_->status(result, "cuMemAlloc", base::format("{} bytes on cuda:{}", size_bytes, ordinal));
  }
  make_copies_synchronous(address);
  return reinterpret_cast<void*>(address);
}

Status CudaBackend::deallocate(void* data) {
  if (data == nullptr || is_abandoned_) return {};
  const std::optional<Allocation> allocation = find_allocation(data);
  if (!allocation.has_value() || allocation->base != reinterpret_cast<std::uintptr_t>(data)) {
    return Status(StatusCode::kInvalidArgument,
                  base::format("{} is not the start of a CUDA allocation, or it was freed before", data));
  }
  const int ordinal = allocation->place.device;
  Result<Device*> device = use(ordinal);
  if (!device.ok()) return device.status();
  notify_release(allocation->base);
  CudaContextScope scope(*driver_, (*device)->context);
  const CudaResult result =
      scope.result() == cuda::kSuccess ? driver_->MemFree(to_cuda(data)) : scope.result();
  return result == cuda::kSuccess ? Status() : call_failed(result, "cuMemFree", ordinal);
}

std::optional<Allocation> CudaBackend::find_allocation(const void* address) {
  unsigned memory_type = 0;
  std::uint64_t buffer_id = 0;
  unsigned is_managed = 0;
  int ordinal = -1;
  CudaAddress range_start = 0;
  std::size_t range_size_bytes = 0;
  std::array<int, 6> attributes = {cuda::kAttributeMemoryType, cuda::kAttributeBufferId,
                                   cuda::kAttributeIsManaged,  cuda::kAttributeDeviceOrdinal,
                                   cuda::kAttributeRangeStart, cuda::kAttributeRangeSize};
  std::array<void*, 6> values = {&memory_type, &buffer_id,   &is_managed,
                                 &ordinal,     &range_start, &range_size_bytes};
  // For host memory, cuPointerGetAttributes succeeds and leaves the memory type zero. cuPointerGetAttribute
  // fails.
  const CudaResult result = driver_->PointerGetAttributes(static_cast<unsigned>(attributes.size()),
                                                          attributes.data(), values.data(), to_cuda(address));
  if (result != cuda::kSuccess) return Allocation{};
  if (memory_type != cuda::kMemoryTypeDevice && is_managed == 0) {
    return memory_type == 0 ? std::nullopt : std::optional(Allocation{});
  }

  // Managed memory has no device while it is on the host; it counts as memory of device 0 then.
  const int device = ordinal >= 0 && ordinal < num_devices() ? ordinal : 0;
  Allocation allocation;
  allocation.place = {Kind::kCuda, static_cast<std::int16_t>(device)};
  if (range_size_bytes == 0) {
    allocation.base = reinterpret_cast<std::uintptr_t>(address);
    allocation.size_bytes = 1;
  } else {
    allocation.base = range_start;
    allocation.size_bytes = range_size_bytes;
    allocation.generation = buffer_id;
  }
  return allocation;
}

bool CudaBackend::is_current(const Allocation& allocation, const void* address) {
  std::uint64_t buffer_id = 0;
  const CudaResult result =
      driver_->PointerGetAttribute(&buffer_id, cuda::kAttributeBufferId, to_cuda(address));
  return result == cuda::kSuccess && buffer_id == allocation.generation;
}

// --- between processes

namespace {

// The exported form of an allocation. Its bytes are copied as they are, because all PEs run the same build.
struct Exported {
  CudaIpcHandle handle;
  std::uint64_t size_bytes = 0;
};

}  // namespace

Result<std::vector<std::byte>> CudaBackend::export_allocation(const void* address) {
  const std::optional<Allocation> allocation = find_allocation(address);
  if (!allocation.has_value() || allocation->generation == 0 ||
      import_devices_.contains(reinterpret_cast<void*>(allocation->base))) {
    return Status(
        StatusCode::kInvalidArgument,
        base::format("{} is no CUDA memory of this process: only its owner can export it", address));
  }
  const int ordinal = allocation->place.device;
  // Asked first, because cuIpcGetMemHandle takes 12 us to refuse, and PyTorch's expandable segments have a buffer
  // number for each of their parts.
  unsigned is_capable = 1;
  if (driver_->PointerGetAttribute(&is_capable, cuda::kAttributeIsIpcCapable, to_cuda(address)) ==
          cuda::kSuccess &&
      is_capable == 0) {
    return Status(StatusCode::kUnsupported,
                  base::format("{} on cuda:{} is memory that other processes cannot map: only cuMemAlloc and "
                               "cudaMalloc make memory that they can",
                               address, ordinal));
  }
  Result<Device*> device = use(ordinal);
  if (!device.ok()) return device.status();
  CudaContextScope scope(*driver_, (*device)->context);
  Exported exported{};
  exported.size_bytes = allocation->size_bytes;
  const CudaResult result = scope.result() == cuda::kSuccess
                                ? driver_->IpcGetMemHandle(&exported.handle, allocation->base)
                                : scope.result();
  if (result != cuda::kSuccess) {
    return driver_->status(result, "cuIpcGetMemHandle",
                           base::format("{} on cuda:{}, which other processes can map only if cuMemAlloc or "
                                        "cudaMalloc made it",
                                        address, ordinal));
  }
  const auto* begin = reinterpret_cast<const std::byte*>(&exported);
  return std::vector<std::byte>(begin, begin + sizeof exported);
}

Result<Buffer> CudaBackend::import_allocation(std::span<const std::byte> bytes, int ordinal) {
  Exported exported{};
  if (bytes.size() != sizeof exported) {
    return Status(
        StatusCode::kInvalidArgument,
        base::format("these bytes name no CUDA allocation: {} instead of {}", bytes.size(), sizeof exported));
  }
  std::memcpy(&exported, bytes.data(), sizeof exported);
  Result<Device*> device = use(ordinal);
  if (!device.ok()) return device.status();
  CudaContextScope scope(*driver_, (*device)->context);
  CudaAddress address = 0;
  const CudaResult result =
      scope.result() == cuda::kSuccess
          ? driver_->IpcOpenMemHandle(&address, exported.handle, cuda::kIpcLazyEnablePeerAccess)
          : scope.result();
  if (result != cuda::kSuccess) {
    return driver_->status(
        result, "cuIpcOpenMemHandle",
        base::format("{} bytes of another process on cuda:{}", exported.size_bytes, ordinal));
  }
  void* const data = reinterpret_cast<void*>(address);
  // The peer claims this size. It is checked against the mapped range, if the driver reports the range.
  const std::optional<Allocation> mapped = find_allocation(data);
  if (mapped.has_value() && mapped->generation != 0 && mapped->size_bytes < exported.size_bytes) {
    static_cast<void>(driver_->IpcCloseMemHandle(address));
    return Status(
        StatusCode::kInvalidArgument,
        base::format("another process says that its CUDA allocation has {} bytes, but it has {}: pass "
                     "what export_allocation() returned there",
                     exported.size_bytes, mapped->size_bytes));
  }
  import_devices_.emplace(data, ordinal);
  // Steps that use the import may be queued while a graph is being captured. What is missing then, queue_step() says.
  static_cast<void>(prepare_steps(ordinal));
  return Buffer{data, exported.size_bytes, {Kind::kCuda, static_cast<std::int16_t>(ordinal)}, nullptr};
}

Status CudaBackend::release_import(void* data) {
  if (is_abandoned_) return {};
  const auto found = import_devices_.find(data);
  if (found == import_devices_.end()) {
    return Status(
        StatusCode::kInvalidArgument,
        base::format("{} is not the start of imported CUDA memory, or it was released before", data));
  }
  const int ordinal = found->second;
  import_devices_.erase(found);
  notify_release(reinterpret_cast<std::uintptr_t>(data));
  CudaContextScope scope(*driver_, devices_[static_cast<std::size_t>(ordinal)].context);
  const CudaResult result = driver_->IpcCloseMemHandle(to_cuda(data));
  return result == cuda::kSuccess ? Status() : call_failed(result, "cuIpcCloseMemHandle", ordinal);
}

Result<StreamHandle> CudaBackend::create_stream(int ordinal) {
  Result<Device*> device = use(ordinal);
  if (!device.ok()) return device.status();
  CudaContextScope scope(*driver_, (*device)->context);
  CudaStream stream = nullptr;
  // Non-blocking: the stream does not synchronize with the legacy default stream, which other libraries use.
  const CudaResult result = scope.result() == cuda::kSuccess
                                ? driver_->StreamCreate(&stream, cuda::kStreamNonBlocking)
                                : scope.result();
  if (result != cuda::kSuccess) return call_failed(result, "cuStreamCreate", ordinal);
  stream_devices_.emplace(stream, ordinal);
  return static_cast<StreamHandle>(stream);
}

Status CudaBackend::destroy_stream(StreamHandle stream) {
  if (is_abandoned_) return {};
  const auto found = stream_devices_.find(stream);
  if (found == stream_devices_.end()) {
    return Status(StatusCode::kInvalidArgument,
                  base::format("{} is no stream made by Weft, or was destroyed", stream));
  }
  const int ordinal = found->second;
  stream_devices_.erase(found);
  CudaContextScope scope(*driver_, devices_[static_cast<std::size_t>(ordinal)].context);
  const CudaResult result = driver_->StreamDestroy(static_cast<CudaStream>(stream));
  return result == cuda::kSuccess ? Status() : call_failed(result, "cuStreamDestroy", ordinal);
}

Result<CudaStream> CudaBackend::stream_of(StreamHandle stream, Device& device) {
  if (stream != nullptr) return static_cast<CudaStream>(stream);
  if (device.own_stream == nullptr) {
    const CudaResult result = driver_->StreamCreate(&device.own_stream, cuda::kStreamNonBlocking);
    if (result != cuda::kSuccess) return driver_->status(result, "cuStreamCreate");
  }
  return device.own_stream;
}

// Without peer access, cuMemcpyPeerAsync copies through host memory: 36 instead of 390 GB/s between two
// H200.
void CudaBackend::enable_peer(int ordinal, int peer) {
  std::vector<int>& peers = devices_[static_cast<std::size_t>(ordinal)].peers;
  if (std::find(peers.begin(), peers.end(), peer) != peers.end()) return;
  peers.push_back(peer);
  if (!can_access_peer(ordinal, peer)) return;
  // The result is ignored: another library may have enabled the access already, and without it the copy is
  // slower but correct.
  static_cast<void>(driver_->CtxEnablePeerAccess(devices_[static_cast<std::size_t>(peer)].context, 0));
}

Status CudaBackend::with_current(int ordinal, const std::function<void()>& body) {
  Result<Device*> device = use(ordinal);
  if (!device.ok()) return device.status();
  CudaContextScope scope(*driver_, (*device)->context);
  if (scope.result() != cuda::kSuccess) return call_failed(scope.result(), "cuCtxSetCurrent", ordinal);
  body();
  return {};
}

Status CudaBackend::copy_async(void* destination, Place destination_place, const void* source,
                               Place source_place, std::size_t size_bytes, StreamHandle stream) {
  if (size_bytes == 0) return {};
  const Place place = source_place.is_host() ? destination_place : source_place;
  Result<Device*> device = use(place.device);
  if (!device.ok()) return device.status();
  const bool between_devices = !source_place.is_host() && !destination_place.is_host() &&
                               source_place.device != destination_place.device;
  Result<Device*> peer = between_devices ? use(destination_place.device) : device;
  if (!peer.ok()) return peer.status();

  CudaContextScope scope(*driver_, (*device)->context);
  Result<CudaStream> queue = stream_of(stream, **device);
  if (!queue.ok()) return queue.status();
  if (between_devices) enable_peer(source_place.device, destination_place.device);
  const CudaResult result =
      between_devices ? driver_->MemcpyPeerAsync(to_cuda(destination), (*peer)->context, to_cuda(source),
                                                 (*device)->context, size_bytes, *queue)
                      : driver_->MemcpyAsync(to_cuda(destination), to_cuda(source), size_bytes, *queue);
  if (result == cuda::kSuccess) return {};
  return driver_->status(result, between_devices ? "cuMemcpyPeerAsync" : "cuMemcpyAsync",
                         base::format("{} bytes from {} on {} to {} on {}", size_bytes, source,
                                      place_name(source_place), destination, place_name(destination_place)));
}

namespace {

bool is_pitch(std::ptrdiff_t stride, std::size_t row_bytes) {
  return stride >= 0 && static_cast<std::size_t>(stride) >= row_bytes &&
         static_cast<std::size_t>(stride) <= cuda::kMaxPitchBytes;
}

}  // namespace

// One call for all rows. The driver does not promise that it takes every pitch: rows that it refuses are copied one by one.
Status CudaBackend::copy_rows_async(StridedRows destination, StridedRows source, Place place,
                                    std::size_t row_bytes, std::size_t count, StreamHandle stream) {
  if (count < 2 || !is_pitch(destination.stride, row_bytes) || !is_pitch(source.stride, row_bytes))
    return KindBackend::copy_rows_async(destination, source, place, row_bytes, count, stream);
  Result<Device*> device = use(place.device);
  if (!device.ok()) return device.status();
  CudaCopy2D copy;
  copy.source = to_cuda(source.data);
  copy.source_pitch = static_cast<std::size_t>(source.stride);
  copy.destination = to_cuda(destination.data);
  copy.destination_pitch = static_cast<std::size_t>(destination.stride);
  copy.row_bytes = row_bytes;
  copy.rows = count;
  CudaResult result = cuda::kSuccess;
  {
    CudaContextScope scope(*driver_, (*device)->context);
    Result<CudaStream> queue = stream_of(stream, **device);
    if (!queue.ok()) return queue.status();
    result = driver_->Memcpy2DAsync(&copy, *queue);
  }
  if (result == cuda::kInvalidValue)
    return KindBackend::copy_rows_async(destination, source, place, row_bytes, count, stream);
  if (result == cuda::kSuccess) return {};
  return driver_->status(result, "cuMemcpy2DAsync",
                         base::format("{} rows of {} bytes from {} to {} on {}", count, row_bytes,
                                      static_cast<const void*>(source.data),
                                      static_cast<const void*>(destination.data), place_name(place)));
}

Result<void*> CudaBackend::allocate_host(std::size_t size_bytes, int ordinal) {
  Result<Device*> device = use(ordinal);
  if (!device.ok()) return device.status();
  CudaContextScope scope(*driver_, (*device)->context);
  void* data = nullptr;
  const CudaResult result = scope.result() == cuda::kSuccess
                                ? driver_->MemHostAlloc(&data, size_bytes, cuda::kHostAllocPortable)
                                : scope.result();
  if (result != cuda::kSuccess) {
    return driver_->status(result, "cuMemHostAlloc",
                           base::format("{} bytes of page-locked memory (see ulimit -l)", size_bytes));
  }
  return data;
}

CudaContext CudaBackend::any_context() const {
  const auto found =
      std::ranges::find_if(devices_, [](const Device& device) { return device.context != nullptr; });
  return found == devices_.end() ? nullptr : found->context;
}

void CudaBackend::deallocate_host(void* data) {
  const CudaContext context = any_context();
  if (is_abandoned_ || context == nullptr) return;
  CudaContextScope scope(*driver_, context);
  driver_->MemFreeHost(data);
}

Status CudaBackend::lock_host(void* data, std::size_t size_bytes, int ordinal) {
  Result<Device*> device = use(ordinal);
  if (!device.ok()) return device.status();
  CudaContextScope scope(*driver_, (*device)->context);
  const CudaResult result = scope.result() == cuda::kSuccess
                                ? driver_->MemHostRegister(data, size_bytes, cuda::kHostRegisterPortable)
                                : scope.result();
  if (result == cuda::kSuccess) return {};
  return driver_->status(result, "cuMemHostRegister",
                         base::format("{} bytes at {} (see ulimit -l)", size_bytes, data));
}

void CudaBackend::unlock_host(void* data) {
  const CudaContext context = any_context();
  if (is_abandoned_ || context == nullptr) return;
  CudaContextScope scope(*driver_, context);
  driver_->MemHostUnregister(data);
}

bool CudaBackend::is_page_locked(std::uintptr_t address) const {
  unsigned memory_type = 0;
  return driver_->PointerGetAttribute(&memory_type, cuda::kAttributeMemoryType, address) == cuda::kSuccess &&
         memory_type == cuda::kMemoryTypeHost;
}

bool CudaBackend::host_copy_is_async(const void* host_address, std::size_t size_bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(host_address);
  return is_page_locked(first) && (size_bytes <= 1 || is_page_locked(first + size_bytes - 1));
}

}  // namespace weft::memory
