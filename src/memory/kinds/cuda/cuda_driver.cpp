#include "memory/kinds/cuda/cuda_driver.h"

#include <dlfcn.h>

#include "base/format.h"

namespace weft::memory {

using base::Result;
using base::Status;
using base::StatusCode;

namespace {

template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

StatusCode code_of(CudaResult result) {
  switch (result) {
    case cuda::kInvalidValue:
      return StatusCode::kInvalidArgument;
    case cuda::kOutOfMemory:
      return StatusCode::kOutOfMemory;
    case cuda::kDeinitialized:
      return StatusCode::kClosed;
    default:
      return StatusCode::kInternal;
  }
}

// Whether the error is sticky: every later call on the context returns the same error.
bool breaks_context(CudaResult result) {
  return result >= 700 && result < 720 && result != 701 && result != 704;
}

}  // namespace

Result<std::unique_ptr<CudaDriver>> CudaDriver::load(const std::string& library) {
  // The library is never unloaded. Other libraries of the process use the driver too, and it does not work
  // again after unloading.
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = ::dlerror();
    return Status(StatusCode::kNotFound, base::format("no CUDA driver: {}", why == nullptr ? library : why));
  }
  std::unique_ptr<CudaDriver> driver(new CudaDriver);
  Status status = driver->find_functions(handle, library);
  if (status.ok()) status = driver->initialise();
  if (status.failed()) return status;
  return driver;
}

Status CudaDriver::find_functions(void* library, const std::string& name) {
  const char* missing = nullptr;
  const auto need = [&](const char* symbol, auto*& function) {
    if (!find(library, symbol, function) && missing == nullptr) missing = symbol;
  };
  need("cuInit", Init);
  need("cuDeviceGetCount", DeviceGetCount);
  need("cuDeviceGet", DeviceGet);
  need("cuDeviceGetName", DeviceGetName);
  need("cuDeviceCanAccessPeer", DeviceCanAccessPeer);
  need("cuGetErrorName", GetErrorName);
  need("cuGetErrorString", GetErrorString);
  need("cuDevicePrimaryCtxRetain", DevicePrimaryCtxRetain);
  need("cuDevicePrimaryCtxRelease_v2", DevicePrimaryCtxRelease);
  need("cuCtxGetCurrent", CtxGetCurrent);
  need("cuCtxSetCurrent", CtxSetCurrent);
  need("cuCtxEnablePeerAccess", CtxEnablePeerAccess);
  need("cuMemAlloc_v2", MemAlloc);
  need("cuMemFree_v2", MemFree);
  need("cuMemHostAlloc", MemHostAlloc);
  need("cuMemFreeHost", MemFreeHost);
  need("cuMemHostRegister_v2", MemHostRegister);
  need("cuMemHostUnregister", MemHostUnregister);
  need("cuMemcpyAsync", MemcpyAsync);
  need("cuMemcpy2DAsync_v2", Memcpy2DAsync);
  need("cuMemcpyPeerAsync", MemcpyPeerAsync);
  need("cuPointerGetAttribute", PointerGetAttribute);
  need("cuPointerGetAttributes", PointerGetAttributes);
  need("cuPointerSetAttribute", PointerSetAttribute);
  need("cuIpcGetMemHandle", IpcGetMemHandle);
  need("cuIpcOpenMemHandle_v2", IpcOpenMemHandle);
  need("cuIpcCloseMemHandle", IpcCloseMemHandle);
  need("cuStreamCreate", StreamCreate);
  need("cuStreamDestroy_v2", StreamDestroy);
  need("cuStreamGetCtx", StreamGetCtx);
  need("cuStreamQuery", StreamQuery);
  need("cuStreamIsCapturing", StreamIsCapturing);
  need("cuStreamWaitEvent", StreamWaitEvent);
  need("cuEventCreate", EventCreate);
  need("cuEventDestroy_v2", EventDestroy);
  need("cuEventRecord", EventRecord);
  need("cuEventQuery", EventQuery);
  need("cuEventElapsedTime", EventElapsedTime);
  find(library, "cuModuleLoadData", ModuleLoadData);
  find(library, "cuModuleGetFunction", ModuleGetFunction);
  find(library, "cuLaunchKernel", LaunchKernel);
  if (missing == nullptr) return {};
  return Status(
      StatusCode::kUnsupported,
      base::format("the CUDA driver {} has no {}: a driver of CUDA 11 or later is needed", name, missing));
}

Status CudaDriver::initialise() {
  Status initialised = status(Init(0), "cuInit");
  if (initialised.failed()) {
    return Status(StatusCode::kNotFound, base::format("no usable CUDA device: {}", initialised.message()));
  }
  Status counted = status(DeviceGetCount(&num_devices_), "cuDeviceGetCount");
  if (counted.failed()) return counted;
  if (num_devices_ == 0) {
    return Status(StatusCode::kNotFound,
                  "no CUDA device is visible (see nvidia-smi and CUDA_VISIBLE_DEVICES)");
  }
  return {};
}

Status CudaDriver::status(CudaResult result, const char* call, std::string_view about) const {
  if (result == cuda::kSuccess) return {};
  if (result == cuda::kNotReady) return Status::pending();
  const char* name = nullptr;
  const char* text = nullptr;
  if (GetErrorName(result, &name) != cuda::kSuccess || name == nullptr) name = "unknown error";
  if (GetErrorString(result, &text) != cuda::kSuccess || text == nullptr) text = "no description";
  std::string consequence;
  if (breaks_context(result)) {
    const std::string why = explain ? explain() : std::string();
    consequence = "; an earlier kernel or copy failed, and this process cannot use the device any more: " +
                  (why.empty() ? "find it with compute-sanitizer" : why);
  }
  return Status(code_of(result), base::format("{}{}{}: {} ({}, {}){}", call, about.empty() ? "" : ": ", about,
                                              name, result, text, consequence));
}

}  // namespace weft::memory
