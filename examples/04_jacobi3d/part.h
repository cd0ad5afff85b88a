// What a block is in both models: its part of the grid, its neighbours, where its time goes, what it answers
// at the end.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/weft.h"

#include "decomposition.h"
#include "field.h"
#include "progress.h"

namespace jacobi3d {

// Where a block's time went.
struct Times {
  double compute_s = 0;
  double pack_s = 0;
};

struct Reporting {
  ProgressProxy progress;
  int every = 0;  // iterations; 0: never

  void pup(weft::Pup& p) { p | progress | every; }
};

class Part {
 public:
  Part(const Problem& problem, const weft::Index& index, Reporting reporting);

  // The faces that have a neighbour, and the neighbour's index.
  const std::vector<int>& faces() const { return faces_; }
  weft::Index neighbour(int face) const;
  std::size_t face_points(int face) const { return field_.face_points(face); }

  // Timed.
  void update();
  void pack(int face, std::span<double> halo);
  void unpack(int face, std::span<const double> halo);

  // Iterations done since the block was made.
  int iteration() const { return iteration_; }

  void start_clock() { times_ = Times{}; }
  const Times& times() const { return times_; }

  std::vector<double> values() const { return field_.values(); }
  std::uint64_t checksum() const { return field_.checksum(problem_.points); }

 private:
  // Adds the time since `start`.
  static void add_time(double& seconds, std::chrono::steady_clock::time_point start) {
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  Problem problem_;
  Triple index_;
  Reporting reporting_;
  HostField field_;
  std::vector<int> faces_;
  int iteration_ = 0;
  Times times_;
};

}  // namespace jacobi3d
