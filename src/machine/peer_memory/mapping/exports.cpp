#include "machine/peer_memory/mapping/exports.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/format.h"

namespace weft::machine {

namespace {

bool overlap(const memory::Allocation& one, const memory::Allocation& other) {
  return one.base - other.base < other.size_bytes || other.base - one.base < one.size_bytes;
}

}  // namespace

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
  is_new = found == exports_.end() || found->second->allocation.generation != allocation.generation;
  if (is_new) {
    release_earlier(allocation);
    make_room();
    found = exports_.emplace(allocation.base, std::make_shared<Export>()).first;
    found->second->allocation = allocation;
    export_now(*found->second, buffer);
  }
  found->second->last_use = ++uses_;
  return found->second;
}

void Exports::release_earlier(const memory::Allocation& allocation) {
  auto one = exports_.lower_bound(allocation.base);
  if (one != exports_.begin() && overlap(std::prev(one)->second->allocation, allocation)) --one;
  while (one != exports_.end() && overlap(one->second->allocation, allocation)) {
    const auto next = std::next(one);
    if (one->second->allocation.generation != allocation.generation) release(one);
    one = next;
  }
}

bool Exports::overlaps_old_mapping(const memory::ConstBuffer& buffer) {
  if ((exports_.empty() && old_mappings_.empty()) || buffer.size_bytes == 0) return false;
  const memory::Allocation allocation = memory_.allocation_of(buffer.data);
  release_earlier(allocation);
  return std::ranges::any_of(old_mappings_, [&](const auto& one) {
    const memory::Allocation& old = one.second.allocation;
    return old.generation != allocation.generation && overlap(old, allocation);
  });
}

void Exports::forgotten(int pe, std::uint64_t number) {
  const auto found = old_mappings_.find(number);
  if (found == old_mappings_.end()) return;
  std::erase(found->second.pes, pe);
  if (found->second.pes.empty()) old_mappings_.erase(found);
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
          one.allocation.size_bytes,
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
  if (released->told.empty()) return;
  old_mappings_[released->number] = {released->allocation, released->told};
  for (const int pe : released->told) forget_(pe, released->number);
}

}  // namespace weft::machine
