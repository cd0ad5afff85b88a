// For threads of Weft's own: signals are for the program's threads.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace weft::machine::bootstrap {

// While it exists, signals are blocked in this thread and in threads that it starts.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace weft::machine::bootstrap
