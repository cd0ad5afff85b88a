#include "models/mpi/outside/outsiders.h"

#include "base/format.h"
#include "base/refuse_claim.h"

namespace weft::mpi {

ProcessNames Outsiders::names_of(const Members& members) const {
  ProcessNames names;
  names.reserve(members.size());
  for (const int number : members) names.push_back(name_of(number));
  return names;
}

void Outsiders::check(const ProcessName& name) const {
  // A job without a number has the launcher's, and no processes of other jobs.
  const bool is_here = name.job == job_;
  if (name.rank < 0 || name.unused != 0 || (!is_here && name.is_launcher()))
    base::refuse_claim(base::format("a process names rank {} of another job wrongly", name.rank));
  if (is_here && name.rank >= num_ranks_)
    base::refuse_claim(
        base::format("a process names rank {} of this job, which has {} ranks", name.rank, num_ranks_));
}

int Outsiders::number_of(const ProcessName& name) {
  check(name);
  if (name.job == job_) return name.rank;
  const auto [place, is_new] = numbers_.emplace(name, num_ranks_ + num_known());
  if (is_new) {
    names_.push_back(name);
    uses_.push_back(0);
  }
  return place->second;
}

void Outsiders::add_uses(const Members& members, int count) {
  for (const int number : members)
    if (is_outside(number)) uses_[static_cast<std::size_t>(number - num_ranks_)] += count;
}

bool Outsiders::is_in_use(const ProcessName& name) const {
  const auto known = numbers_.find(name);
  return known != numbers_.end() && uses_[static_cast<std::size_t>(known->second - num_ranks_)] > 0;
}

}  // namespace weft::mpi
