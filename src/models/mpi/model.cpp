#include "models/mpi/model.h"

#include <cstddef>
#include <string_view>

#include "base/format.h"

namespace weft::mpi {

Mpi::Mpi(runtime::Runtime& runtime, const runtime::ModelRange& range)
    : runtime_(runtime),
      engines_(runtime, range),
      survival_(runtime, engines_, range.first_handler + PointToPoint::kNumHandlers) {}

void Mpi::close() { engines_.close(); }

std::vector<runtime::ModelOption> Mpi::options() {
  return {{"WEFT_CHECK", "1 or 0", [this](std::string_view value) {
             checks_calls_ = value == "1";
             return value.empty() || value == "0" || value == "1";
           }}};
}

std::vector<std::pair<std::string, std::string>> Mpi::fingerprint() const {
  return {{"the map of MPI ranks to PEs (WEFT_MPI_RANKS, WEFT_MPI_RANK_MAP)", engines_.map().fingerprint()},
          {"check mode of MPI (WEFT_CHECK)", checks_calls_ ? "on" : "off"}};
}

std::vector<std::string> Mpi::report() const {
  std::size_t messages = 0;
  for (const auto& engine : engines_.engines()) messages += engine->num_unexpected();
  if (messages == 0) return {};
  return {base::format("{} MPI messages were sent to this PE and never received", messages)};
}

}  // namespace weft::mpi
