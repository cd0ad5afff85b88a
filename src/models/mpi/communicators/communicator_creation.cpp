#include "models/mpi/communicators/communicator_creation.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "weft/base/error.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "machine/machine.h"
#include "models/mpi/objects/group.h"

namespace weft::mpi {

namespace {

// The contribution of each process: its choice, and numbers for the contexts if it becomes the first of its group.
struct Contribution {
  std::int64_t color = 0;
  std::int64_t key = 0;
  std::uint64_t context = 0;
  std::uint64_t local_context = 0;
};

// `has_outsiders`: of the processes that agree.
Contribution contribution(PointToPoint& engine, bool has_outsiders, std::int64_t color = 0,
                          std::int32_t key = 0) {
  if (has_outsiders)
    return {color, key, PointToPoint::new_outside_context_base(), PointToPoint::new_outside_context_base()};
  return {color, key, engine.new_context_base(), engine.new_context_base()};
}

std::vector<Contribution> decoded(const std::vector<std::byte>& bytes) {
  std::vector<Contribution> all(bytes.size() / sizeof(Contribution));
  std::memcpy(all.data(), bytes.data(), all.size() * sizeof(Contribution));
  return all;
}

// The contributions of the local and, of an intercommunicator, the remote group.
struct Contributions {
  std::vector<Contribution> local;
  std::vector<Contribution> remote;
};

runtime::Task<Contributions> exchange(Ref<Communicator> parent, Contribution mine,
                                      Communicator::CallKind kind = Communicator::CallKind::kWaits) {
  Communicator::ContextPair contexts = parent->next_collective_contexts(kind);
  Contributions all;
  const std::vector<std::byte> blocks = co_await allgather_bytes(contexts.local, bytes_of_value(mine));
  all.local = decoded(blocks);
  if (parent->is_inter()) {
    all.remote.resize(static_cast<std::size_t>(parent->remote_size()));
    const std::span<std::byte> theirs = std::as_writable_bytes(std::span(all.remote));
    if (parent->rank() == 0) co_await swap_bytes(contexts.remote, 0, blocks, theirs);
    co_await broadcast_bytes(contexts.local, 0, theirs);
  }
  co_return all;
}

// The places of those with that color, in the order of their keys.
std::vector<std::size_t> places_with(const std::vector<Contribution>& all, std::int64_t color) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].color == color) places.push_back(i);
  }
  std::stable_sort(places.begin(), places.end(),
                   [&](std::size_t a, std::size_t b) { return all[a].key < all[b].key; });
  return places;
}

MembersPointer members_at(const Members& members, const std::vector<std::size_t>& places) {
  auto chosen = std::make_shared<Members>();
  for (const std::size_t place : places) chosen->push_back(members[place]);
  return chosen;
}

Ref<Communicator> made(PointToPoint& engine, std::uint64_t context, Communicator::Groups groups,
                       std::uint64_t local_context, Ref<ErrorHandler> handler) {
  return Ref<Communicator>::adopt(
      new Communicator(engine, context, std::move(groups), local_context, std::move(handler)));
}

// With the error handler and the session of `parent`.
Ref<Communicator> made_from(const Communicator& parent, std::uint64_t context, Communicator::Groups groups,
                            std::uint64_t local_context) {
  Ref<Communicator> child =
      made(parent.engine(), context, std::move(groups), local_context, parent.error_handler());
  child->session_space = parent.session_space;
  return child;
}

}  // namespace

runtime::Task<Ref<Communicator>> split(Ref<Communicator> parent, Choice mine) {
  PointToPoint& engine = parent->engine();
  const Contributions all =
      co_await exchange(parent, contribution(engine, parent->has_outsiders(), mine.color, mine.key));
  if (mine.color == kNoColor) co_return nullptr;
  const std::vector<std::size_t> local = places_with(all.local, mine.color);
  const Contribution& first = all.local[local.front()];
  Communicator::Groups groups;
  groups.local = members_at(*parent->group(), local);
  groups.rank = static_cast<int>(
      std::find(local.begin(), local.end(), static_cast<std::size_t>(parent->rank())) - local.begin());
  if (!parent->is_inter()) co_return made_from(*parent, first.context, std::move(groups), 0);
  const std::vector<std::size_t> remote = places_with(all.remote, mine.color);
  if (remote.empty()) co_return nullptr;
  groups.remote = members_at(*parent->remote_group(), remote);
  co_return made_from(*parent, std::min(first.context, all.remote[remote.front()].context), std::move(groups),
                      first.local_context);
}

Ref<Communicator> begin_duplicate(const Communicator& parent) {
  Ref<Communicator> copy = made_from(parent, 0, {parent.group(), parent.rank(), parent.remote_group()}, 0);
  copy->topology = parent.topology;
  return copy;
}

runtime::Task<> duplicate(Ref<Communicator> parent, Ref<Communicator> copy, Communicator::CallKind kind) {
  const Contributions all =
      co_await exchange(parent, contribution(parent->engine(), parent->has_outsiders()), kind);
  std::uint64_t context = all.local.front().context;
  if (parent->is_inter()) context = std::min(context, all.remote.front().context);
  copy->set_contexts(context, all.local.front().local_context);
}

runtime::Task<Ref<Communicator>> merge(Ref<Communicator> inter, bool high) {
  PointToPoint& engine = inter->engine();
  const Contributions all =
      co_await exchange(inter, contribution(engine, inter->has_outsiders(), high ? 1 : 0));
  const Contribution& mine = all.local.front();
  const Contribution& theirs = all.remote.front();
  // If both groups say the same, the smaller number decides.
  const bool local_first =
      mine.color != theirs.color ? mine.color < theirs.color : mine.context < theirs.context;
  const Members& first = local_first ? *inter->group() : *inter->remote_group();
  const Members& second = local_first ? *inter->remote_group() : *inter->group();
  auto members = std::make_shared<Members>(first);
  members->insert(members->end(), second.begin(), second.end());
  const int rank = inter->rank() + (local_first ? 0 : inter->remote_size());
  co_return made_from(*inter, std::min(mine.context, theirs.context), {std::move(members), rank, nullptr}, 0);
}

// --- Of a group

namespace {

// FNV-1a, with the highest bit set: such a context belongs to no communicator.
class AgreementContext {
 public:
  explicit AgreementContext(std::string_view text) {
    for (const char c : text) add(static_cast<unsigned char>(c));
  }
  AgreementContext& with(const PointToPoint& engine, const Members& members) {
    add(members.size());
    for (const ProcessName& name : engine.shared().outsiders().names_of(members)) {
      for (const std::uint64_t part : name.job) add(part);
      add(static_cast<std::uint64_t>(name.rank));
    }
    return *this;
  }
  std::uint64_t number() const { return hash_ | std::uint64_t{1} << 63; }

 private:
  void add(std::uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001b3U; }
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

// `ranks`: of the members in the context.
runtime::Task<Ref<Communicator>> agree(PointToPoint& engine, CollectiveContext context,
                                       std::vector<int> ranks, MembersPointer members, int place,
                                       Ref<ErrorHandler> handler) {
  const Outsiders& outsiders = engine.shared().outsiders();
  Contribution mine =
      contribution(engine, std::ranges::any_of(*members, [&](int one) { return outsiders.is_outside(one); }));
  const std::vector<std::byte> blocks =
      co_await allgather_bytes_among(std::move(context), std::move(ranks), place, bytes_of_value(mine));
  co_return made(engine, decoded(blocks).front().context, {std::move(members), place, nullptr}, 0,
                 std::move(handler));
}

std::vector<int> all_ranks(std::size_t size) {
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// The rank of each member in `all`. REQUIRES: they are there.
std::vector<int> ranks_in(const Members& all, const Members& members) {
  std::vector<int> ranks = all_ranks(members.size());
  static_cast<void>(translate_ranks(members, ranks, all, ranks.data()));
  return ranks;
}

}  // namespace

runtime::Task<Ref<Communicator>> create_group(Ref<Communicator> parent, MembersPointer members, int place,
                                              int tag) {
  PointToPoint& engine = parent->engine();
  std::vector<int> ranks = ranks_in(*parent->group(), *members);
  Ref<Communicator> created = co_await agree(engine, parent->creation_context(tag), std::move(ranks),
                                             std::move(members), place, parent->error_handler());
  created->session_space = parent->session_space;
  co_return created;
}

runtime::Task<Ref<Communicator>> create_from_group(PointToPoint& engine, MembersPointer members, int place,
                                                   std::string text, Ref<ErrorHandler> handler) {
  const std::uint64_t id = AgreementContext(text).with(engine, *members).number();
  const CollectiveContext context(engine, id, 0, members, place);
  std::vector<int> ranks = all_ranks(members->size());
  Ref<Communicator> created =
      co_await agree(engine, context, std::move(ranks), std::move(members), place, std::move(handler));
  co_return created;
}

// --- Intercommunicators

namespace {

// The offer of a group's leader to the leader of the other group.
struct Offer {
  // If all processes are of one job, and if they are not.
  std::uint64_t context = 0;
  std::uint64_t outside_context = 0;
  std::uint64_t local_context = 0;
  std::uint64_t size = 0;
};

// `has_outsiders`: of the local group.
Offer new_offer(PointToPoint& engine, bool has_outsiders, std::uint64_t size) {
  return {engine.new_context_base(), PointToPoint::new_outside_context_base(),
          has_outsiders ? PointToPoint::new_outside_context_base() : engine.new_context_base(), size};
}

struct Offers {
  Offer mine;
  Offer theirs;
};

bool has_outsiders(const PointToPoint& engine, const Members& members) {
  return std::ranges::any_of(members, [&](int one) { return engine.shared().is_outside(one); });
}

std::uint64_t agreed_context(const Offers& offers, bool has_outsiders) {
  return has_outsiders ? std::min(offers.mine.outside_context, offers.theirs.outside_context)
                       : std::min(offers.mine.context, offers.theirs.context);
}

// A group that names ranks that do not exist, or none, comes from a damaged message or a wrong call.
void check_remote_group(const PointToPoint& engine, const Members& local, const Members& remote) {
  const int num_known = engine.num_ranks() + engine.shared().outsiders().num_known();
  for (const int rank : remote) {
    if (rank >= 0 && rank < num_known && std::find(local.begin(), local.end(), rank) == local.end()) continue;
    throw base::Error(base::StatusCode::kInvalidArgument,
                      base::format("the two groups of an intercommunicator must have different processes, "
                                   "and both have the process {}",
                                   rank));
  }
}

}  // namespace

runtime::Task<Ref<Communicator>> create_inter(Ref<Communicator> local, int local_leader,
                                              LeaderBridge bridge) {
  PointToPoint& engine = local->engine();
  const CollectiveContext context = local->next_collective_contexts().local;
  const bool is_leader = local->rank() == local_leader;
  Offers offers;
  offers.mine = new_offer(engine, local->has_outsiders(), local->group()->size());
  if (is_leader) {
    const CollectiveContext leaders = bridge.communicator->creation_context(bridge.tag);
    co_await swap_bytes(leaders, bridge.remote_leader, bytes_of_value(offers.mine),
                        bytes_of_value(offers.theirs));
  }
  co_await broadcast_bytes(context, local_leader, bytes_of_value(offers));
  if (offers.theirs.size == 0 || offers.theirs.size > kMostProcesses) {
    base::refuse_claim(base::format("a remote group of {} processes was announced", offers.theirs.size));
  }
  ProcessNames names(offers.theirs.size);
  const std::span<std::byte> remote_bytes = std::as_writable_bytes(std::span(names));
  if (is_leader) {
    const CollectiveContext leaders = bridge.communicator->creation_context(bridge.tag);
    const ProcessNames own = engine.shared().outsiders().names_of(*local->group());
    co_await swap_bytes(leaders, bridge.remote_leader, std::as_bytes(std::span(own)), remote_bytes);
  }
  co_await broadcast_bytes(context, local_leader, remote_bytes);
  auto remote = std::make_shared<Members>();
  for (const ProcessName& name : names) remote->push_back(engine.shared().number_of(name));
  check_remote_group(engine, *local->group(), *remote);
  const std::uint64_t agreed =
      agreed_context(offers, local->has_outsiders() || has_outsiders(engine, *remote));
  co_return made_from(*local, agreed, {local->group(), local->rank(), std::move(remote)},
                      offers.mine.local_context);
}

runtime::Task<Ref<Communicator>> create_inter_from_groups(PointToPoint& engine, TwoGroups groups,
                                                          std::string text, Ref<ErrorHandler> handler) {
  check_remote_group(engine, *groups.local, *groups.remote);
  const bool local_first = engine.shared().outsiders().names_of(*groups.local) <
                           engine.shared().outsiders().names_of(*groups.remote);
  const Members& first = local_first ? *groups.local : *groups.remote;
  const Members& second = local_first ? *groups.remote : *groups.local;
  const std::uint64_t both = AgreementContext(text).with(engine, first).with(engine, second).number();
  Offers offers;
  offers.mine = new_offer(engine, has_outsiders(engine, *groups.local), 0);
  if (groups.place == groups.local_leader) {
    const CollectiveContext leaders(engine, both, 0, groups.remote, groups.place);
    co_await swap_bytes(leaders, groups.remote_leader, bytes_of_value(offers.mine),
                        bytes_of_value(offers.theirs));
  }
  const CollectiveContext context(
      engine, AgreementContext(text).with(engine, *groups.local).with(engine, *groups.remote).number(), 1,
      groups.local, groups.place);
  co_await broadcast_bytes(context, groups.local_leader, bytes_of_value(offers));
  const bool outside = has_outsiders(engine, *groups.local) || has_outsiders(engine, *groups.remote);
  co_return made(engine, agreed_context(offers, outside), {groups.local, groups.place, groups.remote},
                 offers.mine.local_context, std::move(handler));
}

}  // namespace weft::mpi
