#include "models/channel/exports.h"

#include <algorithm>
#include <utility>

#include "models/channel/mailbox.h"

namespace weft::channel {

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

Exports::Export* Exports::find(const memory::Buffer& buffer) {
  const memory::Allocation allocation = memory_.allocation_of(buffer.data);
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(buffer.data) - allocation.base;
  if (allocation.generation == 0 || buffer.size_bytes > allocation.size_bytes - offset) return nullptr;
  auto found = exports_.find(allocation.base);
  if (found != exports_.end() && found->second.allocation.generation != allocation.generation) {
    release(found);
    found = exports_.end();
  }
  if (found == exports_.end()) {
    make_room();
    found = exports_.emplace(allocation.base, make(buffer, allocation)).first;
  }
  found->second.last_use = ++uses_;
  return found->second.bytes.empty() ? nullptr : &found->second;
}

Exports::Export Exports::make(const memory::Buffer& buffer, const memory::Allocation& allocation) {
  Export result{next_number_++, allocation, {}, {}, 0};
  auto bytes = memory_.backend(allocation.place.kind)->export_allocation(buffer.data);
  if (bytes.ok() && bytes->size() <= kMaxExportedBytes) result.bytes = std::move(bytes).value();
  return result;
}

void Exports::make_room() {
  if (exports_.size() < max_exports_) return;
  release(std::ranges::min_element(exports_, {}, [](const auto& one) { return one.second.last_use; }));
}

void Exports::release(Table::iterator one) {
  const Export released = std::move(one->second);
  exports_.erase(one);
  for (const int pe : released.told) forget_(pe, released.number);
}

}  // namespace weft::channel
