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
  // `on_word` is called once, on the watch's thread, when watch_fd() is readable; it should make the PE's
  // thread call watch_status() and end. If the PE has not destroyed its watch kGraceMs later, the watch ends
  // the process if the word ends it (Bootstrap::ends_process()). Fails if the system has no descriptor or thread left.
  // `on_loss` is called on the watch's thread for each lost PE of a job that outlives it; the watch goes on.
  static base::Result<std::unique_ptr<LauncherWatch>> start(Bootstrap& bootstrap,
                                                            std::function<void()> on_word,
                                                            std::function<void(LostPe)> on_loss = {});
  ~LauncherWatch();
  LauncherWatch(const LauncherWatch&) = delete;
  LauncherWatch& operator=(const LauncherWatch&) = delete;

  static constexpr int kGraceMs = 3000;

 private:
  LauncherWatch(Bootstrap& bootstrap, std::function<void()> on_word, std::function<void(LostPe)> on_loss);
  void watch();

  Bootstrap& bootstrap_;
  int pe_;
  int watched_fd_;
  int stop_fd_ = -1;
  std::function<void()> on_word_;
  std::function<void(LostPe)> on_loss_;
  std::thread thread_;
};

}  // namespace weft::machine
