#include "hosted_ranks.h"

#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "models/mpi/virtual_ranks/running_code.h"

namespace weft::mpi {

// --- HostedRank

HostedRank::HostedRank(HostedRanks& all, int number)
    : VirtualRank(own_state_),
      all_(all),
      number_(number),
      fiber_(all.stack_of(number), &HostedRank::body, this) {}

void HostedRank::body(void* self) {
  auto* const rank = static_cast<HostedRank*>(self);
  const weft_mpi_host_program& program = rank->all_.program_;
  RunningCode::set_program(rank);
  rank->end(program.run_rank(program.context, rank->number_));
}

void HostedRank::end(int code) {
  RunningCode::set_program(nullptr);
  all_.hooks_.rank_ends(*this, code);
  has_ended_ = true;
  all_.rank_ended(code);
  fiber_.abandon();
}

void HostedRank::resume() {
  all_.running_ = this;
  fiber_.resume();
  all_.running_ = nullptr;
}

// --- HostedRanks

HostedRanks::HostedRanks(const weft_mpi_host_program& program, const Hooks& hooks)
    : program_(program),
      hooks_(hooks),
      map_(std::vector<int>(program.pe_of_rank, program.pe_of_rank + program.num_ranks), program.num_pes) {
  for (const int number : map_.ranks_on(program.pe)) {
    ranks_.push_back(std::make_unique<HostedRank>(*this, number));
    ready_.push_back(ranks_.back().get());
  }
  num_alive_ = static_cast<int>(ranks_.size());
  current_ = this;
}

HostedRank* HostedRanks::running() {
  if (current_ == nullptr || pthread_equal(pthread_self(), current_->thread_) == 0) return nullptr;
  return current_->running_;
}

HostedRank* HostedRanks::running_program() { return static_cast<HostedRank*>(RunningCode::program()); }

Fiber::Stack HostedRanks::stack_of(int rank) const {
  return {
      .lowest = program_.stack_of_rank == nullptr ? nullptr : program_.stack_of_rank(program_.context, rank),
      .size_bytes = program_.stack_size_bytes};
}

int HostedRanks::run() {
  while (num_alive_ > 0) {
    if (runtime_ != nullptr) {
      run_in_job();
      continue;
    }
    HostedRank* const rank = ready_.front();
    ready_.pop_front();
    rank->run_on();
    if (main_call_ == nullptr) continue;
    (*std::exchange(main_call_, nullptr))();
    if (runtime_ == nullptr) {
      ready_.push_front(rank);
    } else {
      rank->wake();
    }
  }
  // Ranks that have opened sessions and ended leave a job to end.
  if (runtime_ != nullptr) run_in_job();
  VirtualRank::set_current(nullptr);
  return exit_code_ != 0 ? exit_code_ : job_code_;
}

void HostedRanks::enter_job(runtime::Runtime& runtime) {
  runtime_ = &runtime;
  num_in_job_ = static_cast<int>(ranks_.size());
  for (const auto& rank : ranks_) rank->set_scheduler(&runtime);
  for (HostedRank* const rank : std::exchange(ready_, {})) rank->wake();
}

// Until all ranks have left the job; then it ends.
void HostedRanks::run_in_job() {
  const bool all_left =
      runtime_->run_until([](void* self) { return static_cast<HostedRanks*>(self)->num_in_job_ == 0; }, this);
  if (!all_left) hooks_.fail_job();
  job_code_ = hooks_.finish_job();
  runtime_ = nullptr;
  for (const auto& rank : ranks_) {
    rank->set_scheduler(nullptr);
    if (!rank->has_ended()) ready_.push_back(rank.get());
  }
}

void HostedRanks::call_on_main_stack(const std::function<void()>& function) {
  main_call_ = &function;
  running_->wait();
}

int HostedRanks::leave_job() {
  HostedRank* const rank = running_;
  --num_in_job_;
  do rank->wait();
  while (runtime_ != nullptr);
  return job_code_;
}

void HostedRanks::rank_ended(int code) {
  --num_alive_;
  if (exit_code_ == 0) exit_code_ = code;
}

}  // namespace weft::mpi
