// The particles and the grid points of one block; pic_particles.py is the same in Python.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/weft.h"

#include "kernels.h"
#include "problem.h"

namespace pic {

// move(), and then put_in() for what each partner has sent, are one step.
class Particles {
 public:
  Particles() = default;
  Particles(const Problem& problem, std::int64_t block);

  void pup(weft::Pup& p);

  // Moves all particles, and takes those out that leave the block. Throws std::runtime_error naming a particle that has got
  // further than to a partner.
  void move();
  const std::vector<std::int64_t>& partners() const { return partners_; }
  // The particles that go to each partner, in the order of partners(), valid until the next move().
  const std::vector<std::span<const double>>& outgoing() const { return outgoing_; }
  // Adds the particles of a message. Throws std::runtime_error if these are no particles of this block.
  void put_in(std::span<const double> incoming);

  const Fields& fields() const { return fields_; }
  std::size_t count() const { return fields_[kX].size(); }
  double compute_s() const { return compute_s_; }
  void restart_clock() { compute_s_ = 0; }

 private:
  // All that follows from the rest, and does not travel.
  void prepare();

  Problem problem_;
  std::int64_t block_ = 0;
  Fields fields_;
  std::vector<double> grid_;
  double compute_s_ = 0;

  Geometry geometry_;
  std::vector<std::int64_t> partners_;
  std::vector<Leaving> leaving_;
  std::vector<std::size_t> counts_;
  std::vector<double> buffer_;
  std::vector<std::span<const double>> outgoing_;
};

}  // namespace pic
