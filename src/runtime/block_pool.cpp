#include "weft/runtime/block_pool.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace weft::runtime {

void* BlockPool::fresh_block(std::size_t which) {
  constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
  if (which > kLargestClass) throw std::bad_alloc();
  const std::size_t size_bytes = class_bytes(which);
  const bool is_huge = size_bytes >= kHugeBytes;
  void* block = std::aligned_alloc(is_huge ? kHugePageBytes : kAlignment, size_bytes);
  if (block == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (is_huge) static_cast<void>(::madvise(block, size_bytes, MADV_HUGEPAGE));  // only a hint
#endif
  return block;
}

}  // namespace weft::runtime
