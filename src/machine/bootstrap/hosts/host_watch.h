// A thread that sleeps until another host of the job is lost, or a PE of the job has ended too early. It tells the other
// PEs, wakes its own if that is idle and ends it if it is busy, so no PE waits for a launcher that hangs.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "machine/bootstrap/hosts/host_links.h"

namespace weft::machine {

class HostWatch {
 public:
  // `on_loss` is called once, on the watch's thread, with a sentence that names what was lost. It should make the PE's
  // thread end the job. If the watch exists kGraceMs later, it ends the process. Fails if the system has no descriptor
  // or thread left.
  static base::Result<std::unique_ptr<HostWatch>> start(int pe, HostLinks links,
                                                        std::function<void(const std::string&)> on_loss);
  ~HostWatch();
  HostWatch(const HostWatch&) = delete;
  HostWatch& operator=(const HostWatch&) = delete;

  // No PE needs this one any more: its end is no loss. Call it after the job's last barrier. The watch stops.
  void finish();

  // How long finish() lets the other PEs finish too.
  static constexpr int kPartingMs = 1000;
  // After the loss. Also how long the launcher has to end the job if a single PE has ended: it knows more.
  static constexpr int kGraceMs = 3000;

 private:
  HostWatch(int pe, HostLinks links, std::function<void(const std::string&)> on_loss);
  void watch();
  void watch_until_stopped();
  void stop();
  // Fails if a link is over and its peer had not finished, or if a peer tells of a loss. Closes links that are over.
  base::Status check();
  base::Status check_link(std::size_t which);
  // True if the watch is to stop within that time.
  bool stops_within(int timeout_ms) const;

  int pe_;
  HostLinks links_;  // once the thread runs, it alone uses them
  std::atomic<bool> has_finished_ = false;
  std::function<void(const std::string&)> on_loss_;
  int stop_fd_ = -1;
  std::thread thread_;
};

}  // namespace weft::machine
