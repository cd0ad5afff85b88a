// The place of this process in its launch, for programs that need it before they make their Job.
//
// Threads: the one that makes the Job.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/status.h"

#include "machine/calling_threads.h"

namespace weft::machine::bootstrap {
class StartingBootstrap;
}

namespace weft::job {

// The text that a process that leaves gives to the exchange in which others may compare their identities.
inline constexpr std::string_view kHasLeft = "weft: no job";

class Launch {
 public:
  // Finds the launcher of this process, by its environment. Throws Error if the processes of the launch cannot find one another;
  // kCancelled if another process prints the reason.
  // `can_begin_again`: see machine::make_bootstrap().
  static Launch join(bool can_begin_again = false);
  ~Launch();
  Launch(Launch&&) noexcept;
  Launch& operator=(Launch&&) = delete;

  int pe() const;
  int num_pes() const;
  // How often the job has begun again before.
  std::uint32_t incarnation() const;

  // Collective: each process gives a text, and gets those of all, by PE. Texts of peers may hold anything. Throws Error.
  std::vector<std::string> exchange(std::string_view text);
  // Collective: the processes end without a Job, this one with that code. The launcher does not treat that as a death. Throws Error
  // if another process makes a Job instead; its Job fails, too.
  void leave(int exit_code);

  // Which threads call the runtime of the Job. By itself the thread that makes it.
  void expect_calls_of(machine::CallingThreads threads) { threads_ = threads; }

 private:
  friend class Job;
  explicit Launch(std::unique_ptr<machine::bootstrap::StartingBootstrap> bootstrap);

  std::unique_ptr<machine::bootstrap::StartingBootstrap> bootstrap_;
  machine::CallingThreads threads_ = machine::CallingThreads::kOne;
};

// Prints a sentence on standard error. A launcher that ends the job, kCancelled, has said why; the PEs do not repeat it.
void print_unless_launcher_did(base::StatusCode code, const std::string& sentence);

}  // namespace weft::job
