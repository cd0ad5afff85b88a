// Which members are on which host, for trees that cross the link to a host once. Members are the PEs of a job, or the ranks
// of a team. Never changes, and is the same on all members.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace weft::runtime {

class HostGroups {
 public:
  // `host_of`: any number for the host of each member. Null if hosts make no difference: all members are on one host, or each
  // is on a host of its own.
  static std::shared_ptr<const HostGroups> make(std::span<const int> host_of);

  int num_hosts() const { return static_cast<int>(firsts_.size()) - 1; }
  // Hosts are numbered in the order of their first members.
  int host_of(int member) const { return hosts_[static_cast<std::size_t>(member)]; }
  int num_on(int host) const { return first(host + 1) - first(host); }
  int most_on_a_host() const { return most_; }
  // The members of a host have indices, in the order of their numbers.
  int index_of(int member) const { return indices_[static_cast<std::size_t>(member)]; }
  int member(int host, int index) const { return member_at(first(host) + index); }

  // The members host by host: which one is at a place, and the place of the first member of a host.
  // first(num_hosts()) is the number of members.
  int member_at(int place) const { return members_[static_cast<std::size_t>(place)]; }
  int first(int host) const { return firsts_[static_cast<std::size_t>(host)]; }
  // Whether each member is at the place of its number: the members of a host have consecutive numbers.
  bool are_consecutive() const { return are_consecutive_; }

 private:
  std::vector<int> hosts_;    // by member
  std::vector<int> indices_;  // by member
  std::vector<int> firsts_;   // by host: the place of its first member in members_; and the number of members
  std::vector<int> members_;  // host by host
  int most_ = 0;
  bool are_consecutive_ = false;
};

}  // namespace weft::runtime
