// Engine: collectives of one PE, for every model. It makes groups and gives their messages to the calls that await them.
//
// Threads: the PE's. All that a peer sends is checked; a message that cannot be right ends the job with a sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "weft/runtime/direct_message.h"
#include "weft/runtime/model.h"
#include "weft/runtime/runtime.h"

#include "collective/group.h"
#include "collective/inbox.h"

namespace weft::collective {

class Run;

class Engine final : public runtime::Model {
 public:
  static constexpr runtime::ModelNeeds kNeeds{.name = "collectives", .num_handlers = 1};

  Engine(runtime::Runtime& runtime, const runtime::ModelRange& range);

  // The group with that number, in which this is the member at `place`; `pes`: of the members, by place. All who ask while it lives get
  // the same one. REQUIRES: a number tells the members and their PEs; pes[place] is this PE.
  std::shared_ptr<Group> group(std::uint64_t number, const std::vector<int>& pes, int place);
  // For groups with members outside of the job. `outside` outlives their calls.
  void set_outside(OutsideMembers* outside) { shared_.outside = outside; }
  // What OutsideMembers::send_step() has sent. `message`: the header and the blocks. Throws Error if it cannot be right.
  void arrive_from_outside(int number, std::span<const std::byte> message);
  // Members that have a group, or for whom messages are kept.
  std::size_t num_inboxes() const { return shared_.inboxes.size(); }
  Boards& boards() { return shared_.boards; }
  // Calls visit(group, run) for each call under way that awaits a message.
  void for_each_waiting(const std::function<void(const Group&, const Run&)>& visit) const;
  // Those of teams.
  void list_waits(runtime::WaitList& waits) const override;

 private:
  bool arrive(int source_pe, std::span<const std::byte> header, std::span<const std::byte> blocks);
  bool take(int source_pe, const StepHeader& header, std::span<const std::byte> blocks);

  Group::Shared shared_;
};

}  // namespace weft::collective
