#include "models/chare/bundles/grid.h"

#include <cstddef>
#include <vector>

namespace weft::chare {

using runtime::HostGroups;

Grid::Grid(int num_pes, const HostGroups* hosts) {
  int length = 1;  // of a column
  while (length * length < num_pes) ++length;
  const int square_peers = 2 * (length - 1);
  std::vector<int> column_of(static_cast<std::size_t>(num_pes));
  const bool are_hosts =
      hosts != nullptr && hosts->num_hosts() - 1 + hosts->most_on_a_host() - 1 <= 2 * square_peers;
  for (int place = 0; place < num_pes; ++place) {
    const int pe = hosts == nullptr ? place : hosts->member_at(place);
    column_of[static_cast<std::size_t>(pe)] = are_hosts ? hosts->host_of(pe) : place / length;
  }
  columns_ = HostGroups::make(column_of);
}

int Grid::next(int from, int to) const {
  if (is_direct() || columns_->host_of(from) == columns_->host_of(to)) return to;
  const int row = columns_->index_of(from);
  if (row == columns_->index_of(to)) return to;
  if (row < columns_->num_on(columns_->host_of(to))) return columns_->member(columns_->host_of(to), row);
  // The own column is longer than that of the destination, so it has the destination's row.
  return columns_->member(columns_->host_of(from), columns_->index_of(to));
}

}  // namespace weft::chare
