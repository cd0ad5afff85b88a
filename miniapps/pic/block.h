// The chare: a block of the grid with its particles. pic_blocks.py is the same in Python.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/weft.h"

#include "particles.h"
#include "verification.h"

namespace pic {

// The constructor argument of every block. There is a sync point before the first timed step, and every `lb_every` steps
// before it and after it; 0: none. `counts_particles`: the load of a block is the number of its particles, not the time that was measured.
struct Setup {
  Problem problem;
  std::int64_t lb_every = 0;
  std::int64_t warmup = 1;
  bool counts_particles = false;
};

// When a block got to a sync point and when it went on, on the clock of its host, and then on which PE.
struct Sync {
  double begin_s = 0;
  double end_s = 0;
  std::int32_t pe = 0;
};

// What a block has done.
struct Account {
  double compute_s = 0;
  std::vector<Sync> syncs;

  void pup(weft::Pup& p) { p | compute_s | syncs; }
};

// It sends particles to each partner once a step, and goes on when each partner has sent its own. No entry method waits, so a
// block can move at every sync point.
class Block : public weft::Chare<Block> {
 public:
  explicit Block(weft::Moved) {}
  explicit Block(const Setup& setup)
      : setup_(setup), particles_(setup.problem, static_cast<std::int64_t>(linear_index())) {}
  void pup(weft::Pup& p);

  // Steps until `last_step` is over; `done` gets a contribution then.
  void run(std::int64_t last_step, weft::Future<> done);
  // The particles that a partner sends in `step`.
  void arrive(std::int64_t step, std::span<const double> particles);
  void resume_from_sync() override;

  Account account() { return {particles_.compute_s(), syncs_}; }
  // The warm-up does not count.
  void restart_account() {
    particles_.restart_clock();
    syncs_.clear();
  }
  // What the block holds, compared with what must be there after that many steps of the program.
  Found examine(std::int64_t steps) { return pic::examine(setup_.problem, particles_.fields(), steps); }

 private:
  // Steps until messages of this step are missing, or until a sync point.
  void go_on();
  bool is_at_sync() const;
  void move();

  Setup setup_;
  Particles particles_;
  std::int64_t step_ = 0;
  std::int64_t last_step_ = 0;
  std::int64_t synced_step_ = 0;
  bool has_moved_ = false;         // its particles, in this step
  std::uint64_t num_arrived_ = 0;  // messages of this step
  // Messages that have come before this block has moved its own particles in that step. A partner is one step ahead at most,
  // because it needs this block's particles for the next.
  std::vector<std::vector<double>> early_;
  weft::Future<> done_;
  double sync_s_ = 0;
  std::vector<Sync> syncs_;
};

}  // namespace pic
