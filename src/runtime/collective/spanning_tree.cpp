#include "runtime/collective/spanning_tree.h"

namespace weft::runtime {

int SpanningTree::leader_of(int host) const {
  if (host == hosts_->host_of(root_pe_)) return root_pe_;
  return hosts_->member(host, hosts_->index_of(root_pe_) % hosts_->num_on(host));
}

CompleteTree SpanningTree::tree_of_hosts() const {
  const int num_hosts = hosts_->num_hosts();
  const int distance = hosts_->host_of(pe_of(rank_)) - hosts_->host_of(root_pe_);
  return {(distance + num_hosts) % num_hosts, num_hosts};
}

int SpanningTree::host_at(int rank) const { return (hosts_->host_of(root_pe_) + rank) % hosts_->num_hosts(); }

CompleteTree SpanningTree::tree_on_host() const {
  const int pe = pe_of(rank_);
  const int host = hosts_->host_of(pe);
  const int size = hosts_->num_on(host);
  return {(hosts_->index_of(pe) - hosts_->index_of(leader_of(host)) + size) % size, size};
}

int SpanningTree::member_at(int rank) const {
  const int host = hosts_->host_of(pe_of(rank_));
  return hosts_->member(host, (hosts_->index_of(leader_of(host)) + rank) % hosts_->num_on(host));
}

int SpanningTree::parent_with_hosts() const {
  const CompleteTree here = tree_on_host();
  return here.rank > 0 ? member_at(here.parent()) : leader_of(host_at(tree_of_hosts().parent()));
}

int SpanningTree::num_children_with_hosts() const {
  const CompleteTree here = tree_on_host();
  return here.num_children() + (here.rank == 0 ? tree_of_hosts().num_children() : 0);
}

int SpanningTree::child_with_hosts(int which) const {
  const CompleteTree here = tree_on_host();
  const CompleteTree hosts = tree_of_hosts();
  const int num_leaders = here.rank == 0 ? hosts.num_children() : 0;
  if (which < num_leaders) return leader_of(host_at(hosts.first_child() + which));
  return member_at(here.first_child() + which - num_leaders);
}

int SpanningTree::num_with_hosts() const {
  const CompleteTree here = tree_on_host();
  if (here.rank > 0) return here.num_in_subtree();
  int count = 0;
  tree_of_hosts().for_levels([&](int first, int last) {
    for (int rank = first; rank <= last; ++rank) count += hosts_->num_on(host_at(rank));
  });
  return count;
}

}  // namespace weft::runtime
