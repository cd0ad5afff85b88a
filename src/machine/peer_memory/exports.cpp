#include "machine/peer_memory/exports.h"

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace weft::machine {

void Exports::Export::tell(int pe) {
  if (std::ranges::find(told, pe) == told.end()) told.push_back(pe);
}

Exports::Exports(memory::Memory& memory, Forget forget, std::size_t max_exports)
    : memory_(memory), forget_(std::move(forget)), max_exports_(max_exports) {
  memory_.set_release_listener([this](std::uintptr_t base) {
    if (auto found = exports_.find(base); found != exports_.end()) release(found);
  });
}

Exports::~Exports() { memory_.set_release_listener({}); }

std::shared_ptr<Exports::Export> Exports::find(const memory::ConstBuffer& buffer) {
  bool is_new = false;
  std::shared_ptr<Export> one = entry(buffer, is_new);
  return one == nullptr || is_new || one->bytes.empty() ? nullptr : one;
}

std::shared_ptr<Exports::Export> Exports::make(const memory::ConstBuffer& buffer) {
  bool is_new = false;
  std::shared_ptr<Export> one = entry(buffer, is_new);
  return one == nullptr || one->bytes.empty() ? nullptr : one;
}

bool Exports::cannot_export(const memory::ConstBuffer& buffer) {
  if (buffer.size_bytes == 0 || buffer.place.is_host()) return false;
  const memory::Allocation allocation = memory_.allocation_of(buffer.data);
  const auto found = exports_.find(allocation.base);
  if (found != exports_.end() && found->second->allocation.generation == allocation.generation) {
    const std::size_t offset = reinterpret_cast<std::uintptr_t>(buffer.data) - allocation.base;
    if (buffer.size_bytes <= allocation.size_bytes - offset) return found->second->bytes.empty();
  }
  if (first_failure_.ok()) {
    first_failure_ = {
        base::StatusCode::kUnsupported,
        base::format("{} bytes of {} at {} are not in one allocation that other processes can map",
                     buffer.size_bytes, memory::place_name(buffer.place), buffer.data)};
  }
  return true;
}

std::shared_ptr<Exports::Export> Exports::entry(const memory::ConstBuffer& buffer, bool& is_new) {
  const memory::Allocation allocation = memory_.allocation_of(buffer.data);
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(buffer.data) - allocation.base;
  if (allocation.generation == 0 || buffer.size_bytes > allocation.size_bytes - offset) return nullptr;
  auto found = exports_.find(allocation.base);
  if (found != exports_.end() && found->second->allocation.generation != allocation.generation) {
    release(found);
    found = exports_.end();
  }
  is_new = found == exports_.end();
  if (is_new) {
    make_room();
    found = exports_.emplace(allocation.base, std::make_shared<Export>()).first;
    found->second->allocation = allocation;
    export_now(*found->second, buffer);
  }
  found->second->last_use = ++uses_;
  return found->second;
}

void Exports::export_now(Export& one, const memory::ConstBuffer& buffer) {
  one.number = next_number_++;
  auto bytes = memory_.backend(one.allocation.place.kind)->export_allocation(buffer.data);
  if (bytes.ok() && bytes->size() <= kMaxExportedBytes) {
    one.bytes = std::move(bytes).value();
  } else if (first_failure_.ok()) {
    first_failure_ = bytes.status();
  }
}

PeerBuffer Exports::name(const Export& one, const memory::ConstBuffer& buffer) {
  return {one.number,
          one.allocation.base,
          reinterpret_cast<std::uintptr_t>(buffer.data) - one.allocation.base,
          buffer.size_bytes,
          one.allocation.place,
          static_cast<std::uint32_t>(one.bytes.size())};
}

void Exports::make_room() {
  if (exports_.size() < max_exports_) return;
  auto oldest = exports_.end();
  for (auto one = exports_.begin(); one != exports_.end(); ++one) {
    if (one->second.use_count() > 1) continue;
    if (oldest == exports_.end() || one->second->last_use < oldest->second->last_use) oldest = one;
  }
  if (oldest != exports_.end()) release(oldest);
}

void Exports::release(Table::iterator one) {
  const std::shared_ptr<Export> released = std::move(one->second);
  exports_.erase(one);
  for (const int pe : released->told) forget_(pe, released->number);
}

}  // namespace weft::machine
