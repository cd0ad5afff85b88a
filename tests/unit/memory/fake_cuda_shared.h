// What the files of the stand-in driver share: the driver's results, and what its functions do first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/unit/memory/fake_cuda.h"

namespace fake_driver {

constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kInvalidContext = 201;
constexpr int kInvalidPtx = 218;
constexpr int kInvalidHandle = 400;
constexpr int kNotFound = 500;
constexpr int kNotReady = 600;
constexpr int kIllegalAddress = 700;
constexpr int kLaunchFailed = 719;
constexpr int kCaptureUnsupported = 900;

// Counts the call. Not 0: what it is to return.
int enter(const char* name);
// As enter(), for a function that needs a current context, that of the device if one is given.
int enter_context(const char* name, int device = -1);
// As enter_context(), for a function that is forbidden while a graph is being captured.
int enter_uncaptured(const char* name);
CudaContextTag* current();

// Whether a range that begins in a block ends there. Other memory is unknown to the driver.
int check_range(std::uintptr_t address, std::size_t size_bytes, bool* is_known);
// Whether the range is in a block.
bool is_known(std::uintptr_t address, std::size_t size_bytes);
// The device's legacy and per-thread default streams are one.
CudaStreamTag* resolve(CudaStreamTag* stream);

}  // namespace fake_driver
