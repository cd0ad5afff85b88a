// The MPI model of one PE: what ranks on it share.
//
// Threads: the PE's.
#pragma once

#include <string>
#include <vector>

#include "weft/runtime/runtime.h"

#include "models/mpi/p2p/point_to_point.h"

namespace weft::mpi {

class Mpi final : public runtime::Model {
 public:
  static constexpr runtime::ModelNeeds kNeeds{
      .name = "mpi", .num_handlers = PointToPoint::kNumHandlers, .uses_tags = false};

  Mpi(runtime::Runtime& runtime, const runtime::ModelRange& range);

  PointToPoint& point_to_point() { return point_to_point_; }

  // --- runtime::Model
  void close() override;
  std::vector<std::string> report() const override;

 private:
  PointToPoint point_to_point_;
};

}  // namespace weft::mpi
