// Ends this process if a call takes too long: a launcher that is asked to end the job may hang.
#pragma once

#include <thread>

namespace weft::machine {

class ExitDeadline {
 public:
  // If it still exists after `limit_ms`, it prints that PE `pe` ends, and the process exits with `exit_code`. If the
  // system has no descriptor or thread left, there is no limit.
  ExitDeadline(int limit_ms, int pe, int exit_code);
  ~ExitDeadline();
  ExitDeadline(const ExitDeadline&) = delete;
  ExitDeadline& operator=(const ExitDeadline&) = delete;

 private:
  int stop_fd_;
  std::thread thread_;
};

}  // namespace weft::machine
