#include "ranks/hosted_ranks.h"

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string_view>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "models/mpi/virtual_ranks/running_code.h"

namespace weft::mpi {

// --- HostedRank

namespace {

// The bytes that a HostedRank takes at the top of its stack, above the fiber's part.
constexpr std::size_t kRankBytes = (sizeof(HostedRank) + 63) / 64 * 64;

}  // namespace

HostedRank::HostedRank(HostedRanks& all, int number, const Fiber::Stack& stack)
    : all_(all), number_(number), fiber_(stack, &HostedRank::body, this) {
  make_state();
}

// Its predefined objects do not count as the rank's.
void HostedRank::make_state() {
  VirtualRank* const before = VirtualRank::current();
  VirtualRank::set_current(nullptr);
  own_objects_ = std::make_unique<RankObjects>();
  set_objects(own_objects_.get());
  own_state_ = std::make_unique<Rank>(predefined_attributes_);
  set_state(own_state_.get());
  VirtualRank::set_current(before);
}

void HostedRank::depart() {
  set_scheduler(nullptr);
  set_state(nullptr);
  set_objects(nullptr);
  own_state_ = nullptr;
  own_objects_ = nullptr;
}

void HostedRank::arrive(runtime::Scheduler& scheduler) {
  make_state();
  set_scheduler(&scheduler);
}

void HostedRank::body(void* self) {
  auto* const rank = static_cast<HostedRank*>(self);
  const weft_mpi_host_program& program = rank->all_.program_;
  RunningCode::set_program(rank);
  rank->end(program.run_rank(program.context, rank->number_));
}

void HostedRank::end(int code) {
  RunningCode::set_program(nullptr);
  if (getpid() != all_.process_) [[unlikely]] {  // the rank has forked it; the other ranks run in the parent
    std::fflush(nullptr);
    std::_Exit(code);
  }
  all_.hooks_.rank_ends(*this, code);
  has_ended_ = true;
  exit_code_ = code;
  all_.rank_ended(code);
  if (all_.is_in_parallel_region()) all_.program_.openmp->put_aside(all_.program_.context);  // it ends inside
  fiber_.abandon();
}

void HostedRank::resume() {
  all_.running_ = this;
  if (all_.measures_loads_) {
    slice_begin_ = std::chrono::steady_clock::now();
    fiber_.resume();
    add_slice();
  } else {
    fiber_.resume();
  }
  all_.running_ = nullptr;
}

namespace {

[[gnu::cold, gnu::noinline]] void end_for_other_thread(const Rank& state, int number) {
  state.end_job(
      base::format(
          "weft: another thread than that of rank {} waits in MPI. With several ranks per process, the "
          "thread level is MPI_THREAD_FUNNELED: in a region of OpenMP, the master alone calls MPI. Start one "
          "PE per "
          "rank for MPI_THREAD_MULTIPLE",
          number),
      1);
}

[[gnu::cold, gnu::noinline]] void end_in_region(const Rank& state, int number, std::string_view region,
                                                std::string_view remedy) {
  state.end_job(
      base::format("weft: rank {} waits in MPI inside an OpenMP {}. The other ranks of its process would run "
                   "inside it; call MPI outside of regions, {}, or start one PE per rank",
                   number, region, remedy),
      1);
}

}  // namespace

void HostedRank::suspend() {
  if (pthread_equal(pthread_self(), all_.thread_) == 0) [[unlikely]]
    end_for_other_thread(state(), number_);
  if (all_.is_in_parallel_region() && all_.ranks_.size() > 1) [[unlikely]]
    return suspend_in_region();
  fiber_.suspend();
}

void HostedRank::suspend_in_region() {
  const weft_mpi_host_openmp& openmp = *all_.program_.openmp;
  if (openmp.active_level() > 0)
    end_in_region(state(), number_, "region of several threads", "set OMP_NUM_THREADS=1");
  void* const region = openmp.put_aside(all_.program_.context);
  if (region == nullptr)
    end_in_region(state(), number_, "region, whose runtime is not GCC's libgomp",
                  "link libgomp and set OMP_NUM_THREADS=1");
  fiber_.suspend();
  openmp.take_back(all_.program_.context, region);
}

void HostedRank::add_slice() {
  const auto now = std::chrono::steady_clock::now();
  load_s_ += std::chrono::duration<double>(now - slice_begin_).count();
  slice_begin_ = now;
}

double HostedRank::take_load_s() {
  if (all_.measures_loads_) add_slice();
  return std::exchange(load_s_, 0.0);
}

bool HostedRank::add_move_function(Weft_move_function function, void* data) {
  if (num_move_functions_ == kMostMoveFunctions) return false;
  move_functions_[num_move_functions_++] = {function, data};
  return true;
}

void HostedRank::call_move_functions(int event) const {
  const ProgramRuns program;
  for (std::size_t i = 0; i < num_move_functions_; ++i)
    move_functions_[i].function(event, move_functions_[i].data);
}

// --- HostedRanks

HostedRanks::HostedRanks(const weft_mpi_host_program& program, const Hooks& hooks)
    : program_(program),
      hooks_(hooks),
      map_(std::vector<int>(program.pe_of_rank, program.pe_of_rank + program.num_ranks), program.num_pes) {
  for (const int number : map_.ranks_on(program.pe)) {
    ranks_.push_back(make_rank(number));
    ready_.push_back(ranks_.back());
  }
  num_alive_ = static_cast<int>(ranks_.size());
  RunningCode::expect_ranks();
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

HostedRank* HostedRanks::place_of(int rank) const {
  const Fiber::Stack stack = stack_of(rank);
  if (stack.lowest == nullptr) return nullptr;
  return reinterpret_cast<HostedRank*>(static_cast<std::byte*>(stack.lowest) + stack.size_bytes - kRankBytes);
}

HostedRank* HostedRanks::make_rank(int rank) {
  Fiber::Stack stack = stack_of(rank);
  HostedRank* const place = place_of(rank);
  if (place == nullptr) return new HostedRank(*this, rank, stack);
  stack.size_bytes -= kRankBytes;
  return new (place) HostedRank(*this, rank, stack);
}

void HostedRanks::replace_map(RankMap map) {
  const auto num_before = static_cast<int>(ranks_.size());
  map_ = std::move(map);
  ranks_.clear();
  for (const int number : map_.ranks_on(program_.pe)) ranks_.push_back(place_of(number));
  const int change = static_cast<int>(ranks_.size()) - num_before;
  num_alive_ += change;
  num_in_job_ += change;
}

void HostedRanks::expect_restored(RankMap map) {
  if (restored_map_) return;
  restored_map_ = std::move(map);
  ready_.clear();
  for (const int number : map_.ranks_on(program_.pe)) {
    place_of(number)->depart();
    program_.moves->rank_left(program_.context, number);
  }
}

void HostedRanks::take_restored() {
  replace_map(*restored_map_);
  ready_.assign(ranks_.begin(), ranks_.end());
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
  for (HostedRank* const rank : ranks_) rank->set_scheduler(&runtime);
  for (HostedRank* const rank : std::exchange(ready_, {})) rank->wake();
}

// Until all ranks have left the job; then it ends.
void HostedRanks::run_in_job() {
  const bool all_left =
      runtime_->run_until([](void* self) { return static_cast<HostedRanks*>(self)->num_in_job_ == 0; }, this);
  if (!all_left) hooks_.fail_job();
  job_code_ = hooks_.finish_job();
  runtime_ = nullptr;
  for (HostedRank* const rank : ranks_) {
    rank->set_scheduler(nullptr);
    if (!rank->has_ended()) ready_.push_back(rank);
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
