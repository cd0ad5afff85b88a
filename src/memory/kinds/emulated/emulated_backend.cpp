#include "memory/kinds/emulated/emulated_backend.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "base/format.h"

namespace weft::memory {

using base::Result;
using base::Status;
using base::StatusCode;

namespace {

// Leaves room for what is added to a size: rounding up to pages, and a page more in a shared file.
constexpr std::size_t kMaxAllocationBytes = std::numeric_limits<std::ptrdiff_t>::max() / 2;

std::size_t round_up_to_page(std::size_t size_bytes) {
  static const std::size_t page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (size_bytes + page_bytes - 1) / page_bytes * page_bytes;
}

// What the memory is that an error is about.
constexpr const char* kDestination = "destination of a copy";
constexpr const char* kSource = "source of a copy";

Status mapping_failed(const char* call, std::size_t size_bytes) {
  return Status(
      StatusCode::kOutOfMemory,
      base::format(
          "no emulated device memory for {} bytes: {} said '{}' (each allocation takes two mappings: "
          "see also vm.max_map_count)",
          size_bytes, call, std::strerror(errno)));
}

Status no_such_device(int device, int num_devices) {
  return Status(
      StatusCode::kOutOfRange,
      base::format("there is no emulated:{}: this process has {} emulated devices", device, num_devices));
}

// The two mappings of a file: the address for users, which no access reaches, and the view for copies and
// kernels.
struct Mapping {
  void* address = nullptr;
  std::byte* view = nullptr;
};

// Null addresses, and errno, on failure.
Mapping map_twice(void* wanted, std::size_t mapped_bytes, int file) {
  const int fixed = wanted == nullptr ? 0 : MAP_FIXED_NOREPLACE;
  void* const address = ::mmap(wanted, mapped_bytes, PROT_NONE, MAP_SHARED | fixed, file, 0);
  if (address == MAP_FAILED) return {};
  void* const view = ::mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (view != MAP_FAILED) return {address, static_cast<std::byte*>(view)};
  const int error = errno;
  ::munmap(address, mapped_bytes);
  errno = error;
  return {};
}

}  // namespace

EmulatedBackend::EmulatedBackend(int num_devices, const EmulatedFaults& faults)
    : SoftwareKind(Kind::kEmulated, num_devices),
      faults_(faults),
      used_bytes_(static_cast<std::size_t>(num_devices), 0) {}

EmulatedBackend::~EmulatedBackend() {
  for (auto& [base, block] : blocks_) {
    if (block.file && !block.is_import) block.file.mark_freed();
    unmap(block);
  }
}

void EmulatedBackend::set_faults(const EmulatedFaults& faults) {
  faults_ = faults;
  copies_ = 0;
  allocations_ = 0;
}

Result<void*> EmulatedBackend::allocate(std::size_t size_bytes, int device) {
  if (device < 0 || device >= num_devices()) {
    return no_such_device(device, num_devices());
  }
  if (size_bytes == 0) return static_cast<void*>(nullptr);
  if (size_bytes > kMaxAllocationBytes) {
    return Status(StatusCode::kOutOfMemory,
                  base::format("no emulated device memory for {} bytes: an allocation has {} at most",
                               size_bytes, kMaxAllocationBytes));
  }
  const std::size_t used_bytes = used_bytes_[static_cast<std::size_t>(device)];
  if (++allocations_ == faults_.fail_allocation) {
    return Status(StatusCode::kOutOfMemory,
                  base::format("allocation {} of {} bytes on emulated:{} failed, as the fault injection says",
                               allocations_, size_bytes, device));
  }
  if (size_bytes > faults_.device_bytes - std::min(used_bytes, faults_.device_bytes)) {
    return Status(StatusCode::kOutOfMemory,
                  base::format("emulated:{} is full: {} bytes asked for, {} of {} bytes in use", device,
                               size_bytes, used_bytes, faults_.device_bytes));
  }
  return make_block(size_bytes, device);
}

Result<void*> EmulatedBackend::make_block(std::size_t size_bytes, int device) {
  const std::size_t mapped_bytes = round_up_to_page(size_bytes);
  Result<base::SharedFile> file = base::SharedFile::create("weft-emulated", mapped_bytes);
  if (!file.ok()) return file.status();
  const Mapping mapping = map_twice(std::exchange(next_address_, nullptr), mapped_bytes, file->descriptor());
  if (mapping.address == nullptr) return mapping_failed("mmap", size_bytes);
  used_bytes_[static_cast<std::size_t>(device)] += size_bytes;
  add_block(mapping.address, mapping.view, size_bytes, device).refuses_export = faults_.refuse_exports;
  return mapping.address;
}

EmulatedBackend::Block& EmulatedBackend::add_block(void* address, std::byte* view, std::size_t size_bytes,
                                                   int device) {
  Block block;
  block.allocation = {reinterpret_cast<std::uintptr_t>(address), size_bytes,
                      Place{Kind::kEmulated, static_cast<std::int16_t>(device)}, next_generation_++};
  block.mapped_bytes = round_up_to_page(size_bytes);
  block.view = view;
  widen_address_range(block.allocation.base, size_bytes);
  return blocks_.emplace(block.allocation.base, std::move(block)).first->second;
}

void EmulatedBackend::unmap(const Block& block) {
  ::munmap(reinterpret_cast<void*>(block.allocation.base), block.mapped_bytes);
  ::munmap(block.view, block.mapped_bytes);
}

void EmulatedBackend::forget_block(std::uintptr_t base) {
  const Block block = std::move(blocks_.extract(base).mapped());
  notify_release(base);
  unmap(block);
}

Status EmulatedBackend::deallocate(void* data) {
  if (data == nullptr) return {};
  const auto found = blocks_.find(reinterpret_cast<std::uintptr_t>(data));
  if (found == blocks_.end() || found->second.is_import) {
    return Status(
        StatusCode::kInvalidArgument,
        base::format("{} is not the start of an emulated allocation, or it was freed before", data));
  }
  Block& block = found->second;
  used_bytes_[static_cast<std::size_t>(block.allocation.place.device)] -= block.allocation.size_bytes;
  if (block.file) block.file.mark_freed();
  forget_block(found->first);
  return {};
}

// --- between processes

Result<std::vector<std::byte>> EmulatedBackend::export_allocation(const void* address) {
  Block* const block = find_block(reinterpret_cast<std::uintptr_t>(address));
  if (block == nullptr || block->is_import) {
    return Status(
        StatusCode::kInvalidArgument,
        base::format("{} is no emulated device memory of this process: only its owner can export it",
                     address));
  }
  if (block->refuses_export) {
    return Status(
        StatusCode::kUnsupported,
        base::format("{} on {} was allocated in a way that other processes cannot map, as the fault "
                     "injection says",
                     address, place_name(block->allocation.place)));
  }
  if (!block->file) {
    if (Status status = move_to_file(*block); status.failed()) return status;
  }
  return block->file.exported();
}

Status EmulatedBackend::move_to_file(Block& block) {
  const std::size_t size_bytes = block.allocation.size_bytes;
  Result<ExportedFile> file =
      ExportedFile::create(size_bytes, block.mapped_bytes, block.allocation.generation);
  if (!file.ok()) return file.status();
  Result<void*> bytes = file->file().map(0, block.mapped_bytes);
  if (!bytes.ok()) return bytes.status();
  std::memcpy(*bytes, block.view, size_bytes);
  if (::mmap(reinterpret_cast<void*>(block.allocation.base), block.mapped_bytes, PROT_NONE,
             MAP_SHARED | MAP_FIXED, file->file().descriptor(), 0) == MAP_FAILED) {
    Status status = mapping_failed("mmap", size_bytes);
    ::munmap(*bytes, block.mapped_bytes);
    return status;
  }
  ::munmap(std::exchange(block.view, static_cast<std::byte*>(*bytes)), block.mapped_bytes);
  block.file = std::move(*file);
  return {};
}

Result<Buffer> EmulatedBackend::import_allocation(std::span<const std::byte> exported, int device) {
  if (device < 0 || device >= num_devices()) return no_such_device(device, num_devices());
  Result<ExportedFile> file = ExportedFile::open(exported);
  if (!file.ok()) return file.status();
  const Mapping mapping = map_twice(nullptr, file->mapped_bytes(), file->file().descriptor());
  if (mapping.address == nullptr) return mapping_failed("mmap", file->size_bytes());
  Block& block = add_block(mapping.address, mapping.view, file->size_bytes(), device);
  block.file = std::move(*file);
  block.is_import = true;
  ++num_imports_;
  return Buffer{mapping.address, block.allocation.size_bytes, block.allocation.place, nullptr};
}

Status EmulatedBackend::release_import(void* data) {
  const auto found = blocks_.find(reinterpret_cast<std::uintptr_t>(data));
  if (found == blocks_.end() || !found->second.is_import) {
    return Status(
        StatusCode::kInvalidArgument,
        base::format("{} is not the start of imported emulated memory, or it was released before", data));
  }
  --num_imports_;
  forget_block(found->first);
  return {};
}

bool EmulatedBackend::was_freed_by_owner(const void* address) {
  const Block* block = find_block(reinterpret_cast<std::uintptr_t>(address));
  return block != nullptr && block->was_freed_by_owner();
}

EmulatedBackend::Block* EmulatedBackend::find_block(std::uintptr_t address) {
  auto next = blocks_.upper_bound(address);
  if (next == blocks_.begin()) return nullptr;
  Block& block = std::prev(next)->second;
  return block.allocation.contains(address) ? &block : nullptr;
}

std::optional<Allocation> EmulatedBackend::find_allocation(const void* address) {
  const Block* block = find_block(reinterpret_cast<std::uintptr_t>(address));
  if (block == nullptr) return std::nullopt;
  Allocation allocation = block->allocation;
  if (block->was_freed_by_owner()) allocation.generation = 0;
  return allocation;
}

Result<void*> EmulatedBackend::device_view(const void* address, std::size_t size_bytes) {
  const auto start = reinterpret_cast<std::uintptr_t>(address);
  const Block* block = find_block(start);
  if (block == nullptr || size_bytes > block->allocation.base + block->allocation.size_bytes - start) {
    return Status(StatusCode::kInvalidArgument,
                  base::format("{} bytes at {} are not inside one emulated allocation", size_bytes, address));
  }
  return static_cast<void*>(block->view + (start - block->allocation.base));
}

Result<EmulatedBackend::Side> EmulatedBackend::check_side(const char* role, const void* address, Place place,
                                                          std::size_t size_bytes) {
  const auto start = reinterpret_cast<std::uintptr_t>(address);
  const Block* block = find_block(start);
  if (place.is_host() && block == nullptr) return Side{start, 0};
  if (block == nullptr || block->allocation.place != place) {
    return Status(
        StatusCode::kInvalidArgument,
        base::format("the {} at {} is said to be on {}, but is {}", role, address, place_name(place),
                     block == nullptr ? "no emulated memory" : "on " + place_name(block->allocation.place)));
  }
  if (size_bytes > block->allocation.base + block->allocation.size_bytes - start) {
    return Status(
        StatusCode::kOutOfRange,
        base::format("the {} has {} bytes and leaves its memory: {} is {} bytes into an allocation of {} "
                     "bytes on {}",
                     role, size_bytes, address, start - block->allocation.base, block->allocation.size_bytes,
                     place_name(place)));
  }
  return Side{start, block->allocation.generation};
}

Status EmulatedBackend::copy_async(void* destination, Place destination_place, const void* source,
                                   Place source_place, std::size_t size_bytes, StreamHandle stream) {
  if (size_bytes == 0) return {};
  const Place device_place = source_place.is_host() ? destination_place : source_place;
  Result<Side> to = check_side(kDestination, destination, destination_place, size_bytes);
  if (!to.ok()) return to.status();
  Result<Side> from = check_side(kSource, source, source_place, size_bytes);
  if (!from.ok()) return from.status();
  const bool fails = copies_ + 1 == faults_.fail_copy;
  const auto work = [this, to = *to, from = *from, size_bytes, fails, polls = 0]() mutable {
    if (++polls < faults_.polls_per_copy) return Status::pending();
    return fails ? injected_failure(to, size_bytes) : copy_now(to, from, size_bytes);
  };
  Status status = streams_.enqueue(stream, device_place.device, work);
  if (status.ok()) ++copies_;
  return status;
}

Result<void*> EmulatedBackend::reach(const char* role, const Side& side, std::size_t size_bytes) {
  if (side.generation == 0) return reinterpret_cast<void*>(side.address);
  const Block* block = find_block(side.address);
  if (block == nullptr || block->allocation.generation != side.generation) {
    return Status(
        StatusCode::kInvalidArgument,
        base::format(
            "the {}, {} bytes of emulated device memory at {:#x}, was freed while a stream had to use it: "
            "keep it until the stream has done that",
            role, size_bytes, side.address));
  }
  if (block->was_freed_by_owner()) {
    return Status(
        StatusCode::kInvalidArgument,
        base::format("the {}, {} bytes of emulated device memory at {:#x}, belongs to another process, which "
                     "has freed it",
                     role, size_bytes, side.address));
  }
  return static_cast<void*>(block->view + (side.address - block->allocation.base));
}

Status EmulatedBackend::injected_failure(const Side& destination, std::size_t size_bytes) {
  return Status(
      StatusCode::kInternal,
      base::format("the copy of {} bytes to {:#x} by an emulated device failed, as the fault injection says",
                   size_bytes, destination.address));
}

Status EmulatedBackend::copy_now(const Side& destination, const Side& source, std::size_t size_bytes) {
  Result<void*> to = reach(kDestination, destination, size_bytes);
  if (!to.ok()) return to.status();
  Result<void*> from = reach(kSource, source, size_bytes);
  if (!from.ok()) return from.status();
  std::memmove(*to, *from, size_bytes);
  return {};
}

Status EmulatedBackend::inject_faults(std::string_view text) {
  Result<EmulatedFaults> faults = parse_emulated_faults(text);
  if (!faults.ok()) return faults.status();
  set_faults(*faults);
  return {};
}

Status EmulatedBackend::launch(StreamHandle stream, int device, Kernel kernel) {
  return streams_.enqueue(stream, device, std::move(kernel));
}

Result<void*> EmulatedBackend::allocate_host(std::size_t size_bytes, int) {
  void* data = std::malloc(size_bytes);
  if (data == nullptr) {
    return Status(StatusCode::kOutOfMemory,
                  base::format("no host memory for {} bytes of staging", size_bytes));
  }
  return data;
}

void EmulatedBackend::deallocate_host(void* data) { std::free(data); }

}  // namespace weft::memory
