#include "collectives/device_copies.h"

#include <cstddef>

#include "collectives/calls.h"
#include "memory/memory.h"
#include "models/mpi/collective/transfers.h"
#include "models/mpi/process.h"

namespace weft::mpi {

namespace {

const std::byte* first_byte(const Datatype& type, const void* buffer) {
  return static_cast<const std::byte*>(buffer) + type.true_lower_bound();
}

memory::Place place_of(const void* address) {
  const Process* const process = this_rank().process;
  return process == nullptr ? memory::Place() : process->runtime().memory().place_of(address);
}

}  // namespace

bool is_on_device(const Datatype& type, const void* buffer, MPI_Count count) {
  return count > 0 && type.size_bytes() > 0 && !place_of(first_byte(type, buffer)).is_host();
}

Error copy_now(const DataView& from, const DataView& to) {
  Communicator& self = *this_process().self();
  const CollectiveContext context = self.next_collective_contexts().local;
  return run_collective(Way::waiting(MPI_COMM_SELF), self,
                        [&context, &from, &to] { return copy_data(context, from, to); });
}

HostElements::HostElements(Datatype& type, void* buffer, MPI_Count count)
    : type_(type), buffer_(buffer), count_(count) {
  if (is_on_device(type, buffer, count))
    copy_ = std::make_unique<ScratchElements>(Ref<Datatype>(type), count);
}

DataView HostElements::device_view() const {
  DataView view = typed_view(type_, buffer_, count_);
  view.place = place_of(first_byte(type_, buffer_));
  return view;
}

Error HostElements::read() const {
  return copy_ == nullptr ? Error() : copy_now(device_view(), copy_->view());
}

Error HostElements::write_back() const {
  return copy_ == nullptr ? Error() : copy_now(copy_->view(), device_view());
}

}  // namespace weft::mpi
