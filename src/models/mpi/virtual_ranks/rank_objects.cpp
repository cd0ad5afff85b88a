#include "models/mpi/virtual_ranks/rank_objects.h"

#include <algorithm>
#include <utility>

namespace weft::mpi {

bool RankObjects::can_move(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kCommunicator:
    case ObjectKind::kDatatype:
    case ObjectKind::kErrorHandler:
    case ObjectKind::kGroup:
    case ObjectKind::kInfo:
    case ObjectKind::kOperation:
      return true;
    default:
      return false;
  }
}

std::vector<Object*> RankObjects::in_order() const {
  std::vector<std::pair<std::uint64_t, Object*>> numbered;
  numbered.reserve(numbers_.size());
  for (const auto& [object, number] : numbers_) numbered.emplace_back(number, object);
  std::ranges::sort(numbered);
  std::vector<Object*> objects;
  objects.reserve(numbered.size());
  for (const auto& [number, object] : numbered) objects.push_back(object);
  return objects;
}

}  // namespace weft::mpi
