#include "machine/ucx/handles/memory_region.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "machine/staging/staged_machine.h"
#include "machine/ucx/setup/library.h"

namespace weft::machine::ucx {
namespace {

base::Status bad_key(int pe, std::string_view why) {
  return {
      base::StatusCode::kInvalidArgument,
      base::format(
          "the key of the memory of PE {} cannot be used: {}. Pass the RemoteMemory that register_memory() "
          "returned on that PE.",
          pe, why)};
}

}  // namespace

base::Result<RemoteMemory> MemoryRegions::add(ucp_context_h context, const memory::Buffer& memory,
                                              ucs_memory_type_t type) {
  ucp_mem_map_params_t params{};
  params.field_mask =
      UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  params.address = memory.data;
  params.length = memory.size_bytes;
  params.memory_type = type;
  ucp_mem_h handle = nullptr;
  if (const ucs_status_t status = ucp_mem_map(context, &params, &handle); status != UCS_OK) {
    return base::Status(
        base::StatusCode::kOutOfMemory,
        base::format("UCX cannot register {} bytes of {} memory: {}. Check `ulimit -l`.", memory.size_bytes,
                     memory::kind_name(memory.place.kind), status_text(status)));
  }
  void* packed = nullptr;
  std::size_t packed_size = 0;
  if (const ucs_status_t status = ucp_rkey_pack(context, handle, &packed, &packed_size); status != UCS_OK) {
    ucp_mem_unmap(context, handle);
    return base::Status(base::StatusCode::kInternal,
                        base::format("UCX cannot make a key for registered memory: {}", status_text(status)));
  }
  const std::uint64_t id = next_id_++;
  RemoteMemory result;
  result.address = reinterpret_cast<std::uintptr_t>(memory.data);
  result.size_bytes = memory.size_bytes;
  result.place = memory.place;
  result.key.resize(sizeof id + packed_size);
  std::memcpy(result.key.data(), &id, sizeof id);
  std::memcpy(result.key.data() + sizeof id, packed, packed_size);
  ucp_rkey_buffer_release(packed);
  regions_.emplace(result.address, Region{id, memory.size_bytes, handle});
  if (memory.place.is_host()) {
    host_regions_.emplace(id, HostRegion{static_cast<std::byte*>(memory.data), memory.size_bytes});
  }
  largest_bytes_ = std::max(largest_bytes_, memory.size_bytes);
  return result;
}

base::Status MemoryRegions::remove(ucp_context_h context, const RemoteMemory& memory) {
  if (memory.key.size() >= sizeof(std::uint64_t)) {
    auto [position, end] = regions_.equal_range(memory.address);
    for (; position != end; ++position) {
      if (position->second.id != id_of(memory)) continue;
      ucp_mem_unmap(context, position->second.handle);
      if (last_host_id_ == position->second.id) {
        last_host_id_ = 0;
        last_host_ = nullptr;
      }
      host_regions_.erase(position->second.id);
      regions_.erase(position);
      return {};
    }
  }
  return not_registered(memory);
}

void MemoryRegions::remove_all(ucp_context_h context) {
  for (auto& [address, region] : regions_) ucp_mem_unmap(context, region.handle);
  regions_.clear();
  host_regions_.clear();
  last_host_id_ = 0;
  last_host_ = nullptr;
}

ucp_mem_h MemoryRegions::search(const void* data, std::size_t size_bytes) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  // Regions may overlap, so the nearest region below may not contain the range although a further one does.
  for (auto next = regions_.upper_bound(begin); next != regions_.begin();) {
    const auto& [address, region] = *--next;
    const std::size_t reach_bytes = begin - address + size_bytes;
    if (reach_bytes <= region.size_bytes) return region.handle;
    if (reach_bytes > largest_bytes_) break;
  }
  return nullptr;
}

const MemoryRegions::HostRegion* MemoryRegions::search_host(std::uint64_t id) const {
  const auto found = host_regions_.find(id);
  if (found == host_regions_.end()) return nullptr;
  last_host_id_ = id;
  last_host_ = &found->second;
  return last_host_;
}

base::Result<ucp_rkey_h> MemoryRegions::remote_key(int pe, ucp_ep_h endpoint, const RemoteMemory& remote) {
  if (!has_id(remote)) return bad_key(pe, "it is too short");
  auto [position, is_new] = remote_keys_[static_cast<std::size_t>(pe)].try_emplace(id_of(remote), nullptr);
  ucp_rkey_h& key = position->second;
  if (is_new) {
    const ucs_status_t status = ucp_ep_rkey_unpack(endpoint, remote.key.data() + sizeof(std::uint64_t), &key);
    if (status != UCS_OK) {
      remote_keys_[static_cast<std::size_t>(pe)].erase(position);
      return bad_key(pe, status_text(status));
    }
  }
  last_key_ = {pe, id_of(remote), key};
  return last_key_.key;
}

void MemoryRegions::forget_remote(int pe, const RemoteMemory& remote) {
  if (!has_id(remote)) return;
  last_key_ = {};
  auto& keys = remote_keys_[static_cast<std::size_t>(pe)];
  const auto found = keys.find(id_of(remote));
  if (found == keys.end()) return;
  ucp_rkey_destroy(found->second);
  keys.erase(found);
}

void MemoryRegions::destroy_remote_keys() {
  last_key_ = {};
  for (auto& keys : remote_keys_) {
    for (auto& [id, key] : keys) ucp_rkey_destroy(key);
    keys.clear();
  }
}

}  // namespace weft::machine::ucx
