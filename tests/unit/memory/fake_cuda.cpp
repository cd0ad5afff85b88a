#include "tests/unit/memory/fake_cuda.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kInvalidContext = 201;
constexpr int kInvalidHandle = 400;
constexpr int kNotReady = 600;
constexpr int kIllegalAddress = 700;
constexpr int kCaptureUnsupported = 900;

std::unique_ptr<FakeCuda> g_fake;
thread_local CudaContextTag* t_current = nullptr;

std::size_t mapped_size(std::size_t size_bytes) { return (size_bytes + 4095) / 4096 * 4096; }

// The device's legacy and per-thread default streams, as one.
CudaStreamTag* resolve(CudaStreamTag* stream) {
  if (reinterpret_cast<std::uintptr_t>(stream) > 2) return stream;
  const int device = t_current == nullptr ? 0 : t_current->device;
  const auto [own, is_new] = fake_cuda()->default_streams.try_emplace(device);
  own->second.device = device;
  if (is_new) fake_cuda()->streams.push_back(&own->second);
  return &own->second;
}

// FAKE_CUDA_FAIL, for whole jobs: the function of this name always fails, as if out of memory.
bool always_fails(const char* name) {
  const char* const failing = std::getenv("FAKE_CUDA_FAIL");
  return failing != nullptr && std::strcmp(failing, name) == 0;
}

int enter(const char* name) {
  FakeCuda& fake = *fake_cuda();
  ++fake.calls[name];
  if (always_fails(name)) return kOutOfMemory;
  const auto found = fake.fail_next.find(name);
  if (found == fake.fail_next.end()) return 0;
  const int result = found->second;
  fake.fail_next.erase(found);
  return result;
}

int enter_context(const char* name, int device = -1) {
  const int result = enter(name);
  if (result != 0) return result;
  if (t_current != nullptr && t_current->retained > 0 && (device < 0 || t_current->device == device))
    return 0;
  ++fake_cuda()->wrong_context_calls;
  return kInvalidContext;
}

void step_streams() {
  for (CudaStreamTag* stream : fake_cuda()->streams) {
    if (!stream->queue.empty() && stream->queue.front()()) stream->queue.pop_front();
  }
}

int check_range(std::uintptr_t address, std::size_t size_bytes, bool* page_locked_or_device) {
  std::uintptr_t base = 0;
  const FakeCuda::Block* block = fake_cuda()->find(address, &base);
  *page_locked_or_device = block != nullptr;
  return block != nullptr && address + size_bytes > base + block->size_bytes ? kInvalidValue : 0;
}

int queue_copy(std::uintptr_t destination, std::uintptr_t source, std::size_t size_bytes,
               CudaStreamTag* stream) {
  bool known_destination = false;
  bool known_source = false;
  if (check_range(destination, size_bytes, &known_destination) != 0) return kInvalidValue;
  if (check_range(source, size_bytes, &known_source) != 0) return kInvalidValue;
  if (!known_destination || !known_source) ++fake_cuda()->blocking_copies;
  stream->queue.emplace_back([=] {
    std::memcpy(reinterpret_cast<void*>(destination), reinterpret_cast<void*>(source), size_bytes);
    ++fake_cuda()->now_ms;
    return true;
  });
  return 0;
}

// An aligned word of device memory; null if there is none.
std::uint32_t* word_at(std::uintptr_t address) {
  bool is_known = false;
  if (address % sizeof(std::uint32_t) != 0 || check_range(address, sizeof(std::uint32_t), &is_known) != 0 ||
      !is_known) {
    return nullptr;
  }
  return reinterpret_cast<std::uint32_t*>(address);
}

// Moves a block to a file that other processes may open; its address stays.
bool move_to_file(std::uintptr_t base, FakeCuda::Block& block) {
  if (block.file >= 0) return true;
  const std::size_t size_bytes = mapped_size(block.size_bytes);
  void* const address = reinterpret_cast<void*>(base);
  block.file = ::memfd_create("fake-cuda", MFD_CLOEXEC);
  return block.file >= 0 &&
         ::pwrite(block.file, address, size_bytes, 0) == static_cast<ssize_t>(size_bytes) &&
         ::mmap(address, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, block.file, 0) ==
             address;
}

// Maps what another process exported; MAP_FAILED when it has freed it.
void* map_foreign(const FakeIpcHandle& handle) {
  const std::string path = "/proc/" + std::to_string(handle.pid) + "/fd/" + std::to_string(handle.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat found{};
  void* mapped = MAP_FAILED;
  if (file >= 0 && ::fstat(file, &found) == 0 && found.st_ino == handle.inode) {
    mapped = ::mmap(nullptr, mapped_size(handle.size_bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (file >= 0) ::close(file);
  return mapped;
}

// Whether other processes can map it.
bool is_shareable(const FakeCuda::Block& block) {
  return block.memory_type == 2 && !block.managed && !block.imported;
}

}  // namespace

std::uintptr_t FakeCuda::add_block(std::size_t size_bytes, int device, unsigned memory_type, bool managed) {
  const int fixed = next_address == nullptr ? 0 : MAP_FIXED_NOREPLACE;
  void* const address = ::mmap(next_address, mapped_size(size_bytes), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS | fixed, -1, 0);
  next_address = nullptr;
  if (address == MAP_FAILED) return 0;
  const auto base = reinterpret_cast<std::uintptr_t>(address);
  blocks[base] = Block{size_bytes, device, next_buffer_id++, memory_type, managed, true, false, -1};
  return base;
}

void FakeCuda::remove_block(std::uintptr_t base) {
  const auto found = blocks.find(base);
  if (found == blocks.end()) std::abort();
  ::munmap(reinterpret_cast<void*>(base), mapped_size(found->second.size_bytes));
  if (found->second.file >= 0) ::close(found->second.file);
  blocks.erase(found);
}

FakeCuda::Block* FakeCuda::find(std::uintptr_t address, std::uintptr_t* base) {
  auto next = blocks.upper_bound(address);
  if (next == blocks.begin()) return nullptr;
  --next;
  if (address - next->first >= next->second.size_bytes) return nullptr;
  if (base != nullptr) *base = next->first;
  return &next->second;
}

extern "C" {

FakeCuda* fake_cuda() {
  if (g_fake == nullptr) fake_cuda_reset();
  return g_fake.get();
}

void fake_cuda_reset() {
  g_fake = std::make_unique<FakeCuda>();
  t_current = nullptr;
}

int cuInit(unsigned) { return enter("cuInit"); }

int cuDeviceGetCount(int* count) {
  *count = fake_cuda()->num_devices;
  return enter("cuDeviceGetCount");
}

int cuDeviceGet(int* device, int ordinal) {
  if (ordinal < 0 || ordinal >= fake_cuda()->num_devices) return 101;
  *device = ordinal;
  return enter("cuDeviceGet");
}

int cuDeviceGetName(char* name, int size_bytes, int) {
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(size_bytes));
  return enter("cuDeviceGetName");
}

int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  // Like the driver, which says that a device is no peer of itself. The variable is for whole jobs.
  const bool reaches =
      std::getenv("FAKE_CUDA_NO_PEERS") == nullptr && !fake_cuda()->unreachable.contains({device, peer});
  *can = device != peer && reaches ? 1 : 0;
  return enter("cuDeviceCanAccessPeer");
}

int cuGetErrorName(int error, const char** name) {
  if (error == kOutOfMemory) return *name = "CUDA_ERROR_OUT_OF_MEMORY", 0;
  if (error == 700) return *name = "CUDA_ERROR_ILLEGAL_ADDRESS", 0;
  return kInvalidValue;
}

int cuGetErrorString(int error, const char** text) {
  if (error == kOutOfMemory) return *text = "out of memory", 0;
  if (error == 700) return *text = "an illegal memory access was encountered", 0;
  return kInvalidValue;
}

int cuDevicePrimaryCtxRetain(CudaContextTag** context, int device) {
  const int result = enter("cuDevicePrimaryCtxRetain");
  if (result != 0) return result;
  auto& contexts = fake_cuda()->contexts;
  while (static_cast<int>(contexts.size()) <= device) {
    contexts.push_back(std::make_unique<CudaContextTag>());
    contexts.back()->device = static_cast<int>(contexts.size()) - 1;
  }
  *context = contexts[static_cast<std::size_t>(device)].get();
  ++(*context)->retained;
  return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  --fake_cuda()->contexts[static_cast<std::size_t>(device)]->retained;
  return enter("cuDevicePrimaryCtxRelease");
}

int cuCtxGetCurrent(CudaContextTag** context) {
  *context = t_current;
  return enter("cuCtxGetCurrent");
}

int cuCtxSetCurrent(CudaContextTag* context) {
  const int result = enter("cuCtxSetCurrent");
  if (result == 0) t_current = context;
  return result;
}

int cuCtxEnablePeerAccess(CudaContextTag*, unsigned) { return enter_context("cuCtxEnablePeerAccess"); }

int cuMemAlloc_v2(unsigned long long* address, std::size_t size_bytes) {
  const int result = enter_context("cuMemAlloc");
  if (result != 0) return result;
  *address = fake_cuda()->add_block(size_bytes, t_current->device);
  return *address == 0 ? kOutOfMemory : 0;
}

int cuMemFree_v2(unsigned long long address) {
  const FakeCuda::Block* block = fake_cuda()->find(address);
  const int result = enter_context("cuMemFree", block == nullptr ? -1 : block->device);
  if (result != 0) return result;
  if (fake_cuda()->blocks.count(address) == 0) return kInvalidValue;
  fake_cuda()->remove_block(address);
  return 0;
}

// UCX's hook of cuMemFree asks for it, from inside the free: it is no call of Weft's and counts as none.
int cuMemGetAddressRange_v2(unsigned long long* base, std::size_t* size_bytes, unsigned long long address) {
  std::uintptr_t begin = 0;
  const FakeCuda::Block* block = fake_cuda()->find(address, &begin);
  if (block == nullptr) return kInvalidValue;
  if (base != nullptr) *base = begin;
  if (size_bytes != nullptr) *size_bytes = block->size_bytes;
  return 0;
}

int cuMemHostAlloc(void** address, std::size_t size_bytes, unsigned) {
  const int result = enter_context("cuMemHostAlloc");
  if (result != 0) return result;
  *address = reinterpret_cast<void*>(fake_cuda()->add_block(size_bytes, t_current->device, 1));
  return *address == nullptr ? kOutOfMemory : 0;
}

int cuMemFreeHost(void* address) {
  const int result = enter_context("cuMemFreeHost");
  if (result != 0) return result;
  fake_cuda()->remove_block(reinterpret_cast<std::uintptr_t>(address));
  return 0;
}

int cuMemHostRegister_v2(void* address, std::size_t size_bytes, unsigned) {
  const int result = enter_context("cuMemHostRegister");
  if (result != 0) return result;
  const auto base = reinterpret_cast<std::uintptr_t>(address);
  if (fake_cuda()->find(base) != nullptr) return kInvalidValue;
  FakeCuda::Block block;
  block.size_bytes = size_bytes;
  block.device = t_current->device;
  block.buffer_id = fake_cuda()->next_buffer_id++;
  block.memory_type = 1;
  fake_cuda()->blocks[base] = block;
  return 0;
}

int cuMemHostUnregister(void* address) {
  const int result = enter_context("cuMemHostUnregister");
  if (result != 0) return result;
  return fake_cuda()->blocks.erase(reinterpret_cast<std::uintptr_t>(address)) == 1 ? 0 : kInvalidValue;
}

int cuMemcpyAsync(unsigned long long destination, unsigned long long source, std::size_t size_bytes,
                  CudaStreamTag* stream) {
  stream = resolve(stream);
  const int result = enter_context("cuMemcpyAsync", stream->device);
  return result != 0 ? result : queue_copy(destination, source, size_bytes, stream);
}

int cuMemcpy2DAsync_v2(const FakeCopy2D* copy, CudaStreamTag* stream) {
  stream = resolve(stream);
  const int result = enter_context("cuMemcpy2DAsync", stream->device);
  if (result != 0) return result;
  for (const FakeCopySide& side : {copy->from, copy->to})
    if (side.type != 2 || side.x != 0 || side.y != 0 || side.pitch < copy->row_bytes) return kInvalidValue;
  for (std::size_t row = 0; row < copy->rows; ++row) {
    const int queued = queue_copy(copy->to.address + row * copy->to.pitch,
                                  copy->from.address + row * copy->from.pitch, copy->row_bytes, stream);
    if (queued != 0) return queued;
  }
  return 0;
}

int cuMemcpyPeerAsync(unsigned long long destination, CudaContextTag* destination_context,
                      unsigned long long source, CudaContextTag* source_context, std::size_t size_bytes,
                      CudaStreamTag* stream) {
  stream = resolve(stream);
  const int result = enter_context("cuMemcpyPeerAsync", stream->device);
  if (result != 0) return result;
  const FakeCuda::Block* to = fake_cuda()->find(destination);
  const FakeCuda::Block* from = fake_cuda()->find(source);
  if (to == nullptr || to->device != destination_context->device) return kInvalidContext;
  if (from == nullptr || from->device != source_context->device) return kInvalidContext;
  ++fake_cuda()->peer_copies;
  return queue_copy(destination, source, size_bytes, stream);
}

int cuPointerGetAttribute(void* data, int attribute, unsigned long long address) {
  const int result = enter("cuPointerGetAttribute");
  if (result != 0) return result;
  const FakeCuda::Block* block = fake_cuda()->find(address);
  if (block == nullptr) return kInvalidValue;
  if (attribute == 2) *static_cast<unsigned*>(data) = block->memory_type;
  if (attribute == 7) *static_cast<std::uint64_t*>(data) = block->buffer_id;
  if (attribute == 10) *static_cast<bool*>(data) = is_shareable(*block);
  return 0;
}

int cuPointerSetAttribute(const void* value, int attribute, unsigned long long address) {
  const int result = enter_context("cuPointerSetAttribute");
  if (result != 0) return result;
  FakeCuda::Block* block = fake_cuda()->find(address);
  if (block == nullptr || attribute != 6) return kInvalidValue;
  block->copies_are_synchronous = *static_cast<const unsigned*>(value) != 0;
  return 0;
}

int cuPointerGetAttributes(unsigned count, int* attributes, void** data, unsigned long long address) {
  const int result = enter("cuPointerGetAttributes");
  if (result != 0) return result;
  std::uintptr_t base = 0;
  const FakeCuda::Block none{0, -2, 0, 0, false, false, false, -1};
  const FakeCuda::Block* found = fake_cuda()->find(address, &base);
  const FakeCuda::Block& block = found == nullptr ? none : *found;
  for (unsigned i = 0; i < count; ++i) {
    if (attributes[i] == 2) *static_cast<unsigned*>(data[i]) = block.memory_type;
    if (attributes[i] == 7) *static_cast<std::uint64_t*>(data[i]) = block.buffer_id;
    if (attributes[i] == 8) *static_cast<bool*>(data[i]) = block.managed;
    if (attributes[i] == 9) *static_cast<int*>(data[i]) = block.device;
    if (attributes[i] == 11) *static_cast<unsigned long long*>(data[i]) = base;
    if (attributes[i] == 12) *static_cast<std::size_t*>(data[i]) = block.size_bytes;
  }
  return 0;
}

int cuIpcGetMemHandle(FakeIpcHandle* handle, unsigned long long address) {
  const int result = enter_context("cuIpcGetMemHandle");
  if (result != 0) return result;
  std::uintptr_t base = 0;
  FakeCuda::Block* block = fake_cuda()->find(address, &base);
  if (block == nullptr || !is_shareable(*block)) return kInvalidValue;
  struct stat own{};
  if (!move_to_file(base, *block) || ::fstat(block->file, &own) != 0) return kOutOfMemory;
  *handle = {base, block->buffer_id, block->size_bytes, own.st_ino, ::getpid(), block->file, {}};
  return 0;
}

// The same memory at another address, from another process or as if.
int cuIpcOpenMemHandle_v2(unsigned long long* address, FakeIpcHandle handle, unsigned flags) {
  const int result = enter_context("cuIpcOpenMemHandle");
  if (result != 0) return result;
  const FakeCuda::Block* block = fake_cuda()->find(handle.base);
  const bool is_own = handle.pid == ::getpid();
  if (flags != 1 || (is_own && (block == nullptr || block->buffer_id != handle.buffer_id)))
    return kInvalidValue;
  void* const mapped = map_foreign(handle);
  if (mapped == MAP_FAILED) return kInvalidValue;
  *address = reinterpret_cast<std::uintptr_t>(mapped);
  fake_cuda()->blocks[*address] = FakeCuda::Block{
      handle.size_bytes, t_current->device, fake_cuda()->next_buffer_id++, 2, false, true, true, -1};
  return 0;
}

int cuIpcCloseMemHandle(unsigned long long address) {
  const int result = enter_context("cuIpcCloseMemHandle");
  if (result != 0) return result;
  const auto found = fake_cuda()->blocks.find(address);
  if (found == fake_cuda()->blocks.end() || !found->second.imported) return kInvalidValue;
  fake_cuda()->remove_block(address);
  return 0;
}

int cuStreamCreate(CudaStreamTag** stream, unsigned) {
  const int result = enter_context("cuStreamCreate");
  if (result != 0) return result;
  *stream = new CudaStreamTag;
  (*stream)->device = t_current->device;
  fake_cuda()->streams.push_back(*stream);
  return 0;
}

int cuStreamDestroy_v2(CudaStreamTag* stream) {
  const int result = enter_context("cuStreamDestroy");
  if (result != 0) return result;
  if (std::erase(fake_cuda()->streams, stream) == 0) return kInvalidHandle;
  while (!stream->queue.empty() && stream->queue.front()()) stream->queue.pop_front();
  delete stream;
  return 0;
}

int cuStreamGetCtx(CudaStreamTag* stream, CudaContextTag** context) {
  stream = resolve(stream);
  const int result = enter("cuStreamGetCtx");
  if (result != 0) return result;
  *context = fake_cuda()->contexts[static_cast<std::size_t>(stream->device)].get();
  return 0;
}

int cuStreamQuery(CudaStreamTag* stream) {
  stream = resolve(stream);
  const int result = enter_context("cuStreamQuery", stream->device);
  if (result != 0) return result;
  if (stream->is_captured) return kCaptureUnsupported;
  if (fake_cuda()->broken != 0) return fake_cuda()->broken;
  const auto found = fake_cuda()->default_streams.find(stream->device);
  const bool is_default = found != fake_cuda()->default_streams.end() && &found->second == stream;
  if (is_default && fake_cuda()->busy_queries > 0) return --fake_cuda()->busy_queries, kNotReady;
  return stream->queue.empty() ? 0 : kNotReady;
}

int cuStreamIsCapturing(CudaStreamTag* stream, int* status) {
  stream = resolve(stream);
  const int result = enter_context("cuStreamIsCapturing", stream->device);
  *status = stream->is_captured ? 1 : 0;
  return result;
}

int cuStreamWaitEvent(CudaStreamTag* stream, CudaEventTag* event, unsigned) {
  stream = resolve(stream);
  const int result = enter_context("cuStreamWaitEvent", stream->device);
  if (result != 0) return result;
  // What was recorded at the time of this call counts, whatever the event is used for later.
  stream->queue.emplace_back([recorded = event->recorded] { return recorded->done; });
  return 0;
}

int cuStreamWaitValue32_v2(CudaStreamTag* stream, unsigned long long address, std::uint32_t value,
                           unsigned flags) {
  stream = resolve(stream);
  const int result = enter_context("cuStreamWaitValue32", stream->device);
  if (result != 0) return result;
  if (flags != 0 || word_at(address) == nullptr) return kInvalidValue;
  stream->queue.emplace_back([=] {
    std::uint32_t* const word = word_at(address);
    if (word == nullptr) return fake_cuda()->broken = kIllegalAddress, true;
    return static_cast<std::int32_t>(std::atomic_ref(*word).load() - value) >= 0;
  });
  return 0;
}

int cuStreamWriteValue32_v2(CudaStreamTag* stream, unsigned long long address, std::uint32_t value,
                            unsigned flags) {
  stream = resolve(stream);
  const int result = enter_context("cuStreamWriteValue32", stream->device);
  if (result != 0) return result;
  if (flags != 0 || word_at(address) == nullptr) return kInvalidValue;
  stream->queue.emplace_back([=] {
    std::uint32_t* const word = word_at(address);
    if (word == nullptr) return fake_cuda()->broken = kIllegalAddress, true;
    std::atomic_ref(*word).store(value);
    return true;
  });
  return 0;
}

// For programs in other languages.
int fake_cuda_calls(const char* name) { return fake_cuda()->calls[name]; }
void fake_cuda_capture(CudaStreamTag* stream, int is_captured) { stream->is_captured = is_captured != 0; }

int cuEventCreate(CudaEventTag** event, unsigned flags) {
  const int result = enter_context("cuEventCreate");
  if (result != 0) return result;
  if (flags != 2 && flags != 0) return kInvalidValue;
  *event = new CudaEventTag;
  (*event)->is_timed = flags == 0;
  (*event)->device = t_current->device;
  fake_cuda()->events.insert(*event);
  return 0;
}

int cuEventDestroy_v2(CudaEventTag* event) {
  const int result = enter_context("cuEventDestroy", event->device);
  if (result != 0) return result;
  fake_cuda()->events.erase(event);
  delete event;
  return 0;
}

int cuEventRecord(CudaEventTag* event, CudaStreamTag* stream) {
  stream = resolve(stream);
  const int result = enter_context("cuEventRecord", event->device);
  if (result != 0) return result;
  if (stream->device != event->device) return kInvalidHandle;
  if (stream->is_captured) return kCaptureUnsupported;
  event->recorded = std::make_shared<FakeEventState>();
  event->recorded->done = false;
  stream->queue.emplace_back([recorded = event->recorded] {
    recorded->at_ms = fake_cuda()->now_ms;
    return recorded->done = true;
  });
  return 0;
}

int cuEventQuery(CudaEventTag* event) {
  const int result = enter_context("cuEventQuery", event->device);
  if (result != 0) return result;
  if (fake_cuda()->broken != 0) return fake_cuda()->broken;
  if (event->recorded->done) return 0;
  step_streams();
  return event->recorded->done ? 0 : kNotReady;
}

int cuEventElapsedTime(float* milliseconds, CudaEventTag* begin, CudaEventTag* end) {
  const int result = enter_context("cuEventElapsedTime", begin->device);
  if (result != 0) return result;
  if (fake_cuda()->broken != 0) return fake_cuda()->broken;
  if (begin->device != end->device || !begin->is_timed || !end->is_timed) return kInvalidHandle;
  if (!begin->recorded->done || !end->recorded->done) return kNotReady;
  if (begin->recorded->at_ms < 0 || end->recorded->at_ms < 0) return kInvalidHandle;
  *milliseconds = static_cast<float>(end->recorded->at_ms - begin->recorded->at_ms);
  return 0;
}

}  // extern "C"
