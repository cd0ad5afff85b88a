#include "weft/pgas/dist_object.h"

#include "weft/base/error.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "models/pgas/team/object_table.h"
#include "models/pgas/team/team_state.h"
#include "models/pgas/team/team_table.h"

namespace weft::pgas {

ObjectName::ObjectName(const Team& team, void* object, std::uint64_t type)
    : team_(team), table_(team.state()->objects.self()) {
  where_ = {team.id(), team.state()->objects.add({object, type}), type};
}

ObjectName::~ObjectName() {
  if (*table_ != nullptr) (*table_)->remove(where_.number);
}

namespace rpc_detail {

void expect_member(const Team& team, int pe) {
  if (team.rank_of_pe(pe) >= 0) return;
  throw base::Error(base::StatusCode::kInvalidArgument,
                    base::format("a call on PE {} was given a distributed object of a team of {} PEs, of "
                                 "which that PE is no member; it has no object there",
                                 pe, team.size()));
}

void* find_object(runtime::Runtime& runtime, const ObjectNumber& where) {
  TeamTable& teams = world_of(runtime).state()->table;
  TeamState* const team = teams.find(where.team);
  if (team == nullptr) {
    if (teams.may_exist(where.team)) return nullptr;
    base::refuse_claim(
        base::format("PE {} got a distributed object of the team {} of PE {}, which cannot exist",
                     runtime.pe(), where.team.number, where.team.leader_pe));
  }
  const ObjectTable::ObjectEntry* const entry = team->objects.find(where.number);
  if (entry == nullptr && !team->objects.is_made(where.number)) return nullptr;
  if (entry == nullptr) {
    throw base::Error(
        base::StatusCode::kClosed,
        base::format("the distributed object {} of rank {} has been destroyed; have a barrier before",
                     where.number, team->members.rank()));
  }
  if (entry->type != where.type) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("the distributed object {} of rank {} has another type than that of its caller; "
                     "all ranks of a team make their objects in the same order",
                     where.number, team->members.rank()));
  }
  return entry->object;
}

}  // namespace rpc_detail

}  // namespace weft::pgas
