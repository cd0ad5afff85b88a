#include "models/mpi/stream/stream_group.h"

#include <cstddef>
#include <cstring>
#include <exception>
#include <span>
#include <type_traits>
#include <utility>

#include "models/mpi/model.h"
#include "queued/collective/make_group.h"

namespace weft::mpi {

namespace {

using Records = std::vector<queued::MemberRecord>;
static_assert(std::is_trivially_copyable_v<queued::MemberRecord>);

runtime::Task<> gather_records(CollectiveContext context, queued::MemberRecord mine,
                               runtime::Future<Records> gathered) {
  std::exception_ptr error;
  Records records(static_cast<std::size_t>(context.size()));
  try {
    const std::vector<std::byte> bytes =
        co_await allgather_bytes(context, std::as_bytes(std::span(&mine, 1)));
    std::memcpy(records.data(), bytes.data(), records.size() * sizeof mine);
  } catch (...) {
    error = std::current_exception();
  }
  error ? gathered.set_error(error) : gathered.set(records);
}

}  // namespace

runtime::Task<queued::DeviceGroup> make_stream_group(Ref<Communicator> communicator,
                                                     Ref<ProgramStream> stream, std::vector<int> pes) {
  runtime::Runtime& runtime = stream->runtime();
  const queued::GatherRecords gather = [communicator, &runtime](const queued::MemberRecord& mine) {
    runtime::Future<Records> gathered(runtime);
    runtime.spawn(gather_records(communicator->next_collective_contexts().local, mine, gathered),
                  "making a communicator with streams");
    return gathered;
  };
  queued::GroupMember member{std::move(pes), communicator->rank(), stream->device(), stream->watch()};
  const queued::DeviceGroup group =
      co_await queued::make_device_group(runtime, std::move(member), {}, gather);
  runtime.model<Mpi>().watch_group(group.state());
  co_return group;
}

}  // namespace weft::mpi
