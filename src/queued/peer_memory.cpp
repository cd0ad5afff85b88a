#include "queued/peer_memory.h"

#include "weft/base/error.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "memory/memory.h"

namespace weft::queued {

runtime::Task<rma::Segment> make_words(rma::GlobalMemory& memory, std::size_t size_bytes,
                                       memory::Place device) {
  rma::Segment words = memory.make_segment(size_bytes, device);
  const std::vector<std::byte> zeros(size_bytes);
  co_await memory.put_memory({zeros.data(), size_bytes}, words.address());
  co_return words;
}

runtime::Task<void*> PeerMemory::reach(rma::GlobalAddress address, std::size_t size_bytes,
                                       std::size_t alignment) {
  co_await memory_.learn(address);
  rma::GlobalMemory::HeldMemory found = memory_.hold(address, size_bytes);
  const memory::Place place = found.memory.place;
  // Memory of other PEs is mapped for the PE's own device, and memory of this PE may be on another one.
  const bool is_reached =
      found.keeper != nullptr &&
      (place == device_ ||
       (address.pe() == memory_.runtime().pe() && place.kind == device_.kind &&
        memory_.runtime().memory().backend(device_.kind)->can_access_peer(device_.device, place.device)));
  if (!is_reached) {
    throw base::Error(
        base::StatusCode::kUnsupported,
        base::format("{}: {} of PE {} does not reach {}; use a weft::Channel, or MPI_Send in MPI programs: "
                     "transfers that the CPU orders",
                     name_(), memory::place_name(device_), memory_.runtime().pe(), rma::describe(address)));
  }
  if (reinterpret_cast<std::uintptr_t>(found.memory.data) % alignment != 0) {
    base::refuse_claim(base::format("{}: {} is said to hold words, and is not aligned to {}", name_(),
                                    rma::describe(address), alignment));
  }
  keepers_.push_back(std::move(found.keeper));
  co_return found.memory.data;
}

}  // namespace weft::queued
