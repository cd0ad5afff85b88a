#include "messaging_block.h"

#include <algorithm>
#include <utility>

namespace jacobi3d {
namespace {

std::span<double> values_of(const weft::Buffer& buffer) {
  return {static_cast<double*>(buffer.data), buffer.size_bytes / sizeof(double)};
}

}  // namespace

MessagingBlock::MessagingBlock(Setup setup) : part_(runtime(), index(), std::move(setup)) {
  for (Arrivals& slot : arrivals_) slot.all = weft::Future<>(runtime());
}

weft::Task<> MessagingBlock::run(int iterations) {
  for (int i = 0; i < iterations; ++i) {
    const int slot = part_.slot();
    co_await send_halos(slot);
    if (!part_.faces().empty()) co_await arrivals(slot).all;
    unpack(slot);
    part_.update();
    // Alone in the grid: let others have a turn.
    if (part_.faces().empty()) co_await runtime().sleep(0);
  }
  co_await part_.finish();
}

weft::Task<> MessagingBlock::send_halos(int slot) {
  if (part_.field().place().is_host()) {
    for (int face : part_.faces()) {
      std::vector<double> values(part_.field().face_points(face));
      Halos halos;
      halos.add(face, values.data());
      part_.field().pack(halos);
      send_halo(face, std::move(values));
    }
    co_return;
  }
  co_await part_.buffers().pack(slot);
  for (int face : part_.faces()) {
    std::span<double> values = values_of(part_.buffers().outgoing(face, slot));
    send_halo(face, std::vector<double>(values.begin(), values.end()));
  }
}

void MessagingBlock::send_halo(int face, std::vector<double> values) {
  proxy()[part_.neighbour(face)].send<&MessagingBlock::halo>(part_.iteration(), opposite(face),
                                                             std::move(values));
}

void MessagingBlock::halo(int iteration, int face, std::vector<double> values) {
  Arrivals& slot = arrivals(iteration % kNumSlots);
  slot.values[static_cast<std::size_t>(face)] = std::move(values);
  if (++slot.count == part_.faces().size()) slot.all.set();
}

void MessagingBlock::unpack(int slot) {
  Arrivals arrived = std::exchange(arrivals(slot), {{}, 0, weft::Future<>(runtime())});
  const bool on_host = part_.field().place().is_host();
  Halos halos;
  for (int face : part_.faces()) {
    std::vector<double>& values = arrived.values[static_cast<std::size_t>(face)];
    if (on_host) {
      halos.add(face, values.data());
    } else {
      std::copy(values.begin(), values.end(), values_of(part_.buffers().incoming(face, slot)).begin());
    }
  }
  if (on_host) {
    part_.field().unpack(halos);
  } else {
    part_.buffers().unpack(slot);
  }
}

}  // namespace jacobi3d
