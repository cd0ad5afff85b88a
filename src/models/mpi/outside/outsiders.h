// Outsiders: the processes of other jobs that this PE knows, and their numbers.
//
// Inside a process they have numbers behind those of MPI_COMM_WORLD, in the order in which they were met. Other processes number them
// otherwise, so groups travel as names.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "machine/links/process_name.h"
#include "models/mpi/objects/members.h"

namespace weft::mpi {

using machine::ProcessName;
using ProcessNames = std::vector<ProcessName>;
// A larger group of another job comes from a damaged message or a wrong call.
inline constexpr std::uint64_t kMostProcesses = std::uint64_t{1} << 20;

// The way of messages to outsiders.
class OutsideWay {
 public:
  // What the engine of messages sends. The values travel.
  enum class Type : std::uint32_t { kMessage = 1, kAnswer = 2 };
  // Sends the parts as one; they are free when it returns. What is for a process that has ended is dropped.
  virtual void send(const ProcessName& to, Type type, std::span<const std::byte> first,
                    std::span<const std::byte> second = {}, std::span<const std::byte> third = {}) = 0;

 protected:
  ~OutsideWay() = default;
};

class Outsiders {
 public:
  // `num_ranks`: of MPI_COMM_WORLD.
  explicit Outsiders(int num_ranks) : num_ranks_(num_ranks) {}

  // The job has a name. REQUIRES: before the first outsider.
  void set_job(const machine::JobNumber& job) { job_ = job; }
  const machine::JobNumber& job() const { return job_; }
  OutsideWay* way = nullptr;  // null until the process can be connected

  bool is_outside(int number) const { return number >= num_ranks_; }
  bool are_known() const { return !names_.empty(); }
  int num_known() const { return static_cast<int>(names_.size()); }
  ProcessName name_of(int number) const {
    return is_outside(number) ? names_[static_cast<std::size_t>(number - num_ranks_)]
                              : ProcessName{job_, number, 0};
  }
  ProcessNames names_of(const Members& members) const;
  // Throws Error for a name that no process has, and for a rank that this job does not have.
  void check(const ProcessName& name) const;
  // A name that has no number yet gets the next one. Throws Error as check() does.
  int number_of(const ProcessName& name);

  // How many communicators have the outsider. The end of a process that is in none does not matter.
  void add_uses(const Members& members, int count);
  bool is_in_use(const ProcessName& name) const;

 private:
  machine::JobNumber job_{};
  int num_ranks_;
  ProcessNames names_;
  std::vector<int> uses_;  // of each
  std::map<ProcessName, int> numbers_;
};

}  // namespace weft::mpi
