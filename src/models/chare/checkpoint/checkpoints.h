// Saving and restoring collections, on one PE. The PE that the program calls leads: it sends all PEs one step after the
// other, and each PE answers each step. A step runs in one turn, so no code of the program runs on the PE meanwhile.
//
//   save:     kHold in a job with periodic load balancing, whose moves wait until kRelease
//             quiescence, then kCheck: may all elements be saved?  kWrite: each PE writes its file
//             then the leader writes the manifest
//   restore:  kVerify: each PE reads its share of the files  kMake: each PE makes its elements
//
// Protecting in memory is saving, and recovering is restoring, with blocks in the memory of two PEs in place of files:
//
//   protect:  as save up to kWrite, in which each PE also gives its block to its buddy  kCommit: the state counts
//             Quiescence is awaited only if the job is not at rest: kCheck and kWrite find that out as two of its waves do
//   recover:  kHoldings: which blocks does each PE have?  kShare: PEs without their blocks get them  kCommit
//             These come before main begins, and again when it asks for the state. Then
//             kCommit sends elements that are not at home there, and kMake follows
//
// The job that recovers may have another number of PEs than the one that has protected: each block then has an owner among the
// PEs that there are, which restores it.
//
// Nothing must happen between kCheck and kWrite: both give the counters of quiescence, and the leader compares them.
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/chare/chares.h"
#include "weft/chare/checkpoint.h"
#include "weft/runtime/future.h"
#include "weft/runtime/task.h"

#include "checkpoint/manifest.h"
#include "checkpoint/protected_state.h"
#include "models/chare/elements/feature.h"

namespace weft::chare {

// A step of a checkpoint, which all PEs carry out at the same time.
struct CheckpointStep {
  enum class Kind : std::uint8_t {
    kCheck,
    kWrite,
    kVerify,
    kMake,
    kHold,
    kRelease,
    kHoldings,
    kShare,
    kCommit,
    kDrop
  };
  // A PE sends one of its blocks to another PE, which keeps it.
  struct Transfer {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint32_t block = 0;  // the PE whose elements it has
    void pup(Pup& p) { p | from | to | block; }
  };
  std::uint64_t number = 0;  // of the leader's
  std::uint32_t leader = 0;
  Kind kind = Kind::kCheck;
  // kCheck, kWrite: the collections to save. kMake: those to make, in the order of the manifest.
  std::vector<std::uint64_t> collections;
  std::string path;                     // of the folder of the checkpoint
  std::uint64_t checkpoint = 0;         // kWrite: the number in its files. In memory: the number of the state
  checkpoint_files::Manifest manifest;  // kVerify, kMake, kCommit
  bool exchanges = false;               // kMake: see Chares::open_elements()
  bool is_in_memory = false;            // kWrite, kMake, kCommit: blocks and no files
  std::vector<Transfer> transfers;      // kShare, and kWrite in memory
  bool sends_strays = false;            // kCommit: elements of the PE's block go to their homes, see Strays
  // kMake in memory: how many blocks of such elements each PE gets, and the number of the step that sends them.
  std::vector<std::uint32_t> strays;
  std::uint64_t strays_of = 0;
  std::uint32_t describes = 0;   // kHoldings: the PE that answers with its manifest. None: the number of PEs
  std::uint32_t num_blocks = 0;  // kHoldings: of the state that is recovered; 0 if that is not known yet
  // kCommit, kMake in memory: by block, the PE that restores its elements. Empty: that of the same number.
  std::vector<std::uint32_t> owners;
  void pup(Pup& p) {
    p | number | leader | kind | collections | path | checkpoint | manifest | exchanges | is_in_memory |
        transfers | sends_strays | strays | strays_of | describes | num_blocks | owners;
  }
};

// The elements of one collection on one PE.
struct ElementCount {
  std::uint64_t num_elements = 0;
  // The smallest and the largest number of a next reduction.
  std::uint32_t first_reduction = ~std::uint32_t{0};
  std::uint32_t last_reduction = 0;
};

struct CheckpointStepResult {
  std::uint64_t number = 0;
  std::string failure;  // empty if the step was done
  base::StatusCode code = base::StatusCode::kInternal;
  // kCheck, kWrite: the counters of quiescence at the end of the step.
  std::uint64_t sent = 0;
  std::uint64_t processed = 0;
  std::vector<ElementCount> counts;  // by collection
  checkpoint_files::FileSummary file;
  // kHoldings
  std::uint64_t committed = 0;
  std::uint32_t num_blocks = 0;  // of that state
  std::vector<checkpoint_files::ProtectedState::BlockId> blocks;
  checkpoint_files::Manifest manifest;
  std::vector<std::uint32_t> homes_of_strays;  // kCommit: the PEs to which this one sends a block
  void pup(Pup& p) {
    p | number | failure | code | sent | processed | counts | file | committed | num_blocks | blocks |
        manifest | homes_of_strays;
  }
};

// Elements of one PE whose home is another one, on the way there. They are restored at home, as from files.
struct Strays {
  std::uint32_t from = 0;
  std::uint64_t step = 0;  // the number of the step that sends them
  checkpoint_files::FileSummary summary;
  checkpoint_files::BlockPtr block;
};

// Announces a block, which is the attachment of the message.
struct BlockHeader {
  checkpoint_files::ProtectedState::BlockId id;
  std::uint64_t strays_of = 0;            // the number of the step that sends strays; 0 for a whole block
  checkpoint_files::FileSummary summary;  // of strays; that of other blocks is in the manifest
  void pup(Pup& p) { p | id | strays_of | summary; }
};

class Checkpoints {
 public:
  Checkpoints(Chares& chares, FeatureTable& table)
      : chares_(chares),
        step_handler_(table.add_handlers<&Checkpoints::on_step>(*this)),
        done_handler_(table.add_handlers<&Checkpoints::on_step_done>(*this)),
        block_handler_(table.add_handlers<&Checkpoints::on_block>(*this)) {
    set_block_poster();
  }
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  runtime::Future<> save(const std::string& folder, const checkpoint_detail::VisitValues& pack);
  checkpoint_detail::Loading load(const std::string& folder);
  void unpack_values(std::uint64_t loading, const checkpoint_detail::VisitValues& unpack);

  // --- In memory, in checkpoint/protection.cpp
  // `state` outlives this object. Without it the job cannot begin again, and protect() does nothing. `hosts`: of each PE; empty if the
  // job has one host.
  void keep_in(checkpoint_files::ProtectedState* state, std::vector<int> hosts) {
    protected_state_ = state;
    hosts_ = std::move(hosts);
  }
  runtime::Future<> protect(const checkpoint_detail::VisitValues& pack);
  // Makes the copies of the protected state anew, in a job that has begun again. For the leader, before main begins: from then on a
  // further PE may be lost. Ready at once if there is nothing to do; never fails.
  runtime::Future<> share_anew();
  // As load(); has_loaded() is false if there is nothing to recover.
  checkpoint_detail::Loading recover();
  bool has_loaded(std::uint64_t loading) const { return loaded_.contains(loading); }
  std::uint32_t num_recoveries() const {
    return protected_state_ == nullptr ? 0 : protected_state_->incarnation;
  }

  // --- Another number of PEs, in checkpoint/resizing.cpp
  runtime::Future<> resize(int num_pes);
  // The launcher has answered the first call of resize() that has no answer yet. `refusal`: empty if it has accepted.
  void resize_answered(const std::string& refusal);
  // The launcher has another plan, or none any more.
  void resize_plan_changed();

  // --- Proxies
  // A proxy of the collection is being packed. Throws Error(kInvalidArgument) if it is packed into a state of a checkpoint
  // that does not have the collection.
  void note_proxy(const Collection& collection) {
    if (packed_proxy_) [[unlikely]]
      packed_proxy_(collection);
  }
  // Whether the proxies that are being unpacked come from a checkpoint, where the collections had other numbers.
  bool translates_proxies() const { return translation_ != nullptr; }
  Collection& translated(std::uint64_t old_id) const;

 private:
  using Translation = std::unordered_map<std::uint64_t, Collection*>;
  using Results = std::vector<CheckpointStepResult>;  // by PE

  // `result`: of kWrite, whose work is done before the PE waits.
  struct WaitingStep {
    CheckpointStep step;
    std::optional<CheckpointStepResult> result;
  };
  struct Step {
    Results results;
    int num_missing = 0;
    runtime::Future<> done;
  };
  struct Loaded {
    std::vector<std::byte> values;
    Translation translation;
  };

  void on_step(runtime::MessagePtr message);
  void on_step_done(runtime::MessagePtr message);
  void on_block(runtime::MessagePtr message);

  // --- Of the leader
  // The collections and values that the program has named.
  struct Named {
    std::vector<std::uint64_t> collections;
    std::vector<std::byte> values;
  };
  Named pack_values(const checkpoint_detail::VisitValues& pack);
  // Saves into the folder; in memory if it is empty.
  runtime::Task<> save_all(std::string folder, Named named, runtime::Future<> done);
  // All PEs do, or do not any more. Does nothing in a job without periodic load balancing.
  runtime::Task<> hold_periodic_moves(bool holds);
  runtime::Task<> load_all(std::string folder, std::uint64_t loading, runtime::Future<> done);
  runtime::Task<Results> check(std::vector<std::uint64_t> collections);
  // All PEs do the step kWrite. Completes the manifest of the step's collections.
  runtime::Task<checkpoint_files::Manifest> write_states(CheckpointStep step, Results checked,
                                                         checkpoint_files::Manifest manifest);
  runtime::Task<> write(std::string folder, Named named);
  runtime::Task<> write_in_memory(Named named);
  // A step as all PEs get it.
  struct PackedStep {
    std::uint64_t number = 0;
    std::size_t num_collections = 0;
    runtime::MessagePtr message;
  };
  // What all PEs have written can be committed. The plan is that of the launcher for which they have shared it.
  struct Written {
    PackedStep commit;
    checkpoint_files::ProtectedState::ResizePlan plan;
  };
  // `awaits_rest`: quiescence is awaited before. Without it this fails if the job is not at rest.
  runtime::Task<Written> write_blocks(std::uint64_t state, const Named& named, bool awaits_rest);
  // Ends the job if it fails when it has begun: no PE can go back.
  runtime::Task<> commit_everywhere(std::uint64_t state, Written written);
  // The plan of the launcher, if what the manifest describes can be restored on its number of PEs. Otherwise tells the launcher why not.
  checkpoint_files::ProtectedState::ResizePlan suitable_plan(const checkpoint_files::Manifest& manifest);
  runtime::Task<> recover_all(std::uint64_t loading, runtime::Future<> done);
  runtime::Task<> read_memory(std::uint64_t loading);
  // The newest state that counts. The number 0: there is none.
  struct Renewed {
    std::uint64_t state = 0;
    checkpoint_files::Manifest manifest;
    Results committed;
    std::vector<std::uint32_t> owners;
  };
  // All PEs have their blocks and their copies of that state again, and commit it.
  runtime::Task<Renewed> renew_blocks(bool sends_strays);
  runtime::Task<> share_all_anew(runtime::Future<> done);
  runtime::Task<> read(std::string folder, std::uint64_t loading);
  // `step` says where the states are.
  runtime::Task<> make(CheckpointStep step, checkpoint_files::Manifest manifest, std::uint64_t loading);
  // Has all PEs do the step. Throws the first failure, when all PEs have answered.
  runtime::Task<Results> on_all_pes(CheckpointStep step) { return on_all_pes(packed(std::move(step))); }
  runtime::Task<Results> on_all_pes(PackedStep step);
  PackedStep packed(CheckpointStep step);
  void expect_complete(const std::vector<std::uint64_t>& collections, const Results& checked) const;
  checkpoint_files::Manifest describe(const std::vector<std::uint64_t>& collections,
                                      std::vector<std::byte> values) const;

  // --- Of each PE, in checkpoint/files.cpp
  // With the counters of quiescence at its end.
  CheckpointStepResult do_step(CheckpointStep& step);
  // Functions of the program run in the steps below, so these may also throw.
  base::Status do_step(CheckpointStep& step, CheckpointStepResult& result);
  base::Result<ElementCount> check_elements(const Collection& collection) const;
  base::Status check_element(const Collection& collection, std::uint64_t index, const ChareBase& chare) const;
  base::Result<checkpoint_files::FileSummary> write_elements(const CheckpointStep& step);
  base::Status verify_files(const CheckpointStep& step) const;
  base::Result<std::vector<ElementCount>> make_elements(const CheckpointStep& step);
  base::Status read_elements(const CheckpointStep& step, const std::vector<Collection*>& made);
  base::Status read_elements(const CheckpointStep& step, const checkpoint_files::ElementFileReader& file,
                             const std::vector<Collection*>& made);
  void finish_step(WaitingStep waiting);

  // --- Of each PE, in checkpoint/protection.cpp
  base::Status read_blocks(const CheckpointStep& step, const std::vector<Collection*>& made);
  // Takes the manifest of the step.
  base::Status commit(CheckpointStep& step, CheckpointStepResult& result);
  base::Status send_strays(const CheckpointStep& step, CheckpointStepResult& result);
  static bool shares_blocks(const CheckpointStep& step) {
    return step.kind == CheckpointStep::Kind::kShare ||
           (step.kind == CheckpointStep::Kind::kWrite && step.is_in_memory);
  }
  void share_blocks(const CheckpointStep& step);
  void send_block(int to, const BlockHeader& header, const checkpoint_files::BlockPtr& block);
  // Blocks land in memory that they stay in.
  void set_block_poster();
  void land_block(runtime::ReceiveBuffer& buffer);
  // kClosed if another PE has begun to protect a state.
  base::Status open_state(std::uint64_t state);
  // Whether the manifest suits this job and the blocks of this PE.
  base::Status check_state(const CheckpointStep& step) const;
  // The blocks that this PE restores.
  std::vector<std::uint32_t> own_blocks(const CheckpointStep& step) const;
  // Whether all blocks have arrived that the step needs.
  bool has_blocks(const CheckpointStep& step) const;

  Chares& chares_;
  runtime::HandlerId step_handler_;
  runtime::HandlerId done_handler_;
  runtime::HandlerId block_handler_;
  std::uint64_t next_step_ = 1;
  std::unordered_map<std::uint64_t, Step> steps_;
  std::uint64_t next_loading_ = 1;
  std::unordered_map<std::uint64_t, Loaded> loaded_;
  std::function<void(const Collection&)> packed_proxy_;  // empty if no state is being packed
  const Translation* translation_ = nullptr;
  checkpoint_files::ProtectedState* protected_state_ = nullptr;
  std::vector<int> hosts_;                 // of the PEs; empty if the job has one
  bool is_protecting_ = false;             // this PE leads
  std::uint64_t newest_tried_ = 0;         // the newest state that this PE has led
  std::uint64_t open_state_ = 0;           // is being protected; 0 for none
  std::uint32_t num_blocks_ = 0;           // of the state that is recovered
  std::deque<runtime::Future<>> resizes_;  // without an answer of the launcher's
  // This PE has protected a state for a plan. Is set if the launcher withdraws it.
  runtime::Future<> withdrawn_;
  std::uint32_t refused_plan_ = 0;          // the last one that cannot be carried out
  std::vector<WaitingStep> waiting_steps_;  // for blocks
  std::vector<Strays> strays_;
  std::vector<std::shared_ptr<checkpoint_files::Block>> landing_;  // of messages that are not handled yet
};

// The collection as the manifest has it, and the shape that it gets in a job of `num_pes` PEs. Throws Error if the program
// or the job cannot have it.
checkpoint_files::CollectionEntry entry_of(const Collection& collection);
Shape shape_of(const checkpoint_files::CollectionEntry& entry, std::size_t num_pes_then, int num_pes_now);
const ChareType& type_of(const checkpoint_files::CollectionEntry& entry);

}  // namespace weft::chare
