#include "models/mpi/window/window.h"

#include <algorithm>

#include "weft/mpi/mpi.h"

#include "memory/memory.h"
#include "models/mpi/collective/team_collectives.h"
#include "models/mpi/collective/transfers.h"
#include "models/mpi/process.h"
#include "models/mpi/waits/polled_wait.h"
#include "models/mpi/window/target_runs.h"

namespace weft::mpi {

Window::Window(Parts parts, Ref<ErrorHandler> handler)
    : ErrorScope(ObjectKind::kWindow, std::move(handler)),
      memory_(parts.memory),
      displacement_unit_attribute_(static_cast<int>(parts.memory.displacement_unit)),
      size_attribute_(static_cast<MPI_Aint>(parts.memory.size_bytes)),
      communicator_(std::move(parts.communicator)),
      control_(std::move(parts.control)),
      segment_(std::move(parts.segment)),
      targets_(std::move(parts.targets)),
      rank_(VirtualRank::current()) {
  communicator_->set_name("a window");
  communicator_->give_to_window();
}

void Window::open() { messenger().spawn(listen(Ref<Window>(*this)), "accesses of a window"); }

rma::GlobalMemory& Window::global_memory() const {
  return messenger().runtime().offered<rma::GlobalMemory>();
}

void* Window::attribute(int key) {
  switch (key) {
    case MPI_WIN_BASE:
      return memory_.base;
    case MPI_WIN_SIZE:
      return &size_attribute_;
    case MPI_WIN_DISP_UNIT:
      return &displacement_unit_attribute_;
    case MPI_WIN_CREATE_FLAVOR:
      return &memory_.flavor;
    case MPI_WIN_MODEL:
      return &model_attribute_;
    default:
      return nullptr;
  }
}

// --- Memory of a dynamic window

Error Window::attach(void* base, std::uint64_t size_bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(base);
  if (attached_.meets(first, size_bytes))
    return {MPI_ERR_RMA_ATTACH, "a part of the memory is attached to the window; detach it before"};
  attached_.attach(first, size_bytes, size_bytes > 0 ? messenger().memory().place_of(base) : memory::Place());
  return {};
}

Error Window::detach(const void* base) {
  if (attached_.detach(reinterpret_cast<std::uintptr_t>(base))) return {};
  return {MPI_ERR_RMA_ATTACH, "no memory that begins at the address is attached to the window"};
}

// No byte of a target is written or accumulated twice, so more bytes would only make this process allocate memory for them.
int Window::check_size(const AccessHeader& header) const {
  std::uint64_t most_bytes = memory_.size_bytes + attached_.size_bytes();
  if (header.kind == AccessKind::kGet) most_bytes = std::max(most_bytes, kMostRepeatedBytes);
  return header.size_bytes > most_bytes ? MPI_ERR_RMA_RANGE : MPI_SUCCESS;
}

int Window::check_place(std::span<const WindowRun> runs) const {
  if (is_dynamic()) return attached_.check(runs);
  const auto is_in_window = [&](const WindowRun& run) { return is_inside(run, 0, memory_.size_bytes); };
  return std::ranges::all_of(runs, is_in_window) ? MPI_SUCCESS : MPI_ERR_RMA_RANGE;
}

DataView Window::local_view(const std::vector<WindowRun>& runs) const {
  auto* const base = static_cast<std::byte*>(is_dynamic() ? nullptr : memory_.base);
  DataView view = runs_view(base, runs);
  view.place =
      is_dynamic() ? attached_.place_of(runs) : messenger().memory().place_of(base + runs.front().offset);
  return view;
}

runtime::Task<> Window::copy_locally(DataView from, DataView to) const {
  const int self = communicator_->rank();
  const auto landing = receive(self, kLocalCopyTag, to);
  const auto leaving = send(self, kLocalCopyTag, from);
  const Outcome landed = co_await completed(*landing);
  const Outcome left = co_await completed(*leaving);
  if (landed.error != MPI_SUCCESS) throw TransferFailed(landed.error);
  if (left.error != MPI_SUCCESS) throw TransferFailed(left.error);
}

// --- The end

namespace {
runtime::Task<> wait_for(runtime::Future<> future) { co_await future; }
}  // namespace

Error Window::check_closed() const {
  if (!has_lock() && !has_locked_all_ && !started_ && !exposed_) return {};
  return {MPI_ERR_RMA_SYNC, "an epoch of the window is open; end it before you free the window"};
}

void Window::close() {
  Process& process = this_process();
  process.wait_until([this] { return num_outstanding_ == 0; });
  process.run(barrier_in_teams(communicator_->next_collective_contexts().local));
  // Afterwards the handle of the program is the last reference.
  listening_->cancel();
  process.wait_until([this] { return !listening_; });
  targets_.clear();
  if (memory_.flavor != MPI_WIN_FLAVOR_CREATE) return;
  // The memory is the program's, which frees it afterwards. The others answer while they wait for their own.
  if (segment_) process.run(wait_for(std::move(segment_).release()));
  process.run(barrier_in_teams(communicator_->next_collective_contexts().local));
}

}  // namespace weft::mpi
