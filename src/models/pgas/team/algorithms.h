// The algorithms of collective operations, for any form of data. `Data` is a rank's part of one collective:
//
//   const Members& members()
//   expect(from, step)           posts the receipt of a part; expected() awaits it
//   send(to, step)               starts to send what this rank has; sent() awaits all sends that were started
//   merge(part, is_in_front)     adds a part to what this rank has; `is_in_front`: it is of lower ranks
//   replace(part)                takes a part in place of what this rank has
//
// A failure is data like any other: a rank that cannot continue sends its error in place of a part, so no rank waits for ever.
#pragma once

#include <cstdint>
#include <utility>

#include "weft/runtime/task.h"

#include "models/pgas/team/exchange.h"
#include "runtime/collective/exchange_plan.h"
#include "runtime/tree/spanning_tree.h"

namespace weft::pgas {

// Down a tree: afterwards all ranks have what `root` has.
template <class Data>
runtime::Task<> spread_down(Data& data, int root) {
  const runtime::SpanningTree tree(root, data.members().rank(), data.members().size(),
                                   data.members().hosts());
  if (!tree.is_root()) {
    data.expect(tree.parent(), 0);
    Part part = co_await data.expected();
    data.replace(std::move(part));
  }
  for (int i = 0; i < tree.num_children(); ++i) data.send(tree.child(i), 0);
  co_await data.sent();
}

// Up the tree: afterwards `root` has what all have.
template <class Data>
runtime::Task<> merge_up(Data& data, int root) {
  const int rank = data.members().rank();
  const runtime::SpanningTree tree(root, rank, data.members().size(), data.members().hosts());
  for (int i = 0; i < tree.num_children(); ++i) {
    const int child = tree.child(i);
    data.expect(child, 0);
    Part part = co_await data.expected();
    data.merge(std::move(part), child < rank);
  }
  if (tree.is_root()) co_return;
  data.send(tree.parent(), 0);
  co_await data.sent();
}

// Recursive doubling: afterwards all ranks have what all have, with the same bits.
template <class Data>
runtime::Task<> merge_on_all(Data& data) {
  const int rank = data.members().rank();
  const runtime::ExchangePlan plan(rank, data.members().size(), data.members().hosts());
  for (int step = 0; step < plan.num_steps(); ++step) {
    const int peer = plan.peer(step);
    if (peer < 0) continue;
    const bool receives = plan.receives(step);
    const auto number = static_cast<std::uint32_t>(step);
    if (receives) data.expect(peer, number);
    if (plan.sends(step)) data.send(peer, number);
    Part part;
    if (receives) part = co_await data.expected();
    co_await data.sent();  // before what was sent changes
    if (!receives) continue;
    if (plan.replaces(step)) {
      data.replace(std::move(part));
    } else {
      data.merge(std::move(part), peer < rank);
    }
  }
}

}  // namespace weft::pgas
