#include "machine/peer_memory/mapping/imports.h"

#include <iterator>
#include <limits>

#include "base/format.h"

namespace weft::machine {

Imports::Import* Imports::find(int pe, const PeerBuffer& peer_buffer, std::span<const std::byte> exported,
                               memory::Place here) {
  const Key key{pe, peer_buffer.export_number, here.device};
  auto found = imports_.find(key);
  if (found == imports_.end()) {
    make_room(pe, peer_buffer);
    found = imports_.emplace(key, Import{}).first;
    found->second.owner_base = peer_buffer.allocation_base;
  }
  Import& import = found->second;
  if (import.mapped.data == nullptr && import.tries < kMaxTries && import.uses_until_retry-- == 0) {
    base::Result<memory::Buffer> mapped = map(peer_buffer, exported, here);
    if (mapped.ok()) {
      import.mapped = *mapped;
    } else if (first_failure_.ok()) {
      first_failure_ = mapped.status();
    }
    import.uses_until_retry = kRetryUses << 2 * import.tries++;
  }
  import.last_use = ++uses_;
  const bool is_usable = import.mapped.data != nullptr && !import.is_forgotten &&
                         import.mapped.place.kind == here.kind &&
                         import.owner_base == peer_buffer.allocation_base;
  return is_usable ? &import : nullptr;
}

base::Result<memory::Buffer> Imports::map(const PeerBuffer& peer_buffer, std::span<const std::byte> exported,
                                          memory::Place here) {
  const auto kind_number = static_cast<std::size_t>(peer_buffer.place.kind);
  if (kind_number >= memory::kNumKinds) {
    return base::Status(
        base::StatusCode::kCorrupt,
        base::format("a peer posted memory of kind {}, and this kind does not exist", kind_number));
  }
  memory::KindBackend& kind = *memory_.backend(here.kind);
  const int peer = peer_buffer.place.device;
  const bool reaches = peer < 0 || peer >= kind.num_devices() || kind.can_access_peer(here.device, peer);
  if (peer_buffer.place.kind == here.kind && reaches) return kind.import_allocation(exported, here.device);
  return base::Status(base::StatusCode::kUnsupported,
                      base::format("{} does not reach the memory of {}", memory::place_name(here),
                                   memory::place_name(peer_buffer.place)));
}

// A new allocation of the owner replaces an earlier one at some of its addresses: CUDA cannot map both. Beyond
// kMaxPerPe the least recently used one goes.
void Imports::make_room(int pe, const PeerBuffer& peer_buffer) {
  std::size_t count = 0;
  auto oldest = imports_.end();
  for (auto one = imports_.lower_bound({pe, 0, 0}); one != imports_.end() && std::get<0>(one->first) == pe;) {
    Import& import = one->second;
    const bool is_replaced = std::get<1>(one->first) != peer_buffer.export_number &&
                             (peer_buffer.allocation_base - import.owner_base < import.mapped.size_bytes ||
                              import.owner_base - peer_buffer.allocation_base < peer_buffer.allocation_bytes);
    if (is_replaced && import.copies_under_way == 0) {
      one = release(one);
      continue;
    }
    ++count;
    const bool may_go = import.copies_under_way == 0;
    if (may_go && (oldest == imports_.end() || import.last_use < oldest->second.last_use)) oldest = one;
    ++one;
  }
  if (count >= kMaxPerPe && oldest != imports_.end()) release(oldest);
}

base::Result<memory::Buffer> Imports::locate(const Import& import, const PeerBuffer& peer_buffer) {
  memory::Buffer part = import.mapped;
  if (peer_buffer.offset_bytes > part.size_bytes ||
      peer_buffer.size_bytes > part.size_bytes - peer_buffer.offset_bytes) {
    return base::Status(base::StatusCode::kCorrupt,
                        base::format("a peer posted {} bytes at offset {} of an allocation that has {} "
                                     "bytes",
                                     peer_buffer.size_bytes, peer_buffer.offset_bytes, part.size_bytes));
  }
  part.data = static_cast<std::byte*>(part.data) + peer_buffer.offset_bytes;
  part.size_bytes = peer_buffer.size_bytes;
  return part;
}

void Imports::copy_done(Import& import) {
  if (--import.copies_under_way > 0 || !import.is_forgotten) return;
  for (auto one = imports_.begin(); one != imports_.end(); ++one) {
    if (&one->second != &import) continue;
    const auto [pe, number, device] = one->first;
    release(one);
    if (!has(pe, number)) forgotten_(pe, number);
    return;
  }
}

void Imports::forget(int pe, std::uint64_t export_number) {
  auto one = imports_.lower_bound({pe, export_number, std::numeric_limits<int>::min()});
  while (one != imports_.end() && std::get<0>(one->first) == pe && std::get<1>(one->first) == export_number) {
    one->second.is_forgotten = true;
    one = one->second.copies_under_way == 0 ? release(one) : std::next(one);
  }
  if (!has(pe, export_number)) forgotten_(pe, export_number);
}

bool Imports::has(int pe, std::uint64_t export_number) const {
  const auto one = imports_.lower_bound({pe, export_number, std::numeric_limits<int>::min()});
  return one != imports_.end() && std::get<0>(one->first) == pe && std::get<1>(one->first) == export_number;
}

Imports::Table::iterator Imports::release(Table::iterator one) {
  const memory::Buffer& mapped = one->second.mapped;
  // If the driver does not release the mapping, it costs address space and nothing else.
  if (mapped.data != nullptr) (void)memory_.backend(mapped.place.kind)->release_import(mapped.data);
  return imports_.erase(one);
}

void Imports::close() {
  for (auto one = imports_.begin(); one != imports_.end();) {
    one = one->second.copies_under_way == 0 ? release(one) : std::next(one);
  }
}

}  // namespace weft::machine
