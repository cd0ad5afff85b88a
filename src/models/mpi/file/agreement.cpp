#include "models/mpi/file/agreement.h"

#include <cstring>
#include <utility>
#include <vector>

#include "weft/mpi/mpi.h"

#include "base/format.h"

namespace weft::mpi {

namespace {

struct FileAgreement {
  std::int32_t error = MPI_SUCCESS;
  std::int32_t unused = 0;
  std::int64_t value = 0;
};

}  // namespace

runtime::Task<Error> agree(CollectiveContext context, Error mine, SameArgument argument) {
  FileAgreement told;
  told.error = mine.error_class;
  told.value = argument.value;
  const std::vector<std::byte> all = co_await allgather_bytes(context, bytes_of_value(told));
  if (!mine.ok()) co_return mine;
  Error different;
  for (int rank = 0; rank < context.size(); ++rank) {
    FileAgreement other;
    std::memcpy(&other, all.data() + static_cast<std::size_t>(rank) * sizeof other, sizeof other);
    if (other.error != MPI_SUCCESS)
      co_return Error(other.error, base::format("rank {} of the file has failed", rank));
    if (other.value != told.value && different.ok())
      different = {MPI_ERR_NOT_SAME, base::format("the {} of rank {} is {}, and that of this rank is {}",
                                                  argument.name, rank, other.value, told.value)};
  }
  co_return different;
}

}  // namespace weft::mpi
