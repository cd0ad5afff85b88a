#include "models/channel/imports.h"

#include <fmt/format.h>

#include <iterator>
#include <limits>

namespace weft::channel {

Imports::Import* Imports::find(int pe, const Posting& posting, std::span<const std::byte> exported,
                               memory::Place from) {
  const Key key{pe, posting.export_number, from.device};
  auto found = imports_.find(key);
  if (found == imports_.end()) {
    make_room(pe, posting);
    found = imports_.emplace(key, Import{}).first;
    base::Result<memory::Buffer> mapped = map(posting, exported, from);
    if (mapped.ok()) {
      found->second.mapped = *mapped;
    } else if (first_failure_.ok()) {
      first_failure_ = mapped.status();
    }
    found->second.owner_base = posting.allocation_base;
  }
  Import& import = found->second;
  import.last_use = ++uses_;
  const bool is_usable = import.mapped.data != nullptr && !import.is_forgotten &&
                         import.mapped.place.kind == from.kind &&
                         import.owner_base == posting.allocation_base;
  return is_usable ? &import : nullptr;
}

base::Result<memory::Buffer> Imports::map(const Posting& posting, std::span<const std::byte> exported,
                                          memory::Place from) {
  memory::KindBackend& kind = *memory_.backend(from.kind);
  const int peer = posting.place.device;
  const bool reaches = peer < 0 || peer >= kind.num_devices() || kind.can_access_peer(from.device, peer);
  if (posting.place.kind == from.kind && reaches) return kind.import_allocation(exported, from.device);
  return base::Status(base::StatusCode::kUnsupported,
                      fmt::format("{} does not reach the memory of {}", memory::place_name(from),
                                  memory::place_name(posting.place)));
}

// An owner's new allocation says that an earlier one at its addresses has gone: CUDA does not map both. One
// that merely was not used for long makes room.
void Imports::make_room(int pe, const Posting& posting) {
  std::size_t count = 0;
  auto oldest = imports_.end();
  for (auto one = imports_.lower_bound({pe, 0, 0}); one != imports_.end() && std::get<0>(one->first) == pe;) {
    Import& import = one->second;
    const bool is_replaced = std::get<1>(one->first) != posting.export_number &&
                             posting.allocation_base - import.owner_base < import.mapped.size_bytes;
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

void Imports::copy_done(Import& import) {
  if (--import.copies_under_way > 0 || !import.is_forgotten) return;
  for (auto one = imports_.begin(); one != imports_.end(); ++one) {
    if (&one->second != &import) continue;
    release(one);
    return;
  }
}

void Imports::forget(int pe, std::uint64_t export_number) {
  auto one = imports_.lower_bound({pe, export_number, std::numeric_limits<int>::min()});
  while (one != imports_.end() && std::get<0>(one->first) == pe && std::get<1>(one->first) == export_number) {
    one->second.is_forgotten = true;
    one = one->second.copies_under_way == 0 ? release(one) : std::next(one);
  }
}

Imports::Table::iterator Imports::release(Table::iterator one) {
  const memory::Buffer& mapped = one->second.mapped;
  // A mapping that the driver does not give up costs address space, and nobody can do anything about it.
  if (mapped.data != nullptr) (void)memory_.backend(mapped.place.kind)->release_import(mapped.data);
  return imports_.erase(one);
}

void Imports::close() {
  for (auto one = imports_.begin(); one != imports_.end();) one = release(one);
}

}  // namespace weft::channel
