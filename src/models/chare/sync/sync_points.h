// Load balancing at sync points, on one PE. sync.cpp describes the protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/pup.h"
#include "weft/chare/chares.h"
#include "weft/chare/element_load.h"

#include "models/chare/balancing/options.h"
#include "models/chare/balancing/wanted_moves.h"
#include "models/chare/elements/feature.h"
#include "models/chare/sync/step.h"
#include "runtime/owned_work.h"

namespace weft::chare {

enum class SyncKind : std::uint32_t;
struct LocalRounds;
struct LocalSync;
struct TalkedTo;

// The load-balancing state that an element takes along to its new PE.
struct LoadOnTheMove {
  ElementSync sync;
  std::int64_t measured_ns = 0;
  std::vector<SentTo> sent = {};  // since its last report, in the order of indices
  double device_s = 0;            // of the device work that was done when it left
  void pup(Pup& p) { p | sync | measured_ns | sent | device_s; }
};

// The header of every message of load balancing.
struct BalancingHeader {
  std::uint64_t collection = 0;
  std::uint64_t number = 0;  // of the step, or of the round
  std::uint32_t kind = 0;    // a SyncKind, or a kind of periodic_rounds.cpp
  std::uint32_t reserved = 0;
};

class SyncPoints final : public Feature {
 public:
  SyncPoints(Chares& chares, FeatureTable& table)
      : Feature(table),
        chares_(chares),
        handler_(table.add_handlers<&SyncPoints::on_message>(*this)),
        moves_(chares.runtime(), [this](runtime::ElementId element) { make_next_move(element.collection); }) {
  }

  BalancingOptions& options() { return options_; }
  // See Model::options(). Setting one of them also decides whether the PE counts messages.
  std::vector<runtime::ModelOption> variables();

  // See ChareBase.
  void at_sync(ChareBase& chare);
  void set_load_s(ChareBase& chare, std::optional<double> load_s);
  void on_message(runtime::MessagePtr message);
  runtime::HandlerId handler() const { return handler_; }

  // --- Feature
  bool measures(const Collection& made) const override;
  void collection_begins(Collection& collection) override;
  void collection_ends(Collection& collection) override;
  base::Status obstacle(const ChareBase& chare) const override;
  bool continue_move(ChareBase& chare) override;
  void stayed(ChareBase& chare) override;
  void pack(const ChareBase& chare, Pup& p) const override;
  void left(Collection& from, const ChareBase& chare) override;
  bool arrived(ChareBase& chare, Pup& p, int from_pe) override;

  // Whether it may move by a plan as it is now.
  static bool can_move(const ChareBase& chare);

  // --- For periodic_rounds.cpp

  // Reads the header. Returns the collection; null if the message is not to be handled: its collection has ended, it waits until
  // its collection is there, or it does not fit, which ends the job.
  Collection* receive(runtime::MessagePtr& message, Balancing mode, Pup& p, BalancingHeader& header);
  // Ends the job: a message of that PE does not fit, and why.
  void unfit(const Collection& collection, int from_pe, std::string_view what);
  // Returns the load of this PE's element for a decision. The measured time begins anew.
  ReportedLoad take_load(Collection& collection, ChareBase& chare);
  // Adds what the element has sent since its last report. It is number `position` of the report.
  static void take_messages(ChareBase& chare, std::uint64_t position,
                            std::vector<ReportedMessages>& messages);
  // Returns the time in s that this PE has worked for other collections since the last call.
  double take_background_s(Collection& collection);
  // Returns the pace of the elements that have been reported since the last call.
  Pace take_pace(Collection& collection);
  // Writes the loads into a file if the job wants that.
  void record(const balance::Snapshot& snapshot);

 private:
  runtime::Runtime& runtime() const { return chares_.runtime(); }
  static LoadOnTheMove load_on_the_move(const ChareBase& chare);
  LocalSync& local(Collection& collection) const;
  static int decider(const Collection& collection);
  template <class... Values>
  runtime::MessagePtr make(const Collection& collection, std::uint64_t step, SyncKind kind,
                           const Values&... values);

  void wait(ChareBase& chare);
  void post_report(Collection& collection);
  void post(Collection& collection);
  // Reports of collections whose elements on this PE all wait. In a turn of its own: the last caller of at_sync() must have
  // returned, so that its time is complete, and it may be a coroutine.
  void report_posted();
  void report(Collection& collection);
  // In sync/devices.cpp. Whether devices still work for elements that are to be reported. Then the PE reports when they are done.
  bool waits_for_devices(Collection& collection);
  // All steps before that one are over. Returns false if an element of this PE still waits in one of them.
  bool advance(Collection& collection, std::uint64_t step);
  // Checks these moves of elements of this PE, and begins them.
  base::Status plan(Collection& collection, const std::vector<PlannedMove>& moves);
  void finish_plan(Collection& collection);

  // --- Steps that the PEs decide together, in sync/rounds.cpp

  LocalRounds& rounds(Collection& collection);
  void report_waiting(Collection& collection);
  // Tells other PEs what elements of this PE have sent to theirs.
  base::Status tell_talks(Collection& collection);
  base::Status send_talks(Collection& collection, std::uint64_t origin, const std::vector<TalkedTo>& talks);
  void become_ready(Collection& collection);
  base::Status run_rounds(Collection& collection);
  base::Status end_rounds(Collection& collection);
  base::Status give_up(Collection& collection, int to_pe, const std::vector<std::uint64_t>& elements);
  base::Status on_rounds_message(Collection& collection, const BalancingHeader& header, int from_pe, Pup& p);
  base::Status on_begin(Collection& collection, Pup& p);
  base::Status on_talked(Collection& collection, Pup& p);
  base::Status on_places(Collection& collection, int from_pe, Pup& p);
  base::Status on_rounds(Collection& collection);
  base::Status on_state(Collection& collection, int from_pe, Pup& p);
  base::Status on_proposal(Collection& collection, int from_pe, Pup& p);
  base::Status on_taken(Collection& collection, int from_pe, Pup& p);
  // On the PE that has made the collection, in sync/counting.cpp.
  base::Status on_count(Collection& collection, const BalancingHeader& header, int from_pe, Pup& p);

  // A measured collection begins: from now on measured times leave out waits for a processor, unless an option says otherwise.
  void leave_out_waits();

  // --- Background load, in sync/background.cpp

  static bool is_measured(const Collection& collection);
  std::uint64_t work_ns(Collection& collection) const;
  std::uint64_t work_for_others_ns(const Collection& collection) const;
  // The time in s that this PE has worked for other collections in the present step.
  double background_s(Collection& collection);
  // That many steps are over, which end with the present one.
  void steps_are_over(Collection& collection, std::uint64_t num_steps);
  void send_empty_report(Collection& collection);
  base::Status on_background(Collection& collection, int from_pe, Pup& p);
  // Takes what PEs without elements have told since the last decision.
  void use_empty_reports(LocalSync& here);
  base::Status know_background(Collection& collection, int pe, double background_s);

  // Handlers. They return misfit() if the message does not fit, which ends the job.
  base::Status on_step_message(Collection& collection, const BalancingHeader& header, int from_pe, Pup& p);
  base::Status on_loads(Collection& collection, std::uint64_t step, int from_pe, Pup& p);
  base::Status on_plan(Collection& collection, std::uint64_t step, int from_pe, Pup& p);
  base::Status on_stays(Collection& collection, std::uint64_t step);
  base::Status on_done(Collection& collection, std::uint64_t step, int from_pe, Pup& p);
  base::Status on_resume(Collection& collection, std::uint64_t step, int from_pe);

  base::Status decide(Collection& collection);
  void end_step(Collection& collection);
  // The first of the moves that are still to be made.
  void make_next_move(std::uint64_t collection);
  void carry_out(Collection& collection, ChareBase& chare, int to_pe);
  void resume(ChareBase& chare);

  Chares& chares_;
  runtime::HandlerId handler_;
  BalancingOptions options_;
  bool leaves_out_waits_ = false;
  bool records_no_more_ = false;  // a file could not be written
  std::uint64_t num_recorded_ = 0;
  std::uint64_t ended_work_ns_ = 0;    // for collections that have ended; wraps around
  std::vector<std::uint64_t> posted_;  // collections
  runtime::OwnedWork<&SyncPoints::report_posted> work_{*this};
  WantedMoves moves_;  // of plans
};

}  // namespace weft::chare
