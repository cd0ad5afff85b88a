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
#include <cstring>
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

  // Host memory that is registered here, by the id in its key; null if there is none. Bytes from a peer may name any id.
  struct HostRegion {
    std::byte* data;
    std::size_t size_bytes;
  };
  const HostRegion* find_host(std::uint64_t id) const {
    return id == last_host_id_ ? last_host_ : search_host(id);
  }

  // A key begins with its owner's id.
  static bool has_id(const RemoteMemory& memory) { return memory.key.size() > sizeof(std::uint64_t); }
  static std::uint64_t id_of(const RemoteMemory& memory) {
    std::uint64_t id = 0;
    std::memcpy(&id, memory.key.data(), sizeof id);
    return id;
  }

  // The key of UCX for that memory, which is unpacked at its first use.
  base::Result<ucp_rkey_h> remote_key(int pe, ucp_ep_h endpoint, const RemoteMemory& remote);
  // As remote_key() if its key was the last one used, else null. Inline: each put and get pays for the call.
  ucp_rkey_h last_remote_key(int pe, const RemoteMemory& remote) const {
    return last_key_.pe == pe && has_id(remote) && last_key_.id == id_of(remote) ? last_key_.key : nullptr;
  }
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

  [[gnu::noinline]] const HostRegion* search_host(std::uint64_t id) const;

  std::multimap<std::uint64_t, Region> regions_;                // by address
  std::unordered_map<std::uint64_t, HostRegion> host_regions_;  // by id
  std::size_t largest_bytes_ = 0;                               // the largest region that was ever registered
  std::vector<std::unordered_map<std::uint64_t, ucp_rkey_h>> remote_keys_;
  // The last one that was used; a null key for none.
  struct LastKey {
    int pe = -1;
    std::uint64_t id = 0;
    ucp_rkey_h key = nullptr;
  };
  LastKey last_key_;
  // The last one that search_host() found.
  mutable std::uint64_t last_host_id_ = 0;
  mutable const HostRegion* last_host_ = nullptr;
  std::uint64_t next_id_ = 1;
};

}  // namespace weft::machine::ucx
