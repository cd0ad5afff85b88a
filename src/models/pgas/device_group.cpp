// Team::device_group().
#include <exception>
#include <utility>

#include "weft/pgas/team.h"

#include "queued/collective/make_group.h"

namespace weft::pgas {

namespace {

// The group agrees in a team of its own, because the program may use this one meanwhile.
runtime::Task<> run_device_group(Team parent, memory::Place device, DeviceGroupOptions options,
                                 runtime::Future<DeviceGroup> result) {
  std::exception_ptr error;
  DeviceGroup group;
  try {
    const Team team = co_await parent.split(0, parent.rank());
    const queued::GatherRecords gather = [team](const queued::MemberRecord& mine) {
      return team.allgather(mine);
    };
    queued::GroupMember member{team.members(), team.rank(), device};
    group = co_await queued::make_device_group(team.runtime(), std::move(member), options, gather);
  } catch (...) {
    error = std::current_exception();
  }
  error ? result.set_error(error) : result.set(group);
}

}  // namespace

runtime::Future<DeviceGroup> Team::device_group(memory::Place device,
                                                const DeviceGroupOptions& options) const {
  runtime::Future<DeviceGroup> result(runtime());
  runtime().spawn(run_device_group(*this, device, options, result), "making a group of device arrays");
  return result;
}

}  // namespace weft::pgas
