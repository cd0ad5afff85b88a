#include "models/mpi/model.h"

#include "base/format.h"

namespace weft::mpi {

Mpi::Mpi(runtime::Runtime& runtime, const runtime::ModelRange& range)
    : point_to_point_(runtime, range.first_handler) {}

void Mpi::close() { point_to_point_.close(); }

std::vector<std::string> Mpi::report() const {
  const std::size_t messages = point_to_point_.num_unexpected();
  if (messages == 0) return {};
  return {base::format("{} MPI messages were sent to this PE and never received", messages)};
}

}  // namespace weft::mpi
