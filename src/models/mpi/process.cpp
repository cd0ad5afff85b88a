#include "models/mpi/process.h"

#include <numeric>

namespace weft::mpi {

namespace {

Ref<Communicator> predefined(PointToPoint& engine, std::uint64_t context, MembersPointer members, int rank,
                             const char* name) {
  auto made = Ref<Communicator>::adopt(new Communicator(engine, context, {std::move(members), rank, nullptr},
                                                        0, this_rank().errors_are_fatal));
  made->set_name(name);
  return made;
}

}  // namespace

Process::Process(runtime::Runtime& runtime, Fail fail)
    : runtime_(runtime), engine_(runtime.model<Mpi>().point_to_point()), fail_(fail) {
  auto all = std::make_shared<Members>(static_cast<std::size_t>(runtime.num_pes()));
  std::iota(all->begin(), all->end(), 0);
  world_ = predefined(engine_, kWorldContext, std::move(all), runtime.pe(), "MPI_COMM_WORLD");
  self_ = predefined(engine_, kSelfContext, std::make_shared<Members>(1, runtime.pe()), 0, "MPI_COMM_SELF");
}

void Process::progress() {
  runtime_.step();
  if (runtime_.stopped()) [[unlikely]]
    fail_();
}

}  // namespace weft::mpi
