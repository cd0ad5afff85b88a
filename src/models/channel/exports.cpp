#include "models/channel/exports.h"

#include <algorithm>
#include <utility>

#include "models/channel/mailbox.h"

namespace weft::channel {

namespace {
// Allocations that other libraries have freed are noticed when their address is used again; this bounds them.
constexpr std::size_t kMaxExports = 1024;
}  // namespace

void Exports::Export::tell(int pe) {
  if (std::ranges::find(told, pe) == told.end()) told.push_back(pe);
}

Exports::Exports(memory::Memory& memory, Forget forget) : memory_(memory), forget_(std::move(forget)) {
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
    while (exports_.size() >= kMaxExports) release(exports_.begin());
    found = exports_.emplace(allocation.base, make(buffer, allocation)).first;
  }
  return found->second.bytes.empty() ? nullptr : &found->second;
}

Exports::Export Exports::make(const memory::Buffer& buffer, const memory::Allocation& allocation) {
  Export result{next_number_++, allocation, {}, {}};
  auto bytes = memory_.backend(allocation.place.kind)->export_allocation(buffer.data);
  if (bytes.ok() && bytes->size() <= kMaxExportedBytes) result.bytes = std::move(bytes).value();
  return result;
}

void Exports::release(Table::iterator one) {
  const Export released = std::move(one->second);
  exports_.erase(one);
  for (const int pe : released.told) forget_(pe, released.number);
}

}  // namespace weft::channel
