// Whether the program contains the CUDA runtime library, which allocates on the calling thread's current device.
#pragma once

namespace weft::memory {

// Whether the program was linked with the CUDA runtime library, statically or dynamically. False for a Python
// program, and for a program that loads the library later or has it hidden in a shared library.
bool contains_cuda_runtime();

}  // namespace weft::memory
