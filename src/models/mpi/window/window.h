// Window: what a handle of type MPI_Win stands for: memory of each process of a group that the others access.
//
// An access goes one of these ways, the first that is possible:
//   - directly, if this process reaches the target's memory: its own host memory, that of ranks of its process, and that of
//     MPI_Win_allocate and MPI_Win_allocate_shared on this host. It is over when the call returns, and nobody's progress is needed.
//   - by the system, to memory of programs on this host (process_memory.h). It is over when the call returns too.
//   - by a copy of src/rma: puts and gets of dense memory of devices and of other hosts.
//   - by messages to the target (wire.h), which serves them in any call of MPI that waits or tests: service.cpp.
// Accumulates hold the AccumulateLock of the target on all ways.
//
// Epochs: locks are words that lie at each rank (control.h). Post, start, complete and wait are messages. A fence is a barrier
// after all own accesses have ended at their targets.
//
// Threads: the PE's.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "weft/rma/global_memory.h"
#include "weft/rma/segment.h"
#include "weft/runtime/future.h"
#include "weft/runtime/task.h"

#include "models/mpi/communicators/communicator.h"
#include "models/mpi/objects/error.h"
#include "models/mpi/objects/error_handler.h"
#include "models/mpi/p2p/data_view.h"
#include "models/mpi/window/attached_memory.h"
#include "models/mpi/window/control.h"
#include "models/mpi/window/process_memory.h"
#include "models/mpi/window/wire.h"

namespace weft::mpi {

class Datatype;
class ReductionOperator;

// The memory of a window at one rank.
struct WindowMemory {
  int flavor = MPI_WIN_FLAVOR_CREATE;
  void* base = nullptr;  // of this process
  std::uint64_t size_bytes = 0;
  MPI_Aint displacement_unit = 1;
  memory::Place place = {};  // of memory that the window allocates for this process alone
};

// One access of the program. All but the target's memory is of this process.
struct WindowAccess {
  AccessKind kind = AccessKind::kPut;
  int target = 0;  // its rank in the window
  MPI_Aint displacement = 0;
  MPI_Count count = 0;
  const Datatype* type = nullptr;
  DataView origin;                               // what is sent
  const Datatype* origin_type = nullptr;         // of accumulates
  DataView compared;                             // of kCompareAndSwap
  DataView result;                               // where values go that are got
  const ReductionOperator* operation = nullptr;  // of accumulates

  bool has_operand() const;
};

class Window final : public ErrorScope {
 public:
  // A rank as this one sees it.
  struct Target {
    std::uint64_t size_bytes = 0;
    MPI_Aint displacement_unit = 1;
    rma::GlobalAddress segment;   // of the memory; null in a dynamic window
    std::byte* memory = nullptr;  // null if this process does not reach it, and for ranks without memory
    bool is_direct = false;       // accesses go there directly
    CopiedProcess process;  // host memory of a program in another process; none if the system forbids copies
    WindowControl* control = nullptr;  // null if this process does not reach it
    rma::GlobalPtr<std::uint64_t> access_word;
    // What keeps both mapped.
    std::shared_ptr<void> memory_keeper;
    std::shared_ptr<void> control_keeper;

    // --- Epochs of this process with that target
    enum class Lock : std::uint8_t { kNone, kUnchecked, kShared, kExclusive };
    Lock lock = Lock::kNone;
    bool is_started = false;            // MPI_Win_start has named it
    std::uint32_t num_outstanding = 0;  // accesses by messages that have not ended
  };

  // The parts that a creation has made, see window_creation.h.
  struct Parts {
    WindowMemory memory;
    Ref<Communicator> communicator;
    rma::Segment control;
    rma::Segment segment;  // of the memory of this process; none in a dynamic window
    std::vector<Target> targets;
  };
  explicit Window(Parts parts, Ref<ErrorHandler> handler);
  // Starts to serve accesses of the others.
  void open();

  // --- Queries
  // The communicator that the window has for itself.
  Communicator& communicator() const { return *communicator_; }
  const WindowMemory& memory() const { return memory_; }
  bool is_dynamic() const { return memory_.flavor == MPI_WIN_FLAVOR_DYNAMIC; }
  int num_targets() const { return static_cast<int>(targets_.size()); }
  bool has_target(int rank) const { return rank >= 0 && rank < num_targets(); }
  const Target& target(int rank) const { return targets_[static_cast<std::size_t>(rank)]; }
  // The value of a predefined attribute, which lives as long as the window; null for other keys.
  static bool has_attribute(int key) { return key >= MPI_WIN_BASE && key <= MPI_WIN_MODEL; }
  void* attribute(int key);
  // The hints of the program, and those that Weft tells.
  Info::Pairs info;

  // --- Memory of a dynamic window. Errors: MPI_ERR_RMA_ATTACH.
  Error attach(void* base, std::uint64_t size_bytes);
  Error detach(const void* base);

  // --- Accesses. The memory of the access stays unchanged until a call has completed it.
  // Errors: MPI_ERR_RMA_SYNC outside of an epoch, MPI_ERR_RMA_RANGE, MPI_ERR_TRUNCATE for other sizes on both sides,
  // MPI_ERR_OP, MPI_ERR_TYPE.
  // `request`: if it is not null, it gets a request that completes with the access.
  Error start(const WindowAccess& access, Ref<Request>* request);

  // The memory of a direct access of so many bytes without gaps, at once for calls that want no more. Null for all others, wrong ones
  // too: start() finds out which they are.
  std::byte* direct_memory(int rank, MPI_Aint displacement, std::size_t size_bytes) const {
    if (!has_target(rank)) [[unlikely]]
      return nullptr;
    const Target& to = target(rank);
    MPI_Aint offset = 0;
    if (!to.is_direct || !has_epoch_with(to) ||
        __builtin_mul_overflow(displacement, to.displacement_unit, &offset) || size_bytes > to.size_bytes ||
        static_cast<std::uint64_t>(offset) > to.size_bytes - size_bytes) [[unlikely]]
      return nullptr;
    return to.memory + offset;
  }
  // The lock that accumulates on direct memory hold.
  WindowControl& control_of(int rank) const { return *target(rank).control; }

  // --- Epochs. Errors: MPI_ERR_RMA_SYNC, and the first error that a target has found in an access that the call completes.
  Error fence(bool has_successor);
  Error lock(int rank, bool is_exclusive, bool is_checked);
  Error unlock(int rank);
  Error lock_all(bool is_checked);
  Error unlock_all();
  Error flush(int rank);
  // flush() for most calls: nothing is under way with the rank. Returns false for all others, wrong ones too.
  bool flush_at_once(int rank) {
    if (!has_target(rank)) [[unlikely]]
      return false;
    const Target& to = target(rank);
    if ((!has_locked_all_ && to.lock == Target::Lock::kNone) || to.num_outstanding != 0 || !errors_.empty())
      return false;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    give_progress();
    return true;
  }
  Error flush_all();
  void sync();
  // `ranks`: in the window.
  Error start_epoch(std::vector<int> ranks);
  Error complete_epoch();
  Error post_epoch(const std::vector<int>& ranks);
  Error wait_epoch();
  Error test_epoch(bool* is_over);
  // Errors: MPI_ERR_RMA_SYNC while an epoch is open.
  Error check_closed() const;
  // Collective. No access comes afterwards.
  void close();

 private:
  PointToPoint& engine() const { return communicator_->engine(); }
  runtime::Messenger& messenger() const { return engine().messenger(); }
  rma::GlobalMemory& global_memory() const;
  WindowControl& own_control() const { return *target(communicator_->rank()).control; }
  Target& of(int rank) { return targets_[static_cast<std::size_t>(rank)]; }
  Ref<SendRequest> send(int rank, int tag, const DataView& view) const {
    return engine().send(communicator_->address(rank, tag), view, SendMode::kStandard);
  }
  Ref<ReceiveRequest> receive(int rank, int tag, const DataView& view) const {
    return engine().receive(communicator_->key(rank, tag), view);
  }
  // Awaitable: the outcome of a request, which the caller keeps.
  Completed completed(Request& request) const { return Completed(request, messenger()); }
  // Copies between any kinds of memory of this process.
  runtime::Task<> copy_locally(DataView from, DataView to) const;

  // --- Accesses, access.cpp and outgoing.cpp
  MPI_Aint displacement_bytes(const WindowAccess& access) const;
  Error check_access(const WindowAccess& access) const;
  Error find_unit(const WindowAccess& access, const Datatype** unit) const;
  void access_directly(const WindowAccess& access, const Datatype* unit);
  // False if it must go another way.
  bool access_by_system(const WindowAccess& access, const Datatype* unit, base::Status* status);
  template <class Memory>
  void access_now(const WindowAccess& access, const Datatype* unit, Memory& memory);
  struct OutgoingAccess;
  OutgoingAccess outgoing(const WindowAccess& access, const Datatype* unit);
  void start_outgoing(OutgoingAccess access, Ref<Request>* request);
  static runtime::Task<> access_by_messages(Ref<Window> self, OutgoingAccess access, Outcome* outcome);
  static runtime::Task<> access_in_parts(Ref<Window> self, OutgoingAccess access, Outcome* outcome);
  static runtime::Task<> carry_out(Ref<Window> self, OutgoingAccess access, Outcome* outcome);
  static runtime::Task<> access_by_copy(Ref<Window> self, OutgoingAccess access, Outcome* outcome);
  static runtime::Task<> access_unobserved(Ref<Window> self, OutgoingAccess access);
  static runtime::Task<> access_observed(Ref<Window> self, std::shared_ptr<OutgoingAccess> access,
                                         Outcome* outcome);
  void count_ended(int rank);
  // An error of accesses without a request to a rank, or to all: the first one of a rank since the last call.
  Error take_error(std::optional<int> rank);

  // --- The target's side, service.cpp
  static runtime::Task<> listen(Ref<Window> self);
  static runtime::Task<> serve(Ref<Window> self, int source, std::vector<std::byte> message);
  static runtime::Task<> serve_put(Window& self, int source, ArrivedAccess& access);
  static runtime::Task<> serve_get(Window& self, const ArrivedAccess& access, std::vector<std::byte>& got);
  class Turn;
  static runtime::Task<> serve_accumulate(Window& self, int source, ArrivedAccess& access, const Turn* turn,
                                          std::vector<std::byte>& got);
  static runtime::Task<> accumulate_on_device(Window& self, const ArrivedAccess& access,
                                              const DataView& target, std::vector<std::byte>& got);
  static runtime::Task<> receive_runs(Window& self, int source, ArrivedAccess& access, bool is_refused);
  void apply(const ArrivedAccess& access, const DataView& target, std::vector<std::byte>& got,
             WindowControl* control);
  static runtime::Task<> send_reply(Ref<Window> self, int source, ArrivedAccess access, ReplyHeader reply,
                                    std::vector<std::byte> got);
  // The error class for accesses to memory that the window does not have: before the runs are known, and after.
  int check_size(const AccessHeader& header) const;
  int check_place(std::span<const WindowRun> runs) const;
  static runtime::Task<> drop(Window& self, int source, int tag);
  DataView local_view(const std::vector<WindowRun>& runs) const;

  // --- Epochs, epochs.cpp
  void acquire_lock(int rank, bool is_exclusive);
  void release_lock(int rank);
  bool has_epoch_with(const Target& target) const {
    return is_fenced_ || has_locked_all_ || target.lock != Target::Lock::kNone || target.is_started;
  }
  // Of MPI_Win_lock_all too.
  bool has_lock() const;
  // Waits for the accesses to a rank, or to all.
  Error end_accesses(std::optional<int> rank);
  // Programs poll memory by accesses and flushes: the ranks of this process must run meanwhile, and the accesses of others be served.
  void give_progress() {
    if (rank_ != nullptr || ++num_idle_flushes_ % kFlushesPerProgress == 0) [[unlikely]]
      move_forward();
  }
  static void move_forward();
  // Without accesses under way, one flush of so many lets the runtime look for messages: that costs as much as ten accesses.
  static constexpr std::uint32_t kFlushesPerProgress = 64;
  void forget_exposure();
  // For reports: the lock that this rank waits for.
  runtime::Wait wait_for_lock(int rank, bool is_exclusive) const;
  // `share`: see AccessWord.
  static runtime::Task<> acquire_remotely(rma::GlobalMemory& memory, rma::GlobalPtr<std::uint64_t> word,
                                          std::uint64_t share);
  static runtime::Task<> release_remotely(rma::GlobalMemory& memory, rma::GlobalPtr<std::uint64_t> word,
                                          std::uint64_t share);

  WindowMemory memory_;
  int displacement_unit_attribute_;
  int model_attribute_ = MPI_WIN_UNIFIED;
  MPI_Aint size_attribute_;
  Ref<Communicator> communicator_;
  rma::Segment control_;
  rma::Segment segment_;
  std::vector<Target> targets_;
  AttachedMemory attached_;  // of a dynamic window
  VirtualRank* const rank_;  // null in a process with one rank

  Ref<ReceiveRequest> listening_;
  // Accumulates by messages that cannot be done at once wait for the one before them from their rank.
  struct Order {
    std::optional<runtime::Future<>> last;
    int num_waiting = 0;
  };
  std::map<int, Order> orders_;
  std::map<int, Order>
      announced_orders_;               // of accesses whose runs follow: those of one rank are one at a time
  std::map<int, Order> large_orders_;  // of puts and gets that take memory here, see kMostHeldBytes
  std::map<int, std::uint64_t> held_bytes_;  // by accesses of each rank
  Order device_order_;                       // of those that change device memory

  std::uint32_t last_number_ = 0;
  std::uint64_t num_outstanding_ = 0;
  std::map<int, Error> errors_;  // the first one of each target, of accesses without a request
  std::uint32_t num_idle_flushes_ = 0;

  bool is_fenced_ = false;
  bool has_locked_all_ = false;
  std::optional<std::vector<int>> started_;
  // Messages of MPI_Win_complete that MPI_Win_wait waits for.
  std::optional<std::vector<Ref<ReceiveRequest>>> exposed_;
  std::vector<Ref<SendRequest>> posts_;
};

}  // namespace weft::mpi
