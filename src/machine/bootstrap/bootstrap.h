// How the processes of a job find one another: who am I, how many are we, and one exchange of bytes.
//
// Implementations: singleton (no launcher), local (`weft run`), pmix (srun, prterun, Open MPI's mpiexec), pmi (MPICH's
// mpiexec, srun). Used by one thread. Every call may block. A call ends with an error if a peer or the launcher has gone.
// kCancelled means that the launcher or another process has printed the reason: the PE just exits. The PE prints any other
// error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/status.h"

namespace weft::machine {

// The life of a job between two losses of PEs, see docs/decisions/recovery.md.
struct Incarnation {
  std::uint32_t number = 0;  // of the incarnation: so many times has the job begun again
  std::uint64_t newest_protected =
      0;  // the number of the newest state that all PEs had protected; 0 for none
};

// A PE that the launcher has lost, in a job that outlives it.
struct LostPe {
  int pe = -1;
  std::string why;  // a sentence
};

// What the launcher has said about another number of PEs, since this process is in its incarnation.
struct Resizing {
  std::uint32_t plan = 0;              // the number of the plan; 0 for none
  std::uint32_t num_pes = 0;           // that the plan gives
  std::vector<std::uint32_t> leaving;  // the PEs that leave, in ascending order
  // To ask_for_resize(), in order: why it is refused; empty if it is not. on_change takes them.
  std::deque<std::string> answers;
  // Is called by watch_status() when the launcher has said something.
  std::function<void()> on_change;
};

// What a word of the launcher, or its end, does to this process.
enum class LauncherWord {
  kEndsProcess,
  kEndsRun,   // the process may begin its job again, or it goes on without one
  kResizing,  // the run goes on
};

class Bootstrap {
 public:
  virtual ~Bootstrap() = default;

  virtual std::string_view name() const = 0;
  // Whether a launcher started this process and prints the reason if the PEs end too early. A process that has started the other
  // PEs itself has none: weft.run(main, pes=...) raises the reason, and the process goes on.
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

  // Tells the launcher that this PE is done. From then on the launcher does not treat its exit as a death.
  virtual void finished(int exit_code) = 0;
  // Ends the whole job: `message` goes to stderr once, and every PE ends with a non-zero code. If it returns,
  // the caller must exit. Only for a job whose start is complete: a PE that fails before that prints the reason
  // and exits without finished(), which ends the job too.
  virtual void abort(int exit_code, std::string_view message) = 0;

  // Readable when the launcher has gone or ends the job. -1 if there is nothing to watch.
  virtual int watch_fd() const = 0;
  // A text that all PEs of the job have and no other job on this host, by which processes of other jobs may know it. Empty if there is
  // none.
  virtual std::string unique_name() const { return {}; }
  // Asks the launcher to start another job. `request`: see python/weft/launch/mpi/spawned.py. Returns when the launcher has been asked.
  virtual base::Status start_job(std::string_view request);

  // The reason for which watch_fd() is readable, with which the PE ends; ok if it is not. Does not block.
  virtual base::Status watch_status() { return {}; }

  // --- Losses of other PEs
  // Whether the launcher begins the job again when it loses a PE. Calls then fail with kCancelled, begins_again() is true, and the
  // process makes another bootstrap.
  virtual bool can_begin_again() const { return false; }
  virtual Incarnation incarnation() const { return {}; }
  // Tells the launcher that all PEs have protected the state of that number. `plan`: that of a resize, for which all blocks are kept
  // by PEs that stay, or 0. Does not wait.
  virtual void tell_protected(std::uint64_t /*number*/, std::uint32_t /*plan*/ = 0) {}
  // Null unless can_begin_again().
  virtual Resizing* resizing() { return nullptr; }
  // Asks for that number of PEs; 0: one fewer, without this PE. The answer comes to resizing(). Does not wait.
  virtual base::Status ask_for_resize(std::uint32_t num_pes);
  // What is protected cannot be restored on the number of PEs of that plan. Does not wait.
  virtual void refuse_resize(std::uint32_t /*plan*/, std::string_view /*why*/) {}
  // REQUIRES: begins_again(). The connection to the launcher is for the process's next bootstrap.
  virtual void give_up_connection() {}
  // Whether the launcher keeps the job when it loses PEs (`weft run --on-loss raise`): it tells of them, and answers collectives
  // without them; in an exchange their bytes are empty.
  virtual bool can_outlive_losses() const { return false; }
  // From now on this PE outlives the loss of others, of PE 0 too if `may_lose_pe_0`. Until all PEs have said so, a loss ends the job.
  virtual void outlive_losses(bool /*may_lose_pe_0*/) {}
  // The next loss for which watch_fd() is readable, if it is one. Does not block. Called by the thread that watches.
  virtual std::optional<LostPe> take_loss() { return {}; }
  // What the word does for which watch_fd() is readable. May be called on another thread than the other functions.
  virtual LauncherWord next_word() const {
    return has_launcher() ? LauncherWord::kEndsProcess : LauncherWord::kEndsRun;
  }
};

// Whether the launcher has told this process that its job begins again, and the process has not joined it since.
bool begins_again();

// Whether it has told this process that the job goes on without it.
bool leaves_job();

// For a process that begins again in a new program (exec): the variables of the environment, "NAME=value", with which that program joins
// the next incarnation, over the connection that it inherits; -1 if there is none.
struct NextProgram {
  std::vector<std::string> variables;
  int connection = -1;
};
// Tells the launcher that this PE has stopped: it handles no messages and starts no copies any more. An error ends the process.
// REQUIRES: begins_again() and not leaves_job(), and the bootstrap that was told has given its connection up.
base::Status tell_stopped();
// Returns when all PEs have stopped: no process copies from or to the memory of another one, so this one may be replaced. A further loss
// meanwhile gives the process another place in the next incarnation, or none. An error ends the process; kCancelled: the reason is printed.
// REQUIRES: tell_stopped() has succeeded.
base::Status await_all_stopped();
// REQUIRES: as await_all_stopped(), which has returned, and not leaves_job().
NextProgram next_program();

// Picks by environment: WEFT_BOOTSTRAP (set by `weft run`) gives local, PMIX_NAMESPACE gives pmix, PMI_FD and PMI_SIZE
// give pmi, else singleton. With variables of several launchers, the innermost one counts:
// - pmi if PMI_FD is open, because the launchers inside of it pass on the variable, but not the connection;
// - pmix inside `weft run` if its process is another one than WEFT_OUTER_PMIX, which is that around `weft run`.
// kUnsupported if a launcher has started several processes that cannot find one another;
// WEFT_BOOTSTRAP=singleton makes each of them a job.
//
// Opens /dev/null for standard descriptors that are closed.
//
// `can_begin_again`: the program runs its job again while begins_again() is true, if the launcher offers it.
base::Result<std::unique_ptr<Bootstrap>> make_bootstrap(bool can_begin_again = false);

struct LaunchPlace {
  int pe = 0;
  int num_pes = 0;  // 0: unknown, because PMIx says it to processes that have joined
  bool has_launcher = false;
};
// The place that make_bootstrap() would find, by the environment alone: nothing is connected, and nothing is checked that the
// environment does not say. Fails where make_bootstrap() would fail for that reason.
base::Result<LaunchPlace> place_in_launch();

}  // namespace weft::machine
