// Load balancing without sync points, on one PE: in rounds, a period apart, elements move between two of their calls.
// periodic_rounds.cpp describes the protocol.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "weft/base/pup.h"
#include "weft/chare/chares.h"

#include "models/chare/balancing/wanted_moves.h"
#include "models/chare/elements/feature.h"
#include "runtime/owned_work.h"

namespace weft::chare {

struct LocalRound;

class PeriodicBalancing final : public Feature {
 public:
  PeriodicBalancing(Chares& chares, FeatureTable& table)
      : Feature(table),
        chares_(chares),
        handler_(table.add_handlers<&PeriodicBalancing::on_message>(*this)),
        moves_(chares.runtime(), [this](runtime::ElementId element) { make_move(element); }) {}

  // --- Feature
  bool measures(const Collection& made) const override;
  void collection_begins(Collection& made) override;
  void collection_ends(Collection& target) override;
  bool continue_move(ChareBase& chare) override;
  void moves_no_more(const ChareBase& chare) override;

  void on_message(runtime::MessagePtr message);
  runtime::HandlerId handler() const { return handler_; }

  // For checkpoints. While a PE holds, no element begins to move, and no round begins; plans are given up. Each hold() needs a release().
  void hold();
  void release() { num_holds_ -= num_holds_ > 0 ? 1 : 0; }

 private:
  enum class Kind : std::uint32_t;

  runtime::Runtime& runtime() const { return chares_.runtime(); }
  LocalRound& local(Collection& collection) const;
  static int decider(const Collection& collection);
  template <class... Values>
  runtime::MessagePtr make(const Collection& collection, std::uint64_t round, Kind kind,
                           const Values&... values) const;

  void arm();
  void tick();
  void begin_round(Collection& collection);
  void report(Collection& collection, std::uint64_t round);
  void decide(Collection& collection);
  void end_round(Collection& collection);
  void make_move(runtime::ElementId element);
  // The element is in the plan.
  void carry_out(Collection& collection, ChareBase& chare);
  void give_up_plan(Collection& collection);
  void finish_plan(Collection& collection);

  // Handlers. They return misfit() if the message does not fit, which ends the job.
  base::Status on_loads(Collection& collection, std::uint64_t round, int from_pe, Pup& p);
  base::Status on_plan(Collection& collection, std::uint64_t round, Pup& p);
  base::Status on_done(Collection& collection, std::uint64_t round, int from_pe, Pup& p);

  Chares& chares_;
  runtime::HandlerId handler_;
  std::set<std::uint64_t> decided_;  // collections
  bool is_armed_ = false;
  int num_holds_ = 0;
  runtime::OwnedWork<&PeriodicBalancing::tick> tick_{*this};
  WantedMoves moves_;
};

}  // namespace weft::chare
