#include "queued/peer_memory.h"

#include "weft/base/error.h"

#include "base/format.h"
#include "memory/memory.h"
#include "rma/copy/batch.h"

namespace weft::queued {

runtime::Task<rma::Segment> make_words(rma::GlobalMemory& memory, std::size_t size_bytes,
                                       memory::Place device) {
  rma::Segment words = memory.make_segment(size_bytes, device);
  const std::vector<std::byte> zeros(size_bytes);
  rma::Batch batch(memory.runtime());
  batch.start([&](base::Completion* completion) {
    return memory.runtime().memory().copy(words.buffer(), memory::ConstBuffer(zeros.data(), size_bytes),
                                          completion);
  });
  co_await batch;
  base::check(batch.status());
  co_return words;
}

runtime::Task<void*> PeerMemory::reach(const rma::GlobalAddress& address, std::size_t size_bytes) {
  co_await memory_.learn(address);
  rma::GlobalMemory::HeldMemory found = memory_.hold(address, size_bytes);
  if (found.keeper == nullptr || found.memory.place.kind != device_.kind) {
    throw base::Error(
        base::StatusCode::kUnsupported,
        base::format("{}: {} of PE {} does not reach {}; use a weft::Channel, or MPI_Send in MPI programs: "
                     "transfers that the CPU orders",
                     name_(), memory::place_name(device_), memory_.runtime().pe(), rma::describe(address)));
  }
  keepers_.push_back(std::move(found.keeper));
  co_return found.memory.data;
}

}  // namespace weft::queued
