// The kernels on the particles of a block; those of pic_numba.py compute the same to the last bit.
//
// Particles lie field by field: `fields` points to an array for each field, of at least `count` elements.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem.h"

namespace pic {

// What does not change about a block.
struct Geometry {
  std::int64_t size = 0;
  Area area;
  std::int64_t blocks_x = 1;
  std::int64_t blocks_y = 1;
  std::vector<std::int32_t> slot_of_block;  // one slot for each partner; -1: no partner
};

// A particle that leaves: its place, and the slot of the block into which it goes.
struct Leaving {
  std::int32_t place = 0;
  std::int32_t slot = 0;
};

// One step of all particles. `grid` holds the charges of the points around the block's cells.
void move(Fields& fields, std::span<const double> grid, const Geometry& geometry);

// The particles outside of the block, in the order of their places, and their number in each slot. Throws
// std::runtime_error naming a particle that has got to a block that is no partner.
void find_leaving(const Fields& fields, const Geometry& geometry, std::vector<Leaving>& leaving,
                  std::vector<std::size_t>& counts);

// Takes these particles out. Those of a slot lie together in `outgoing`, field by field. The last particles fill the gaps.
// REQUIRES: `outgoing` has room for kNumFields numbers for each of them.
void take_out(Fields& fields, std::span<const Leaving> leaving, std::span<const std::size_t> counts,
              std::span<double> outgoing);

// Adds particles, which lie field by field in `incoming`. Throws std::runtime_error if one is outside of the block.
void put_in(Fields& fields, std::span<const double> incoming, const Area& area);

}  // namespace pic
