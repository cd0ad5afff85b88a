// SIGTERM, by which a launcher ends a process, as a descriptor for a thread to poll.
//
// Only if the program has no handler of its own. The process does not end before the thread has called end_process(), so the
// thread must be running. One object at a time in a process.
#pragma once

namespace weft::machine::bootstrap {

class TerminationSignal {
 public:
  TerminationSignal();
  ~TerminationSignal();
  TerminationSignal(const TerminationSignal&) = delete;
  TerminationSignal& operator=(const TerminationSignal&) = delete;

  // Readable when the signal has come. -1 if it ends the process at once, or if the program handles it.
  int fd() const { return fd_; }
  // Ends the process as the signal does by itself.
  [[noreturn]] static void end_process();

 private:
  int fd_ = -1;
};

}  // namespace weft::machine::bootstrap
