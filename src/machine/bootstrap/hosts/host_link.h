// A connection to a PE on a neighbouring host; host_links.h says what it is for.
#pragma once

namespace weft::machine {

struct HostLink {
  int fd = -1;
  int pe = -1;                // at the other end
  bool was_accepted = false;  // its own port is that of the listener
};

}  // namespace weft::machine
