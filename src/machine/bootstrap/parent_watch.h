// Watches the process that started this one: a launcher's daemon on this host. For launchers without a connection
// of which a PE could see the end.
#pragma once

#include <sys/types.h>

#include "weft/base/status.h"

namespace weft::machine::bootstrap {

class ParentWatch {
 public:
  ParentWatch();
  ~ParentWatch();
  ParentWatch(const ParentWatch&) = delete;
  ParentWatch& operator=(const ParentWatch&) = delete;

  // Readable when the parent has ended. -1 if the system cannot tell.
  int fd() const { return fd_; }
  // kPeerFailed if the parent has ended. `pe` is for the sentence. Does not block.
  base::Status status(int pe) const;

 private:
  pid_t pid_;
  int fd_;
};

}  // namespace weft::machine::bootstrap
