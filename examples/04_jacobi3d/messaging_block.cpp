#include "messaging_block.h"

#include <utility>

namespace jacobi3d {

MessagingBlock::MessagingBlock(Problem problem, Reporting reporting)
    : part_(problem, index(), std::move(reporting)) {}

weft::Task<Times> MessagingBlock::run(int iterations) {
  last_iteration_ += iterations;
  part_.start_clock();
  finished_ = weft::Future<>(runtime());
  if (iterations == 0) co_return part_.times();
  send_halos();
  advance();
  co_await finished_;
  co_return part_.times();
}

void MessagingBlock::send_halos() {
  for (int face : part_.faces()) {
    std::vector<double> values(part_.face_points(face));
    part_.pack(face, values);
    proxy()[part_.neighbour(face)].send<&MessagingBlock::halo>(part_.iteration(), opposite(face),
                                                               std::move(values));
  }
}

void MessagingBlock::halo(int iteration, int face, std::vector<double> values) {
  if (iteration != part_.iteration()) {
    early_[static_cast<std::size_t>(face)] = std::move(values);
    return;
  }
  accept(face, std::move(values));
  advance();
}

void MessagingBlock::accept(int face, std::vector<double> values) {
  part_.unpack(face, values);
  ++num_halos_;
}

void MessagingBlock::advance() {
  while (part_.iteration() < last_iteration_ && num_halos_ == part_.faces().size()) {
    part_.update();
    num_halos_ = 0;
    for (int face : part_.faces()) {
      auto& values = early_[static_cast<std::size_t>(face)];
      if (!values.empty()) accept(face, std::exchange(values, {}));
    }
    if (part_.iteration() == last_iteration_) return finished_.set();
    send_halos();
    // Alone in the grid: let others have a turn.
    if (part_.faces().empty()) return proxy()[index()].send<&MessagingBlock::advance>();
  }
}

}  // namespace jacobi3d
