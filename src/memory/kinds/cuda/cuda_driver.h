// The CUDA driver, loaded at run time, so that one binary serves machines with and without a GPU.
//
// This file declares the functions and constants that Weft uses itself instead of including cuda.h. The
// driver's binary interface is stable.
//
// Threads: the PE's thread. An object is constant after load(); the library stays loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "weft/base/status.h"

namespace weft::memory {

using CudaResult = int;
using CudaDevice = int;
using CudaContext = struct CudaContextTag*;
using CudaStream = struct CudaStreamTag*;
using CudaEvent = struct CudaEventTag*;
using CudaModule = struct CudaModuleTag*;
using CudaFunction = struct CudaFunctionTag*;
using CudaAddress = unsigned long long;

// CUipcMemHandle: with it another process can map an allocation. The driver takes it by value.
struct CudaIpcHandle {
  char reserved[64];
};

// CUDA_MEMCPY2D: rows of bytes, a pitch apart. The driver's arrays and host memory are not used.
struct CudaCopy2D {
  std::size_t source_x = 0;
  std::size_t source_y = 0;
  unsigned source_type = 2;  // device memory
  const void* source_host = nullptr;
  CudaAddress source = 0;
  void* source_array = nullptr;
  std::size_t source_pitch = 0;
  std::size_t destination_x = 0;
  std::size_t destination_y = 0;
  unsigned destination_type = 2;
  void* destination_host = nullptr;
  CudaAddress destination = 0;
  void* destination_array = nullptr;
  std::size_t destination_pitch = 0;
  std::size_t row_bytes = 0;
  std::size_t rows = 0;
};

namespace cuda {
inline constexpr CudaResult kSuccess = 0;
inline constexpr CudaResult kInvalidValue = 1;
inline constexpr CudaResult kOutOfMemory = 2;
inline constexpr CudaResult kDeinitialized = 4;
// Why a module cannot be loaded: the device, the driver or its compiler does not know what the text needs.
inline constexpr CudaResult kNoBinaryForGpu = 209;
inline constexpr CudaResult kInvalidPtx = 218;
inline constexpr CudaResult kJitCompilerNotFound = 221;
inline constexpr CudaResult kUnsupportedPtxVersion = 222;
inline constexpr CudaResult kNotReady = 600;

inline const CudaStream kLegacyStream = reinterpret_cast<CudaStream>(std::uintptr_t{1});
inline constexpr unsigned kEventDefault = 0;  // with a time
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr int kCaptureNone = 0;
inline constexpr unsigned kHostAllocPortable = 1;
inline constexpr unsigned kHostRegisterPortable = 1;
inline constexpr unsigned kIpcLazyEnablePeerAccess = 1;

// The largest pitch that cuMemcpy2DAsync takes, on all devices so far.
inline constexpr std::size_t kMaxPitchBytes = 0x7fffffff;

inline constexpr unsigned kMemoryTypeHost = 1;
inline constexpr unsigned kMemoryTypeDevice = 2;

inline constexpr int kAttributeMemoryType = 2;
inline constexpr int kAttributeSyncMemops = 6;
inline constexpr int kAttributeBufferId = 7;
inline constexpr int kAttributeIsManaged = 8;
inline constexpr int kAttributeDeviceOrdinal = 9;
inline constexpr int kAttributeIsIpcCapable = 10;
inline constexpr int kAttributeRangeStart = 11;
inline constexpr int kAttributeRangeSize = 12;
}  // namespace cuda

// The driver's functions. Each has the driver's name without "cu" and without the version suffix.
class CudaDriver {
 public:
  // Loads the driver and initialises it. kNotFound, with the reason, if there is no driver or no device.
  // kUnsupported if the driver is too old.
  static base::Result<std::unique_ptr<CudaDriver>> load(const std::string& library);
  CudaDriver(const CudaDriver&) = delete;
  CudaDriver& operator=(const CudaDriver&) = delete;

  int num_devices() const { return num_devices_; }
  // Translates a result of the driver: ok, pending for "not ready", or a failure. The message of a failure
  // has the name of the call, `about`, and the driver's name and description of the error.
  base::Status status(CudaResult result, const char* call, std::string_view about = {}) const;
  // What is known of an error after which every call fails, or nothing. Such a failure's message has it.
  std::function<std::string()> explain;

  CudaResult (*Init)(unsigned flags) = nullptr;
  CudaResult (*DeviceGetCount)(int* count) = nullptr;
  CudaResult (*DeviceGet)(CudaDevice* device, int ordinal) = nullptr;
  CudaResult (*DeviceGetName)(char* name, int size_bytes, CudaDevice device) = nullptr;
  CudaResult (*DeviceCanAccessPeer)(int* can, CudaDevice device, CudaDevice peer) = nullptr;
  CudaResult (*GetErrorName)(CudaResult error, const char** name) = nullptr;
  CudaResult (*GetErrorString)(CudaResult error, const char** text) = nullptr;
  CudaResult (*DevicePrimaryCtxRetain)(CudaContext* context, CudaDevice device) = nullptr;
  CudaResult (*DevicePrimaryCtxRelease)(CudaDevice device) = nullptr;
  CudaResult (*CtxGetCurrent)(CudaContext* context) = nullptr;
  CudaResult (*CtxSetCurrent)(CudaContext context) = nullptr;
  CudaResult (*CtxEnablePeerAccess)(CudaContext peer, unsigned flags) = nullptr;
  CudaResult (*MemAlloc)(CudaAddress* address, std::size_t size_bytes) = nullptr;
  CudaResult (*MemFree)(CudaAddress address) = nullptr;
  CudaResult (*MemHostAlloc)(void** address, std::size_t size_bytes, unsigned flags) = nullptr;
  CudaResult (*MemFreeHost)(void* address) = nullptr;
  CudaResult (*MemHostRegister)(void* address, std::size_t size_bytes, unsigned flags) = nullptr;
  CudaResult (*MemHostUnregister)(void* address) = nullptr;
  CudaResult (*MemcpyAsync)(CudaAddress destination, CudaAddress source, std::size_t size_bytes,
                            CudaStream stream) = nullptr;
  CudaResult (*Memcpy2DAsync)(const CudaCopy2D* copy, CudaStream stream) = nullptr;
  CudaResult (*MemcpyPeerAsync)(CudaAddress destination, CudaContext destination_context, CudaAddress source,
                                CudaContext source_context, std::size_t size_bytes,
                                CudaStream stream) = nullptr;
  CudaResult (*PointerGetAttribute)(void* data, int attribute, CudaAddress address) = nullptr;
  CudaResult (*PointerGetAttributes)(unsigned count, int* attributes, void** data,
                                     CudaAddress address) = nullptr;
  CudaResult (*PointerSetAttribute)(const void* value, int attribute, CudaAddress address) = nullptr;
  CudaResult (*IpcGetMemHandle)(CudaIpcHandle* handle, CudaAddress address) = nullptr;
  CudaResult (*IpcOpenMemHandle)(CudaAddress* address, CudaIpcHandle handle, unsigned flags) = nullptr;
  CudaResult (*IpcCloseMemHandle)(CudaAddress address) = nullptr;
  CudaResult (*StreamCreate)(CudaStream* stream, unsigned flags) = nullptr;
  CudaResult (*StreamDestroy)(CudaStream stream) = nullptr;
  CudaResult (*StreamGetCtx)(CudaStream stream, CudaContext* context) = nullptr;
  CudaResult (*StreamQuery)(CudaStream stream) = nullptr;
  CudaResult (*StreamWaitEvent)(CudaStream stream, CudaEvent event, unsigned flags) = nullptr;
  CudaResult (*StreamIsCapturing)(CudaStream stream, int* status) = nullptr;
  // Null if the driver has none.
  CudaResult (*ModuleLoadData)(CudaModule* module, const void* image) = nullptr;
  CudaResult (*ModuleGetFunction)(CudaFunction* function, CudaModule module, const char* name) = nullptr;
  CudaResult (*LaunchKernel)(CudaFunction function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,
                             unsigned threads_x, unsigned threads_y, unsigned threads_z,
                             unsigned shared_bytes, CudaStream stream, void** parameters,
                             void** extra) = nullptr;
  CudaResult (*EventCreate)(CudaEvent* event, unsigned flags) = nullptr;
  CudaResult (*EventDestroy)(CudaEvent event) = nullptr;
  CudaResult (*EventRecord)(CudaEvent event, CudaStream stream) = nullptr;
  CudaResult (*EventQuery)(CudaEvent event) = nullptr;
  CudaResult (*EventElapsedTime)(float* milliseconds, CudaEvent begin, CudaEvent end) = nullptr;

 private:
  CudaDriver() = default;
  base::Status find_functions(void* library, const std::string& name);
  base::Status initialise();

  int num_devices_ = 0;
};

// Makes a context current on this thread. The destructor makes the previous context current again.
class CudaContextScope {
 public:
  CudaContextScope(const CudaDriver& driver, CudaContext context) : driver_(driver) {
    result_ = driver_.CtxGetCurrent(&previous_);
    if (result_ != cuda::kSuccess || previous_ == context) return;
    result_ = driver_.CtxSetCurrent(context);
    changed_ = result_ == cuda::kSuccess;
  }
  ~CudaContextScope() {
    if (changed_) driver_.CtxSetCurrent(previous_);
  }
  CudaContextScope(const CudaContextScope&) = delete;
  CudaContextScope& operator=(const CudaContextScope&) = delete;

  CudaResult result() const { return result_; }

 private:
  const CudaDriver& driver_;
  CudaContext previous_ = nullptr;
  CudaResult result_ = cuda::kSuccess;
  bool changed_ = false;
};

}  // namespace weft::memory
