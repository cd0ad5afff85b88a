#include "models/pgas/team/collective_type.h"

#include <array>

#include "weft/base/error.h"

#include "base/format.h"

namespace weft::pgas {

std::string_view name_of(CollectiveKind kind) {
  static constexpr std::array<std::string_view, static_cast<std::size_t>(CollectiveKind::kNumKinds)> kNames =
      {"broadcast",          "reduce",          "allreduce",          "allgather",
       "broadcast_in_place", "reduce_in_place", "allreduce_in_place", "barrier"};
  const auto number = static_cast<std::size_t>(kind);
  return number < kNames.size() ? kNames[number] : std::string_view("an unknown collective");
}

CollectiveType CollectiveType::of(CollectiveKind kind, int root, runtime::Reducer reducer, std::uint64_t type,
                                  int way) {
  const std::uint64_t data =
      (type ^ static_cast<std::uint64_t>(reducer) ^ (static_cast<std::uint64_t>(root >> 8) << 32)) *
      0x9e3779b97f4a7c15;
  return {static_cast<std::uint8_t>(static_cast<int>(kind) | way << 4), static_cast<std::uint8_t>(root),
          static_cast<std::uint16_t>(data >> 48)};
}

std::exception_ptr wrong_size(CollectiveKind kind, int from, std::size_t arrived_bytes, int rank,
                              std::size_t awaited_bytes) {
  // Parts of equal size are of other elements.
  const std::string what = arrived_bytes == awaited_bytes
                               ? base::format("rank {} gave another number of elements to {} than rank {}",
                                              from, name_of(kind), rank)
                               : base::format("rank {} gave {} bytes to {} and rank {} {}", from,
                                              arrived_bytes, name_of(kind), rank, awaited_bytes);
  return std::make_exception_ptr(
      base::Error(base::StatusCode::kInvalidArgument, what + "; all ranks give equally many elements"));
}

std::string difference(const CollectiveType& mine, const CollectiveType& theirs, int rank) {
  std::string what;
  if (mine.kind() != theirs.kind()) {
    what =
        base::format("rank {} calls {} and this rank {}", rank, name_of(theirs.kind()), name_of(mine.kind()));
  } else if (mine.root != theirs.root) {
    what = base::format("rank {} calls {} with root {} and this rank with root {}", rank,
                        name_of(mine.kind()), theirs.root, mine.root);
  } else {
    what = base::format("rank {} calls {} with another {} than this rank", rank, name_of(mine.kind()),
                        mine.data != theirs.data ? "type, operator or root" : "number of elements");
  }
  return base::format("{}; all ranks of a team call the same collectives in the same order", what);
}

}  // namespace weft::pgas
