// The folder of a memory kind that exists in one test only. Its device keeps each byte inverted, so bytes that
// did not pass through the kind's own copies are wrong.
#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "memory/kinds/kind_factory.h"
#include "memory/kinds/memory_options.h"
#include "memory/kinds/software/software_kind.h"
#include "tests/unit/memory/new_kind/throw_away/throw_away_options.h"

namespace weft::memory {

using base::Result;
using base::Status;
using base::StatusCode;

namespace {

class ThrowAwayBackend final : public SoftwareKind {
 public:
  explicit ThrowAwayBackend(int num_devices) : SoftwareKind(Kind::kThrowAway, num_devices) {}

  std::string device_name(int) const override { return "inverting device"; }
  bool cpu_accessible() const override { return false; }

  Result<void*> allocate(std::size_t size_bytes, int device) override {
    auto bytes = std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[size_bytes]);
    if (bytes == nullptr) return Status(StatusCode::kOutOfMemory, "no memory on the inverting device");
    const auto base = reinterpret_cast<std::uintptr_t>(bytes.get());
    widen_address_range(base, size_bytes);
    Block& block = blocks_[base];
    block.bytes = std::move(bytes);
    block.allocation = {base, size_bytes, Place{Kind::kThrowAway, static_cast<std::int16_t>(device)},
                        ++num_allocations_};
    return reinterpret_cast<void*>(base);
  }
  Status deallocate(void* data) override {
    const auto base = reinterpret_cast<std::uintptr_t>(data);
    if (blocks_.erase(base) == 0) return Status(StatusCode::kInvalidArgument, "no such allocation");
    notify_release(base);
    return {};
  }
  std::optional<Allocation> find_allocation(const void* address) override {
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    const auto next = blocks_.upper_bound(number);
    if (next == blocks_.begin()) return std::nullopt;
    const Allocation& allocation = std::prev(next)->second.allocation;
    return allocation.contains(number) ? std::optional(allocation) : std::nullopt;
  }
  bool is_current(const Allocation&, const void*) override { return true; }

  Status copy_async(void* destination, Place destination_place, const void* source, Place source_place,
                    std::size_t size_bytes, StreamHandle stream) override {
    const bool is_inverted = destination_place.is_host() != source_place.is_host();
    const auto mask = is_inverted ? std::byte{0xff} : std::byte{0};
    const int device = source_place.is_host() ? destination_place.device : source_place.device;
    return streams_.enqueue(stream, device, [=] {
      auto* const to = static_cast<std::byte*>(destination);
      const auto* const from = static_cast<const std::byte*>(source);
      for (std::size_t i = 0; i < size_bytes; ++i) to[i] = from[i] ^ mask;
      return Status();
    });
  }
  Result<void*> allocate_host(std::size_t size_bytes, int) override { return std::malloc(size_bytes); }
  void deallocate_host(void* data) override { std::free(data); }

 private:
  struct Block {
    std::unique_ptr<std::byte[]> bytes;
    Allocation allocation;
  };
  std::map<std::uintptr_t, Block> blocks_;
  std::uint64_t num_allocations_ = 0;
};

Status read_environment(MemoryOptions& options) {
  const char* const devices = std::getenv("WEFT_THROW_AWAY_DEVICES");
  if (devices == nullptr) return {};
  options.of<ThrowAwayOptions>().num_devices = std::atoi(devices);
  if (options.of<ThrowAwayOptions>().num_devices > 0) return {};
  return Status(StatusCode::kInvalidArgument, "WEFT_THROW_AWAY_DEVICES is no number of devices");
}

Result<std::unique_ptr<KindBackend>> make(const MemoryOptions& options) {
  return std::unique_ptr<KindBackend>(
      std::make_unique<ThrowAwayBackend>(options.of<ThrowAwayOptions>().num_devices));
}

}  // namespace

const KindFactory kinds::throw_away = {NativeApi::kNone, &read_environment, &make};

}  // namespace weft::memory
