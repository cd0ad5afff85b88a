// The members of a team: which PE has which rank. Never changes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "weft/pgas/team_id.h"

#include "runtime/tree/host_groups.h"

namespace weft::pgas {

class Members {
 public:
  // `pes` in the order of ranks. REQUIRES: `my_pe` is one of them. `job`: the hosts of all PEs, null if they make no difference.
  Members(TeamId id, std::vector<int> pes, int my_pe, const runtime::HostGroups* job = nullptr)
      : id_(id), pes_(std::move(pes)) {
    for (std::size_t rank = 0; rank < pes_.size(); ++rank) {
      if (pes_[rank] != static_cast<int>(rank)) is_identity_ = false;
      by_pe_.emplace_back(pes_[rank], static_cast<int>(rank));
    }
    if (is_identity_) {
      by_pe_.clear();
    } else {
      std::ranges::sort(by_pe_);
    }
    rank_ = rank_of(my_pe);
    if (job == nullptr) return;
    std::vector<int> host_of;
    for (const int pe : pes_) host_of.push_back(job->host_of(pe));
    hosts_ = runtime::HostGroups::make(host_of);
  }

  TeamId id() const { return id_; }
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(pes_.size()); }
  bool has_rank(int rank) const { return rank >= 0 && rank < size(); }
  int pe_of(int rank) const { return pes_[static_cast<std::size_t>(rank)]; }
  const std::vector<int>& pes() const { return pes_; }
  // The hosts of the ranks; null if hosts make no difference in this team.
  const runtime::HostGroups* hosts() const { return hosts_.get(); }
  // -1 if the PE is no member.
  int rank_of(int pe) const {
    if (is_identity_) return has_rank(pe) ? pe : -1;
    const auto found = std::ranges::lower_bound(by_pe_, pe, {}, &std::pair<int, int>::first);
    return found != by_pe_.end() && found->first == pe ? found->second : -1;
  }

 private:
  TeamId id_;
  std::vector<int> pes_;
  bool is_identity_ = true;                 // rank r is PE r
  std::vector<std::pair<int, int>> by_pe_;  // PE and rank, unless is_identity_
  int rank_ = -1;
  std::shared_ptr<const runtime::HostGroups> hosts_;
};

}  // namespace weft::pgas
