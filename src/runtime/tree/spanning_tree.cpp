#include "runtime/tree/spanning_tree.h"

namespace weft::runtime {

int PlaceAmongHosts::leader_of(int host) const {
  return hosts->member(host, hosts->index_of(root_pe) % hosts->num_on(host));
}

CompleteTree PlaceAmongHosts::tree_of_hosts() const {
  const int num_hosts = hosts->num_hosts();
  return {(hosts->host_of(pe) - hosts->host_of(root_pe) + num_hosts) % num_hosts, num_hosts};
}

int PlaceAmongHosts::host_at(int rank) const { return (hosts->host_of(root_pe) + rank) % hosts->num_hosts(); }

CompleteTree PlaceAmongHosts::tree_on_host() const {
  const int host = hosts->host_of(pe);
  const int size = hosts->num_on(host);
  return {(hosts->index_of(pe) - hosts->index_of(leader_of(host)) + size) % size, size};
}

int PlaceAmongHosts::member_at(int rank) const {
  const int host = hosts->host_of(pe);
  return hosts->member(host, (hosts->index_of(leader_of(host)) + rank) % hosts->num_on(host));
}

int PlaceAmongHosts::parent(PlaceAmongHosts place) {
  const CompleteTree here = place.tree_on_host();
  if (here.rank > 0) return place.member_at(here.parent());
  return place.leader_of(place.host_at(place.tree_of_hosts().parent()));
}

int PlaceAmongHosts::num_children(PlaceAmongHosts place) {
  const CompleteTree here = place.tree_on_host();
  return here.num_children() + (here.rank == 0 ? place.tree_of_hosts().num_children() : 0);
}

int PlaceAmongHosts::child(PlaceAmongHosts place, int which) {
  const CompleteTree here = place.tree_on_host();
  const CompleteTree hosts = place.tree_of_hosts();
  const int num_leaders = here.rank == 0 ? hosts.num_children() : 0;
  if (which < num_leaders) return place.leader_of(place.host_at(hosts.first_child() + which));
  return place.member_at(here.first_child() + which - num_leaders);
}

int PlaceAmongHosts::num_in_subtree(PlaceAmongHosts place) {
  const CompleteTree here = place.tree_on_host();
  if (here.rank > 0) return here.num_in_subtree();
  int count = 0;
  place.tree_of_hosts().for_levels([&](int first, int last) {
    for (int rank = first; rank <= last; ++rank) count += place.hosts->num_on(place.host_at(rank));
  });
  return count;
}

}  // namespace weft::runtime
