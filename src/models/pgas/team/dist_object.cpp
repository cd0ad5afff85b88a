#include "weft/pgas/dist_object.h"

#include "weft/base/error.h"

#include "base/format.h"
#include "models/pgas/team/object_table.h"
#include "models/pgas/team/team_state.h"
#include "models/pgas/team/team_table.h"

namespace weft::pgas {

ObjectName::ObjectName(const Team& team, void* object, std::uint64_t type) : team_(team) {
  where_ = {team.id(), team.state()->objects.add({object, type}), type};
}

ObjectName::~ObjectName() {
  if (team_) team_.state()->objects.remove(where_.number);
}

namespace rpc_detail {

void* find_object(runtime::Runtime& runtime, const ObjectNumber& where) {
  TeamState* const team = world_of(runtime).state()->table.find(where.team);
  if (team == nullptr) {
    throw base::Error(
        base::StatusCode::kNotFound,
        base::format("PE {} got a distributed object of a team of which it is no member, or which it "
                     "has not made yet",
                     runtime.pe()));
  }
  const ObjectTable::Entry* const entry = team->objects.find(where.number);
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
