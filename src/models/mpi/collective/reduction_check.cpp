#include "models/mpi/collective/reduction_check.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "weft/mpi/mpi.h"

#include "base/format.h"

namespace weft::mpi {

namespace {

constexpr std::array<const char*, 5> kReductionNames = {"MPI_Reduce", "MPI_Allreduce", "MPI_Reduce_scatter",
                                                        "MPI_Scan", "MPI_Exscan"};

// The text for a reduction call of another process. `call` is unchecked: it may have any values.
std::string describe_call(const ReductionCall& call) {
  const auto kind = static_cast<std::size_t>(call.kind);
  const std::string function = kind < kReductionNames.size() ? kReductionNames[kind] : "another function";
  const std::string root =
      call.kind == ReductionKind::kReduce ? base::format(" to rank {}", call.root) : std::string();
  const char* const name = predefined_operation_name(call.operation);
  const std::string own = call.operation == 0 ? "an operator of the program that does not commute"
                                              : "an operator of the program that commutes";
  return base::format("{}{} with {}", function, root, name == nullptr ? own : std::string(name));
}

}  // namespace

ReductionCall::ReductionCall(ReductionKind kind_in, const ReductionOperator& operation_in, int root_in)
    : kind(kind_in),
      root(root_in),
      operation(operation_in.is_predefined()
                    ? static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(operation_in.handle()))
                    : static_cast<std::uint32_t>(operation_in.is_commutative() ? 1 : 0)) {}

runtime::Task<> reduce_checked(CollectiveContext context, ReductionCall mine, runtime::Task<> work) {
  const std::vector<std::byte> bytes = co_await allgather_bytes(context, bytes_of_value(mine));
  std::vector<ReductionCall> calls(bytes.size() / sizeof(ReductionCall));
  std::memcpy(static_cast<void*>(calls.data()), bytes.data(), calls.size() * sizeof(ReductionCall));
  for (std::size_t rank = 1; rank < calls.size(); ++rank) {
    if (calls[rank] == calls[0]) continue;
    throw TransferFailed(MPI_ERR_NOT_SAME,
                         base::format("rank {} calls {}, and rank 0 {}; all processes must pass the same",
                                      rank, describe_call(calls[rank]), describe_call(calls[0])));
  }
  co_await std::move(work);
}

}  // namespace weft::mpi
