// What the ranks of a PE wait for, for reports.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/format.h"
#include "collective/engine.h"
#include "collective/run.h"
#include "models/mpi/communicators/communicator.h"
#include "models/mpi/model.h"
#include "models/mpi/p2p/matching/header.h"
#include "models/mpi/virtual_ranks/virtual_rank.h"
#include "models/mpi/waits/calling_frame.h"
#include "models/mpi/waits/polled_wait.h"

namespace weft::mpi {

namespace {

// Of one rank.
constexpr int kMostNamed = 8;

std::string name_of(const Communicator* communicator) {
  if (communicator == nullptr) return "a communicator";
  return communicator->name().empty() ? "a communicator without a name" : communicator->name();
}

// Whether the sender waits until a receive has matched the message, as MPI_Ssend does.
bool wants_answer(runtime::Message& message) {
  MessageHeader header;  // checked when it came
  std::memcpy(&header, message.payload(), sizeof header);
  return (header.flags & kWantsAnswer) != 0;
}

class RankWaits {
 public:
  RankWaits(const PointToPoint& engine, runtime::WaitList& waits) : engine_(engine), waits_(waits) {}

  void list() {
    engine_.for_each_posted([this](const MatchKey& key) { add_receive(key, "receive"); });
    for (const MatchKey* const key : engine_.probed()) add_receive(*key, "probe for a message");
    if (num_receives_ > kMostNamed) add(base::format("{} more receives", num_receives_ - kMostNamed));
    engine_.for_each_unexpected([this](const ArrivedMessage& message) { add_sender(message); });
    if (engine_.polled_wait() == nullptr) return;
    runtime::Wait wait = (*engine_.polled_wait())();
    wait.who = party_of(engine_.rank());
    waits_.add(std::move(wait));
  }

 private:
  const Communicator* communicator(std::uint64_t context) const {
    for (const Communicator* const one : *engine_.shared().communicators()) {
      if (&one->engine() == &engine_ && one->context() == base_of_context(context)) return one;
    }
    return nullptr;
  }
  static std::string tag_text(const MatchKey& key) {
    if (use_of_context(key.context) == ContextUse::kMessages)
      return key.tag == kAny ? "any tag" : base::format("tag {}", key.tag);
    return "a part of a collective or of another call of several ranks";
  }

  void add_receive(const MatchKey& key, const char* call) {
    const Communicator* const within = communicator(key.context);
    // By which a window serves accesses: no call waits for it.
    if (key.source == kAny && within != nullptr && within->is_of_window()) return;
    if (++num_receives_ > kMostNamed) return;
    runtime::Wait wait{.who = party_of(engine_.rank())};
    std::string source = "any rank";
    if (key.source != kAny) {
      const bool is_known = within != nullptr && within->has_peer(key.source);
      source = base::format("rank {}", key.source);
      if (is_known) wait.on.push_back(party_of(within->world_rank_of_peer(key.source)));
    } else if (within != nullptr) {
      for (int peer = 0; peer < within->num_peers() && peer < kMostNamed; ++peer) {
        const int rank = within->world_rank_of_peer(peer);
        if (rank != engine_.rank()) wait.on.push_back(party_of(rank));
      }
    }
    wait.what =
        base::format("{} from {}, {}, on {}{}", call, source, tag_text(key), name_of(within), unmatched());
    waits_.add(std::move(wait));
  }

  // Messages that no receive takes say what is wrong with the receive.
  std::string unmatched() const {
    std::string text;
    int count = 0;
    engine_.for_each_unexpected([&](const ArrivedMessage& message) {
      if (++count > 3) return;
      text +=
          base::format("{} {} from rank {} on {}", count == 1 ? "; what has come:" : ",",
                       tag_text(message.key), message.key.source, name_of(communicator(message.key.context)));
    });
    return text;
  }

  // The sender of a message whose bytes are still there waits, if it waits for the send at all.
  void add_sender(const ArrivedMessage& arrived) {
    const Communicator* const within = communicator(arrived.key.context);
    const bool is_sent = arrived.local_send == nullptr && !arrived.message->has_attachments() &&
                         arrived.size_bytes <= PointToPoint::kEagerBytes && !wants_answer(*arrived.message);
    if (is_sent && use_of_context(arrived.key.context) == ContextUse::kMessages &&
        num_untaken_++ < kMostNamed)
      waits_.add_remark(base::format("rank {} takes no message from rank {}, {}, on {}", engine_.rank(),
                                     arrived.key.source, tag_text(arrived.key), name_of(within)));
    if (is_sent || within == nullptr || !within->has_peer(arrived.key.source)) return;
    const int sender = within->world_rank_of_peer(arrived.key.source);
    waits_.add(
        {.who = party_of(sender),
         .what = base::format("send of {} bytes to rank {}, {}, on {}, which no receive takes",
                              arrived.size_bytes, within->rank(), tag_text(arrived.key), name_of(within)),
         .on = {party_of(engine_.rank())}});
  }

  void add(const std::string& what) { waits_.add({.who = party_of(engine_.rank()), .what = what}); }

  const PointToPoint& engine_;
  runtime::WaitList& waits_;
  int num_receives_ = 0;
  int num_untaken_ = 0;  // messages whose sender does not wait
};

void add_collective(const SharedState& shared, const collective::Group& group, const collective::Run& run,
                    runtime::WaitList& waits) {
  const std::uint64_t context = collective::number_in_owner(group.number());
  for (const Communicator* const one : *shared.communicators()) {
    if (collective::number_in_owner(one->context()) != base_of_context(context) || one->is_inter() ||
        one->rank() != group.member().place) {
      continue;
    }
    const int awaited = one->world_rank_of_peer(*run.awaited_place());
    waits.add({.who = party_of(one->engine().rank()),
               .what = base::format("{} on {}, in which rank {} has not taken its part",
                                    collective::name_of(run.kind()), name_of(one), *run.awaited_place()),
               .on = {party_of(awaited)}});
    return;
  }
}

}  // namespace

// The call of MPI in which a rank waits; empty if it waits in none. A rank that shares its process has a stack of its own.
std::string Mpi::call_of(const PointToPoint& engine) const {
  VirtualRank* const rank = engine.virtual_rank();
  if (rank == nullptr) return engines_.engines().size() == 1 ? calling_frame() : std::string();
  std::string call;
  if (!runtime_.waits_in_call()) rank->visit([&call] { call = calling_frame(); });
  return call;
}

void Mpi::list_waits(runtime::WaitList& waits) const {
  const auto engines = engines_.engines();
  for (const auto& engine : engines) {
    const std::string call = call_of(*engine);
    const runtime::NamedParty who = party_of(engine->rank());
    if (!call.empty())
      waits.add({.who = who, .where = who.name + ": " + call, .guess = "waits in this call"});
    RankWaits(*engine, waits).list();
  }
  runtime_.model<collective::Engine>().for_each_waiting(
      [&](const collective::Group& group, const collective::Run& run) {
        if (group.owner() == collective::Owner::kMpi) add_collective(engines[0]->shared(), group, run, waits);
      });
}

}  // namespace weft::mpi
