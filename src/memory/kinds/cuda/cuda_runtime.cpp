#include "memory/kinds/cuda/cuda_runtime.h"

#include <dlfcn.h>

// A weak reference: its address is null in a program that is linked without the library. The static library is
// the default of nvcc, and its functions are in no table of dynamic symbols.
extern "C" int cudaGetDevice(int* device) __attribute__((weak));

namespace weft::memory {

bool contains_cuda_runtime() {
  return &cudaGetDevice != nullptr || ::dlsym(RTLD_DEFAULT, "cudaGetDevice") != nullptr;
}

}  // namespace weft::memory
