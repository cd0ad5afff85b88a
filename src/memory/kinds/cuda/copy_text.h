// The text of a copy by the threads of a block, for kernels (kernel_text.h).
#pragma once

#include <string>

namespace weft::memory {

// Copies `left` bytes from `from` to `to`, both of any alignment. The kernel has declared these, `index` (of the thread) and
// `stride` (how many threads there are) as 64 bits. It may change `to`, `from` and `left`. The block has at least 32 threads.
std::string copy_text();

}  // namespace weft::memory
