// How the processes of a job find one another: who am I, how many are we, and one exchange of bytes.
//
// Implementations: singleton (no launcher), local (`weft run`), pmix (srun, prterun, mpiexec). Used by one
// thread. Everything here may block, but ends with an error when a peer or the launcher is gone: kCancelled
// when the launcher ends the job, has said why on stderr, and the PE has only to exit; any other code is for
// the PE to say.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/status.h"

namespace weft::machine {

class Bootstrap {
 public:
  virtual ~Bootstrap() = default;

  virtual std::string_view name() const = 0;
  // Somebody started the PEs together, and says why when they end before they are done.
  virtual bool has_launcher() const { return true; }
  virtual int pe() const = 0;
  virtual int num_pes() const = 0;
  // Position among the PEs of this host, for PE to GPU mapping and for how long idle PEs may spin.
  virtual int local_rank() const = 0;
  virtual int local_size() const = 0;

  // Collective: every PE gives its bytes and gets everybody's, indexed by PE. May be called several times.
  virtual base::Result<std::vector<std::vector<std::byte>>> exchange(const std::vector<std::byte>& mine) = 0;
  // Collective: returns when every PE has called it.
  virtual base::Status barrier() = 0;

  // Tells the launcher that this PE is done and may exit; after it the launcher does not take an exit for a
  // death.
  virtual void finished(int exit_code) = 0;
  // Ends the whole job: `message` goes to stderr once, every PE ends with a non-zero code. Returns, if at
  // all, only so that the caller can exit. For a job that runs: a PE that fails between the collectives of
  // its start says why and exits without finished(), which ends the job too.
  virtual void abort(int exit_code, std::string_view message) = 0;

  // Readable when the launcher has gone or ordered the end of the job; -1 where there is nothing to watch.
  virtual int watch_fd() const = 0;
  // Why watch_fd() is readable, which is what to end with; ok only while it is not. Does not block.
  virtual base::Status watch_status() { return {}; }
};

// Picks by environment: WEFT_BOOTSTRAP (set by `weft run`) gives local, PMIX_NAMESPACE gives pmix, else
// singleton.
base::Result<std::unique_ptr<Bootstrap>> make_bootstrap();

}  // namespace weft::machine
