// Memory registered with UCX: the registrations of this PE, and the unpacked keys of its peers' registrations.
//
// A key consists of an id, which its owner never reuses, and UCX's packed key. The cache of unpacked keys is
// indexed by the id, so it stays correct when an address is registered again. Unpacked keys live until close(),
// because an operation in flight needs its key.
//
// Threads: the PE's thread.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "weft/base/status.h"

#include "machine/machine.h"

namespace weft::machine::ucx {

class MemoryRegions {
 public:
  explicit MemoryRegions(int num_pes) : remote_keys_(static_cast<std::size_t>(num_pes)) {}
  MemoryRegions(const MemoryRegions&) = delete;
  MemoryRegions& operator=(const MemoryRegions&) = delete;

  base::Result<RemoteMemory> add(ucp_context_h context, const memory::Buffer& memory, ucs_memory_type_t type);
  base::Status remove(ucp_context_h context, const RemoteMemory& memory);
  void remove_all(ucp_context_h context);

  // The handle of the registered memory that contains the range; null if there is none.
  ucp_mem_h find(const void* data, std::size_t size_bytes) const {
    return regions_.empty() ? nullptr : search(data, size_bytes);
  }

  base::Result<ucp_rkey_h> remote_key(int pe, ucp_ep_h endpoint, const RemoteMemory& remote);
  // The key is used no more.
  void forget_remote(int pe, const RemoteMemory& remote);
  void destroy_remote_keys();

 private:
  struct Region {
    std::uint64_t id;
    std::size_t size_bytes;
    ucp_mem_h handle;
  };

  // Out of line: most jobs register no memory, and each operation calls find().
  [[gnu::noinline]] ucp_mem_h search(const void* data, std::size_t size_bytes) const;

  std::multimap<std::uint64_t, Region> regions_;  // by address
  std::size_t largest_bytes_ = 0;                 // the largest region that was ever registered
  std::vector<std::unordered_map<std::uint64_t, ucp_rkey_h>> remote_keys_;
  std::uint64_t next_id_ = 1;
};

}  // namespace weft::machine::ucx
