// A progress bar on stderr.
#pragma once

#include <string>

#include "weft/weft.h"

namespace jacobi3d {

// Whether PE 0's stderr is a terminal.
bool progress_is_visible();

// Lives on PE 0; a block tells it how far it is.
class ProgressBar : public weft::Chare<ProgressBar> {
 public:
  ProgressBar(std::string title, int num_iterations);
  void advance(int iterations_done);
  void clear();

 private:
  std::string title_;
  int num_iterations_;
};

using ProgressProxy = weft::ElementProxy<ProgressBar>;

}  // namespace jacobi3d
