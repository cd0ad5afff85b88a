// The allocations of this PE that UCX may have mapped in other processes.
//
// UCX keeps a mapping when another library frees the memory. It finds the old mapping at the first address of new memory
// there, and replaces it. Where it does not look, CUDA refuses the new mapping; UCX prints an error, ends all old mappings
// there and tries again (uct_cuda_ipc_cache_put_region() of UCX 1.22). Memory that would come to that is sent another way.
//
// Threads: the PE's. Invariant: the allocations do not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "memory/kind.h"

namespace weft::machine {

class UcxMappings {
 public:
  // Beyond that it begins anew: an error that UCX prints then costs nothing else.
  static constexpr std::size_t kMost = 4096;

  // Whether UCX maps this allocation in silence. It counts as mapped then.
  [[nodiscard]] bool admit(const memory::Allocation& allocation);

 private:
  std::map<std::uintptr_t, memory::Allocation> mapped_;  // by base
};

}  // namespace weft::machine
