// A connection to a PE on a neighbouring host; host_links.h says what it is for.
#pragma once

namespace weft::machine {

struct HostLink {
  int fd = -1;
  int pe = -1;  // at the other end
};

}  // namespace weft::machine
