// A PE that `weft run` started: one connection to the launcher carries everything. On another host (`weft run --hosts`) the launcher's
// agent there is the parent and has the socket; it passes frames on.
//
// The launcher's death ends the PE: the kernel sends SIGKILL when the launcher was its parent, and watch_fd()
// becomes readable for every PE, also behind a wrapper such as `weft run -n 2 numactl prog`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "machine/bootstrap/bootstrap.h"
#include "machine/bootstrap/frame.h"
#include "machine/bootstrap/launcher/local_pes.h"
#include "machine/bootstrap/launcher/local_settings.h"

namespace weft::machine::bootstrap {

class LocalBootstrap final : public Bootstrap {
 public:
  // Connects to the launcher and is welcomed by it. A further job of this process joins over the connection of the one that
  // has finished, because the launcher takes no new ones.
  static base::Result<std::unique_ptr<Bootstrap>> join(const LocalSettings& settings);
  // As join(settings), over a connection to the launcher that is there already. Owns `fd` from here on.
  static base::Result<std::unique_ptr<Bootstrap>> join(int fd, const LocalSettings& settings);

  ~LocalBootstrap() override;
  LocalBootstrap(const LocalBootstrap&) = delete;
  LocalBootstrap& operator=(const LocalBootstrap&) = delete;

  std::string_view name() const override { return "local"; }
  bool has_launcher() const override { return !settings_.is_attached; }
  int pe() const override { return settings_.pe; }
  int num_pes() const override { return settings_.num_pes; }
  int local_rank() const override { return local_.rank; }
  int local_size() const override { return local_.size; }
  base::Result<std::vector<std::vector<std::byte>>> exchange(const std::vector<std::byte>& mine) override;
  base::Status barrier() override;
  void finished(int exit_code) override;
  void abort(int exit_code, std::string_view message) override;
  int watch_fd() const override { return fd_; }
  base::Status watch_status() override;
  std::string unique_name() const override;
  base::Status start_job(std::string_view request) override;
  bool can_begin_again() const override { return settings_.can_begin_again; }
  Incarnation incarnation() const override { return incarnation_; }
  void tell_protected(std::uint64_t number, std::uint32_t plan) override;
  Resizing* resizing() override { return settings_.can_begin_again ? &resizing_ : nullptr; }
  base::Status ask_for_resize(std::uint32_t num_pes) override;
  void refuse_resize(std::uint32_t plan, std::string_view why) override;
  void give_up_connection() override;
  LauncherWord next_word() const override;
  bool can_outlive_losses() const override { return settings_.keeps_job; }
  void outlive_losses(bool may_lose_pe_0) override;
  std::optional<LostPe> take_loss() override;

 private:
  LocalBootstrap(int fd, LocalSettings settings)
      : fd_(fd), settings_(std::move(settings)), local_{settings_.pe, settings_.num_pes} {}

  // The next frame that tells of no loss: in a collective at the end of a job, losses change nothing.
  base::Result<Frame> read_answer();
  // The type of the next frame, if its head is here.
  std::optional<FrameType> next_type() const;
  base::Status send(FrameType type, std::span<const std::byte> payload);
  // The frame that answers a request, `expected`; anything else is the end of the job or an error.
  base::Result<Frame> receive(FrameType expected);
  base::Status launcher_gone(std::string_view detail) const;
  // Adds to an error of the socket itself whose it is and what to do; gives other outcomes back.
  base::Status located(base::Status status) const;
  base::Status job_ends(const Frame& end);
  base::Status job_begins_again(const Frame& frame);
  base::Status take_welcome(const Frame& welcome);
  // Whether the frame is a word of the launcher's about another number of PEs, which resizing_ has now.
  bool take_resize_word(const Frame& frame);

  int fd_;
  LocalSettings settings_;
  LocalPes local_;
  bool keeps_connection_ = false;
  bool has_finished_ = false;
  // The launcher has said that the job ends.
  bool job_ended_ = false;
  bool begins_again_ = false;
  Incarnation incarnation_;
  Resizing resizing_;
};

}  // namespace weft::machine::bootstrap
