// Shared by the blocks of a PE: the memory of their points, and where the PE's time went.
#pragma once

#include <memory>
#include <vector>

#include "weft/weft.h"

#include "kernels.h"

namespace jacobi3d {

// Where a PE's time went: the time in which a kernel of one of its blocks ran.
struct Times {
  double compute_s = 0;
  double pack_s = 0;
};

// Time in which several blocks update counts once. It counts as compute even if another block packs.
Times add_up(std::vector<Interval> intervals);

// How the program is to run; see --help.
struct Placement {
  weft::Kind memory = weft::Kind::kHost;
  // Faces are copied to host memory, sent from there, and copied back.
  bool host_staging = false;

  void pup(auto& p) { p | memory | host_staging; }
};

class Device : public weft::Chare<Device> {
 public:
  explicit Device(Placement placement);

  // For the blocks of this PE.
  weft::Place place() const { return place_; }
  bool host_staging() const { return placement_.host_staging; }
  KernelDevice& kernels() { return *kernels_; }
  void add(std::vector<Interval> intervals);

  // Where the time went since the last call.
  Times take_times();

 private:
  Placement placement_;
  weft::Place place_;
  std::unique_ptr<KernelDevice> kernels_;
  std::vector<Interval> intervals_;
};

// Throws UserError, one sentence, if this program or this machine cannot do that.
void expect_usable(weft::Runtime& runtime, const Placement& placement);

}  // namespace jacobi3d
