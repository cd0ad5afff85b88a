#include "models/mpi/stream/stream_group.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <type_traits>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
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

// Each rank's operations wait for those of the others, so they are on streams of their own.
runtime::Task<> expect_own_streams(CollectiveContext context, memory::StreamHandle stream,
                                   const std::vector<int>& pes) {
  const auto mine = reinterpret_cast<std::uintptr_t>(stream);
  const std::vector<std::byte> bytes = co_await allgather_bytes(context, std::as_bytes(std::span(&mine, 1)));
  std::vector<std::uintptr_t> streams(pes.size());
  std::memcpy(streams.data(), bytes.data(), streams.size() * sizeof mine);
  for (std::size_t one = 0; one < pes.size(); ++one) {
    for (std::size_t other = 0; other < one; ++other) {
      if (pes[one] != pes[other] || streams[one] != streams[other]) continue;
      throw base::Error(base::StatusCode::kInvalidArgument,
                        base::format("ranks {} and {} share a stream; give each rank its own", other, one));
    }
  }
}

}  // namespace

runtime::Task<queued::DeviceGroup> make_stream_group(Ref<Communicator> communicator,
                                                     Ref<ProgramStream> stream, std::vector<int> pes) {
  runtime::Runtime& runtime = stream->runtime();
  co_await expect_own_streams(communicator->next_collective_contexts().local, stream->handle(), pes);
  const queued::GatherRecords gather = [communicator, &runtime](const queued::MemberRecord& mine) {
    runtime::Future<Records> gathered(runtime);
    runtime.spawn(gather_records(communicator->next_collective_contexts().local, mine, gathered),
                  "making a communicator with streams");
    return gathered;
  };
  queued::GroupMember member{std::move(pes), communicator->rank(), stream->device(), stream->watch()};
  co_return co_await queued::make_device_group(runtime, std::move(member), {}, gather);
}

}  // namespace weft::mpi
