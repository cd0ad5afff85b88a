// A thread that sleeps until the launcher has gone or ends the job. It wakes an idle PE and ends a busy one.
//
// REQUIRES: the bootstrap's collectives are not called while a watch exists: they read from the watched
// connection.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "machine/bootstrap/bootstrap.h"

namespace weft::machine {

class LauncherWatch {
 public:
  // `on_word` is called on the watch's thread when watch_fd() is readable; it should make the PE's thread call
  // watch_status(), and end or call go_on(). Until then the watch does not call it again. If the PE has not destroyed
  // its watch kGraceMs later, the watch ends the process if the word ends it. Fails if the system has no descriptor or
  // thread left.
  // `on_loss` is called on the watch's thread for each lost PE of a job that outlives it; the watch goes on.
  static base::Result<std::unique_ptr<LauncherWatch>> start(Bootstrap& bootstrap,
                                                            std::function<void(LauncherWord)> on_word,
                                                            std::function<void(LostPe)> on_loss = {});
  ~LauncherWatch();
  // The word was read, and the job goes on.
  void go_on();
  LauncherWatch(const LauncherWatch&) = delete;
  LauncherWatch& operator=(const LauncherWatch&) = delete;

  static constexpr int kGraceMs = 3000;

 private:
  LauncherWatch(Bootstrap& bootstrap, std::function<void(LauncherWord)> on_word,
                std::function<void(LostPe)> on_loss);
  void watch();
  // Returns false if the watch ends, because it is destroyed or the launcher has gone.
  bool wait_until_read();
  [[noreturn]] void end_process() const;

  Bootstrap& bootstrap_;
  int pe_;
  int watched_fd_;
  int stop_fd_ = -1;
  int read_fd_ = -1;
  std::function<void(LauncherWord)> on_word_;
  std::function<void(LostPe)> on_loss_;
  std::thread thread_;
};

}  // namespace weft::machine
