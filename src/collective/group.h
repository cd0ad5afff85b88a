// Group: the members of collectives as one of them sees them, and the messages between them.
//
// Members of one group may share a PE. Threads: the PE's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "weft/runtime/messenger.h"

#include "collective/board.h"
#include "collective/inbox.h"
#include "collective/plan.h"

namespace weft::collective {

// The model that a group belongs to is the highest byte of its number, so that models choose the rest as they like.
enum class Owner : std::uint8_t { kTest = 1, kMpi, kTeam, kChares };
constexpr std::uint64_t number_in_owner(std::uint64_t number) { return number & 0x00ffffffffffffffU; }
constexpr std::uint64_t group_number(Owner owner, std::uint64_t number) {
  return static_cast<std::uint64_t>(owner) << 56 | number_in_owner(number);
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

// The way to members that are no PEs of this job: their numbers are not below the number of PEs.
class OutsideMembers {
 public:
  // Sends what Engine::arrive_from_outside() gets there.
  virtual void send_step(int number, std::span<const std::byte> header,
                         std::span<const std::byte> blocks) = 0;

 protected:
  ~OutsideMembers() = default;
};

class Group : public std::enable_shared_from_this<Group> {
 public:
  // What the groups of a PE share.
  struct Shared {
    runtime::Messenger& messenger;
    runtime::HandlerId handler;
    bool is_on_one_host;  // the job
    // A number for the host of a PE.
    int host_of(int pe) const {
      const runtime::HostGroups* const hosts = messenger.host_groups();
      return hosts != nullptr ? hosts->host_of(pe) : is_on_one_host ? 0 : pe;
    }
    InboxTable inboxes;
    Boards boards;
    std::vector<runtime::MessagePtr> sent_again;  // shared until they have left
    OutsideMembers* outside = nullptr;            // null: no group has such members
    bool is_outside(int pe) const { return pe >= messenger.num_pes(); }
  };
  // `pes`: of the members, by place. Engine::group() makes groups.
  Group(Shared& shared, std::uint64_t number, std::vector<int> pes, int place);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  std::uint64_t number() const { return number_; }
  Owner owner() const { return static_cast<Owner>(number_ >> 56); }
  Member member() const { return {place_, static_cast<int>(pes_.size())}; }
  int pe_of(int place) const { return pes_[static_cast<std::size_t>(place)]; }
  runtime::Scheduler& scheduler() const { return shared_.messenger; }
  Boards& boards() const { return shared_.boards; }
  Inbox& inbox() const { return inbox_; }

  // See form_of(), is_small() and place_of_block().
  Form form(Kind kind, std::size_t size_bytes) const {
    return form_of(kind, member().size, size_bytes, spread_);
  }
  // The form of kAllgather for blocks of any size that all members have in host memory. REQUIRES: blocks of kDirect go in pieces of up to
  // kMostDirectBytes.
  Form gather_form(std::size_t most_bytes) const {
    return form(Kind::kAllgather, std::min(most_bytes, kMostMovedBytes));
  }
  // form() of kBarrier.
  Form barrier_form() const { return spread_ == Spread::kSharedHosts ? Form::kLeaders : Form::kFewMessages; }
  bool serves(Kind kind, std::size_t size_bytes) const {
    return is_small(kind, member().size, size_bytes, spread_);
  }
  int place_of_block(Form form, int block) const {
    return collective::place_of_block(form, member(), hosts_.get(), block);
  }
  // Whether block i of an all-gather is that of place i, at all members.
  bool gathers_by_place(Form form) const {
    return form == Form::kDirect || (form == Form::kLeaders && hosts_->are_consecutive());
  }
  // The plan of this member. The last ones are kept, and those in use.
  Plan& plan(const PlanChoice& choice);

  // Larger blocks are awaited: UCX may need this PE to go on sending them.
  static constexpr std::size_t kMostUnawaitedBytes = 4096;
  // What a call has sent.
  struct Sent {
    std::vector<runtime::MessagePtr> awaited;  // shared until they have left
    // The blocks that were posted last, while they are unchanged.
    const std::byte* data = nullptr;
    BoardReference posted;
  };
  // Sends the blocks of a step to its peer. `flags`: kFailed without blocks, or marks.
  void send(std::uint64_t call, const Step& step, std::span<const std::byte> blocks, std::uint32_t flags,
            Sent& sent);
  // Ends the job if the payload of a message with kPosted or kRefused can be no reference.
  static void check_reference(int pe, std::span<const std::byte> payload);
  // Whether no block that a peer could not read is still leaving.
  bool has_sent_again() const { return shared_.sent_again.empty() || forget_sent(); }
  // What the reference in a message names, which must be released then. Nothing if the sender must send it again, as it has been told.
  // REQUIRES: kPosted.
  std::optional<Boards::Block> open(const StepHeader& header, std::span<const std::byte> payload) const;
  // The owner makes no more calls of that number, while other members may still send for calls that are not over here. What has come and
  // comes for the member is dropped, for ever. REQUIRES: no call is under way.
  void drop_all();
  // Ends all calls: those under way and later ones fail at once, and what has come and comes for the member is dropped. Other members
  // must end theirs too: they hear nothing of it.
  void end_all();
  // Drops what a message has brought.
  static void drop(Shared& shared, int pe, const StepHeader& header, std::span<const std::byte> payload);
  // The peer has not been able to read the blocks.
  // REQUIRES: check_reference().
  static void send_again(Shared& shared, int pe, StepHeader header, std::span<const std::byte> payload);

  // Whether a peer may claim to be that member.
  bool is_member(int place, int pe) const {
    return place >= 0 && static_cast<std::size_t>(place) < pes_.size() &&
           pes_[static_cast<std::size_t>(place)] == pe;
  }

 private:
  struct KeptPlan {
    PlanChoice choice;
    std::unique_ptr<Plan> plan;
  };
  static constexpr std::size_t kMostPlans = 16;

  static std::optional<Boards::Block> open_from(Shared& shared, int pe, const StepHeader& header,
                                                std::span<const std::byte> payload);
  void send_bytes(int pe, const StepHeader& header, std::span<const std::byte> bytes, Sent& sent);
  // A large message is added to `awaited`.
  bool forget_sent() const;
  static void send_message(Shared& shared, int pe, const StepHeader& header,
                           std::span<const std::byte> payload, std::vector<runtime::MessagePtr>& awaited);
  // Whether the blocks are on the board, as `sent` tells then.
  bool post(int pe, std::span<const std::byte> blocks, Sent& sent);

  Shared& shared_;
  const std::uint64_t number_;
  const std::vector<int> pes_;
  const int place_;
  std::shared_ptr<const runtime::HostGroups> hosts_;  // of the members; kSharedHosts
  Spread spread_;
  Inbox& inbox_;
  std::vector<KeptPlan> plans_;
  bool has_ended_ = false;
  std::size_t next_plan_ = 0;  // which a new one replaces if there are enough
};

}  // namespace weft::collective
