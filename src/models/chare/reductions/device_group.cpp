#include <exception>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/chare/device_work.h"
#include "weft/runtime/reduction.h"
#include "weft/runtime/task.h"

#include "base/format.h"
#include "queued/collective/make_group.h"

namespace weft::chare {

using queued::DeviceGroup;

namespace {

// The values of all elements, by index.
template <class Value>
runtime::Future<std::vector<Value>> gathered(ChareBase& self, const Value& value) {
  runtime::Future<std::vector<Value>> result(self.runtime());
  self.collection().chares().contribute_to_all(self, runtime::Reducer::kGather, nullptr,
                                               base::pack_small(value, &self.runtime()), result.state());
  return result;
}

// The element stays where it is meanwhile.
runtime::Task<> run_device_group(ChareBase& self, memory::Place device, queued::DeviceGroupOptions options,
                                 runtime::Future<DeviceGroup> result) {
  std::exception_ptr error;
  DeviceGroup group;
  try {
    queued::GroupMember member{{}, static_cast<int>(self.linear_index()), device};
    member.pes = co_await gathered(self, self.pe());
    const queued::GatherRecords gather = [&self](const queued::MemberRecord& mine) {
      return gathered(self, mine);
    };
    group = co_await queued::make_device_group(self.runtime(), std::move(member), options, gather);
  } catch (...) {
    error = std::current_exception();
  }
  error ? result.set_error(error) : result.set(group);
  self.coroutine_ended();
}

}  // namespace

runtime::Future<DeviceGroup> device_group(ChareBase& self, memory::Place device,
                                          const queued::DeviceGroupOptions& options) {
  if (self.collection().is_sparse()) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("device_group: {} is an element of a sparse array, whose elements come and go; "
                     "take a group or an array",
                     self.where()));
  }
  runtime::Future<DeviceGroup> result(self.runtime());
  self.coroutine_started();
  self.runtime().spawn(run_device_group(self, device, options, result), "making a group of device arrays");
  return result;
}

}  // namespace weft::chare
