// The number of a team, the same on all of its members.
//
// The rank 0 of a new team gives the number: its PE and a counter of that PE. No PE is asked for numbers.
#pragma once

#include <cstdint>

namespace weft::pgas {

struct TeamId {
  std::uint32_t leader_pe = 0;
  std::uint32_t number = 0;  // of that PE's counter; 0 for the world

  bool operator==(const TeamId&) const = default;
};

}  // namespace weft::pgas
