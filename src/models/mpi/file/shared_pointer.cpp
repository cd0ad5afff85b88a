#include "models/mpi/file/shared_pointer.h"

#include <new>
#include <utility>

#include "weft/base/error.h"
#include "weft/mpi/mpi.h"

#include "models/mpi/virtual_ranks/virtual_rank.h"

namespace weft::mpi {

runtime::Task<SharedFilePointer> SharedFilePointer::make(Ref<Communicator> communicator) {
  struct Place {
    std::int32_t error = MPI_SUCCESS;
    std::int32_t unused = 0;
    rma::GlobalAddress word;
  };
  SharedFilePointer made;
  made.memory_ = &communicator->engine().messenger().runtime().offered<rma::GlobalMemory>();
  Place place;
  if (communicator->rank() == 0) {
    try {
      made.segment_ = made.memory_->make_segment(sizeof(std::int64_t), {});
      place.word = made.segment_.address();
    } catch (const std::bad_alloc&) {
      place.error = MPI_ERR_NO_MEM;
    } catch (const base::Error&) {
      place.error = MPI_ERR_NO_MEM;
    }
  }
  const CollectiveContext context = communicator->next_collective_contexts().local;
  co_await broadcast_bytes(context, 0, bytes_of_value(place));
  if (place.error != MPI_SUCCESS)
    throw TransferFailed(place.error, "the first process of the file has no memory left");
  VirtualRank* const rank = VirtualRank::current();
  co_await made.memory_->learn(place.word);
  made.word_ = rma::GlobalPtr<std::int64_t>(place.word);
  if (communicator->rank() == 0) co_await made.memory_->atomic_store(made.word_, 0);
  VirtualRank::set_current(rank);
  co_return made;
}

runtime::Task<std::int64_t> SharedFilePointer::advance(std::int64_t change) const {
  VirtualRank* const rank = VirtualRank::current();
  const std::int64_t before = co_await memory_->fetch_add(word_, change);
  VirtualRank::set_current(rank);
  co_return before;
}

runtime::Task<> SharedFilePointer::set(std::int64_t value) const {
  VirtualRank* const rank = VirtualRank::current();
  co_await memory_->atomic_store(word_, value);
  VirtualRank::set_current(rank);
}

}  // namespace weft::mpi
