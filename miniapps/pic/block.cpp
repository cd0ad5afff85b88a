#include "block.h"

#include <chrono>
#include <stdexcept>
#include <utility>

#include "fmt/format.h"

namespace pic {
namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void Block::pup(weft::Pup& p) {
  p | setup_ | particles_ | step_ | last_step_ | synced_step_ | has_moved_ | num_arrived_ | early_ | done_ |
      sync_s_ | syncs_;
}

void Block::run(std::int64_t last_step, weft::Future<> done) {
  last_step_ = last_step;
  done_ = std::move(done);
  go_on();
}

void Block::arrive(std::int64_t step, std::span<const double> particles) {
  if (!has_moved_ || step != step_) {
    if (step != step_ + (has_moved_ ? 1 : 0)) {
      throw std::runtime_error(fmt::format("particles of step {} have come in step {}", step, step_));
    }
    early_.emplace_back(particles.begin(), particles.end());
    return;
  }
  particles_.put_in(particles);
  if (++num_arrived_ == particles_.partners().size()) go_on();
}

void Block::resume_from_sync() {
  syncs_.push_back({sync_s_, now_s(), pe()});
  go_on();
}

void Block::go_on() {
  while (true) {
    if (!has_moved_) {
      if (step_ == last_step_) return contribute(weft::target_of(done_));
      if (is_at_sync()) {
        synced_step_ = step_;
        if (setup_.counts_particles) set_load_s(static_cast<double>(particles_.count()));
        sync_s_ = now_s();
        return at_sync();
      }
      move();
    }
    if (num_arrived_ < particles_.partners().size()) return;
    has_moved_ = false;
    num_arrived_ = 0;
    ++step_;
  }
}

// A multiple of lb_every before or after the first timed step.
bool Block::is_at_sync() const {
  const std::int64_t timed = step_ - setup_.warmup;
  return setup_.lb_every != 0 && step_ != synced_step_ && timed % setup_.lb_every == 0;
}

void Block::move() {
  particles_.move();
  for (std::size_t slot = 0; slot < particles_.partners().size(); ++slot) {
    proxy()[static_cast<int>(particles_.partners()[slot])].send<&Block::arrive>(step_,
                                                                                particles_.outgoing()[slot]);
  }
  has_moved_ = true;
  for (const std::vector<double>& message : early_) particles_.put_in(message);
  num_arrived_ = early_.size();
  early_.clear();
}

}  // namespace pic
