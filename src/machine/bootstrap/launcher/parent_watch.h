// Watches a process above this one: a launcher's daemon on this host. For launchers without a connection of which a PE
// could see the end.
#pragma once

#include <sys/types.h>

#include "weft/base/status.h"

namespace weft::machine::bootstrap {

class ParentWatch {
 public:
  explicit ParentWatch(pid_t pid);
  ~ParentWatch();
  ParentWatch(const ParentWatch&) = delete;
  ParentWatch& operator=(const ParentWatch&) = delete;

  // Readable when that process has ended. -1 if the system cannot tell.
  int fd() const { return fd_; }
  // kPeerFailed if it has ended. `pe` is for the sentence. Does not block.
  base::Status status(int pe) const;

 private:
  pid_t pid_;
  int fd_;
};

}  // namespace weft::machine::bootstrap
