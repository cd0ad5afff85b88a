// Network namespaces for the PEs of a World, so that "ucx-apart" runs over the devices of several hosts.
#pragma once

#include <vector>

namespace weft::conformance {

class Networks {
 public:
  // Files of network namespaces, with commas: PE i has the i-th of them, modulo their number. Unset: all PEs stay in that of
  // the process. tests/multihost/test_conformance.py sets it.
  static constexpr const char* kVariable = "WEFT_TEST_NETWORKS";

  // Throws std::runtime_error if a file cannot be opened.
  Networks();
  ~Networks();
  Networks(const Networks&) = delete;
  Networks& operator=(const Networks&) = delete;

  // What this thread does to the network from now on is done by that PE.
  void enter(int pe);

 private:
  std::vector<int> fds_;
  int entered_ = -1;
};

}  // namespace weft::conformance
