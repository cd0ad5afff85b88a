#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/unit/memory/fake_cuda_shared.h"

namespace {

std::unique_ptr<FakeCuda> g_fake;
thread_local CudaContextTag* t_current = nullptr;

std::size_t mapped_size(std::size_t size_bytes) { return (size_bytes + 4095) / 4096 * 4096; }

// FAKE_CUDA_FAIL, for whole jobs: the function of this name always fails, as if out of memory.
bool always_fails(const char* name) {
  const char* const failing = std::getenv("FAKE_CUDA_FAIL");
  return failing != nullptr && std::strcmp(failing, name) == 0;
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

namespace fake_driver {

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

int enter_context(const char* name, int device) {
  const int result = enter(name);
  if (result != 0) return result;
  if (t_current != nullptr && t_current->retained > 0 && (device < 0 || t_current->device == device))
    return 0;
  ++fake_cuda()->wrong_context_calls;
  return kInvalidContext;
}

int enter_uncaptured(const char* name) {
  const int result = enter_context(name);
  if (result != 0) return result;
  const auto& streams = fake_cuda()->streams;
  return std::ranges::any_of(streams, &CudaStreamTag::is_captured) ? kCaptureUnsupported : 0;
}

CudaContextTag* current() { return t_current; }

int check_range(std::uintptr_t address, std::size_t size_bytes, bool* is_known) {
  std::uintptr_t base = 0;
  const FakeCuda::Block* block = fake_cuda()->find(address, &base);
  *is_known = block != nullptr;
  return block != nullptr && address + size_bytes > base + block->size_bytes ? kInvalidValue : 0;
}

bool is_known(std::uintptr_t address, std::size_t size_bytes) {
  bool is_in_a_block = false;
  return check_range(address, size_bytes, &is_in_a_block) == 0 && is_in_a_block;
}

}  // namespace fake_driver

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

using namespace fake_driver;

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
  const int result = enter_uncaptured("cuMemHostAlloc");
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

}  // extern "C"
