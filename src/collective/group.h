// Group: the members of collectives as one of them sees them, and the messages between them.
//
// Members of one group may share a PE. Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weft/runtime/messenger.h"

#include "collective/inbox.h"
#include "collective/plan.h"

namespace weft::collective {

// The model that a group belongs to is the highest byte of its number, so that models choose the rest as they like.
enum class Owner : std::uint8_t { kTest = 1, kMpi, kTeam };
constexpr std::uint64_t group_number(Owner owner, std::uint64_t number) {
  return static_cast<std::uint64_t>(owner) << 56 | (number & 0x00ffffffffffffffU);
}

// Whether the members of a group wait for one another at the beginning of that call, if its kind does not make them wait. One of 64
// numbers, spread so evenly that every second or tenth number has its share, too (Fibonacci hashing).
constexpr bool waits_first(std::uint64_t number) {
  return static_cast<std::uint32_t>(number + (number >> 32)) * 0x9e3779b9U >> 26 == 0;
}

struct Plan {
  std::vector<Step> steps;
  int num_users = 0;  // runs
};

class Group : public std::enable_shared_from_this<Group> {
 public:
  // `pes`: of the members, by place. Engine::group() makes groups.
  Group(runtime::Messenger& messenger, runtime::HandlerId handler, InboxTable& inboxes, std::uint64_t number,
        std::vector<int> pes, int place);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  std::uint64_t number() const { return number_; }
  Member member() const { return {place_, static_cast<int>(pes_.size())}; }
  runtime::Scheduler& scheduler() const { return messenger_; }
  Inbox& inbox() const { return inbox_; }

  // The plan of this member. The last ones are kept, and those in use.
  Plan& plan(Kind kind, int root, std::size_t block_bytes, bool waits_first);

  // Larger blocks are awaited: UCX may need this PE to go on sending them.
  static constexpr std::size_t kMostUnawaitedBytes = 4096;
  using Sends = std::vector<runtime::MessagePtr>;
  // Sends the blocks of a step to its peer. `has_failed`: this member has failed, and sends no blocks. Adds a message that must be awaited
  // to `sends`: it is shared until it has been sent.
  void send(std::uint64_t call, const Step& step, std::span<const std::byte> blocks, bool has_failed,
            Sends& sends);

  // Whether a peer may claim to be that member.
  bool is_member(int place, int pe) const {
    return place >= 0 && static_cast<std::size_t>(place) < pes_.size() &&
           pes_[static_cast<std::size_t>(place)] == pe;
  }

 private:
  struct KeptPlan {
    Kind kind;
    bool waits_first;
    int root;
    int size_class;
    std::unique_ptr<Plan> plan;
  };
  static constexpr std::size_t kMostPlans = 16;

  runtime::Messenger& messenger_;
  const runtime::HandlerId handler_;
  InboxTable& inboxes_;
  const std::uint64_t number_;
  const std::vector<int> pes_;
  const int place_;
  Inbox& inbox_;
  std::vector<KeptPlan> plans_;
  std::size_t next_plan_ = 0;  // which a new one replaces if there are enough
};

}  // namespace weft::collective
