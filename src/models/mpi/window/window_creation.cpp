#include "models/mpi/window/window_creation.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "weft/base/error.h"

#include "machine/peer_memory/peer_memory.h"
#include "models/mpi/collective/team_collectives.h"
#include "models/mpi/communicators/communicator_creation.h"

namespace weft::mpi {

namespace {

// What each process tells the others.
struct MemoryDescription {
  std::int32_t error = MPI_SUCCESS;
  std::int32_t is_host = 1;
  std::uint64_t size_bytes = 0;
  std::int64_t displacement_unit = 1;
  rma::GlobalAddress control;
  rma::GlobalAddress memory;  // null without memory, and in a dynamic window
  // Of memory of the program, for processes of the host.
  std::uint64_t base = 0;
  ProcessProbe probe;
};

template <class T>
runtime::Task<std::vector<T>> tell_all(Communicator& communicator, T mine) {
  const CollectiveContext context = communicator.next_collective_contexts().local;
  const std::vector<std::byte> bytes = co_await allgather_bytes(context, bytes_of_value(mine));
  std::vector<T> all(static_cast<std::size_t>(communicator.size()));
  std::memcpy(static_cast<void*>(all.data()), bytes.data(), bytes.size());
  co_return all;
}

class Creation {
 public:
  Creation(Communicator& communicator, const WindowMemory& memory, bool is_contiguous)
      : communicator_(communicator),
        global_(communicator.engine().messenger().runtime().offered<rma::GlobalMemory>()),
        memory_(memory),
        is_one_segment_(memory.flavor == MPI_WIN_FLAVOR_SHARED && is_contiguous) {}

  runtime::Task<Window::Parts> run() {
    MemoryDescription mine;
    mine.size_bytes = memory_.size_bytes;
    mine.displacement_unit = memory_.displacement_unit;
    mine.base = reinterpret_cast<std::uintptr_t>(memory_.base);
    mine.probe = ProcessProbe::of(probed_word_);
    if (memory_.flavor == MPI_WIN_FLAVOR_SHARED) co_await find_offsets();
    allocate(mine);
    all_ = co_await tell_all(communicator_, mine);
    for (const MemoryDescription& one : all_)
      if (one.error != MPI_SUCCESS)
        throw TransferFailed(one.error, "a process of the window has no memory left");
    co_await learn();
    Window::Parts parts;
    for (int rank = 0; rank < communicator_.size(); ++rank) parts.targets.push_back(target(rank));
    if (memory_.flavor == MPI_WIN_FLAVOR_SHARED) co_await check_shared(parts.targets);
    // All have probed.
    if (memory_.flavor == MPI_WIN_FLAVOR_CREATE)
      co_await barrier_in_teams(communicator_.next_collective_contexts().local);
    const Window::Target& own = parts.targets[static_cast<std::size_t>(communicator_.rank())];
    if (is_one_segment_) {
      memory_.base = own.memory;
    } else if (segment_) {
      memory_.base = segment_.buffer().data;
    }
    parts.memory = memory_;
    parts.control = std::move(control_);
    parts.segment = std::move(segment_);
    co_return parts;
  }

 private:
  runtime::Task<> find_offsets() {
    struct Part {
      std::uint64_t size_bytes;
      std::uint64_t is_contiguous;
    };
    const std::vector<Part> parts = co_await tell_all(
        communicator_, Part{memory_.size_bytes, is_one_segment_ ? std::uint64_t{1} : std::uint64_t{0}});
    // The hint of some ranks is no permission of all.
    is_one_segment_ = std::ranges::any_of(parts, [](const Part& part) { return part.is_contiguous != 0; });
    offsets_.push_back(0);
    for (const Part& part : parts) {
      if (part.size_bytes > std::uint64_t{INT64_MAX} - offsets_.back())
        throw TransferFailed(MPI_ERR_SIZE, "the sum of the sizes of all ranks does not fit 63 bits");
      offsets_.push_back(offsets_.back() + part.size_bytes);
    }
  }

  // An error is told to the others.
  void allocate(MemoryDescription& mine) {
    try {
      control_ = global_.make_segment(sizeof(WindowControl), {});
      mine.control = control_.address();
      std::uint64_t size_bytes = 0;
      if (is_one_segment_) {
        size_bytes = communicator_.rank() == 0 ? offsets_.back() : 0;
      } else {
        size_bytes = memory_.size_bytes;
      }
      if (size_bytes == 0) return;
      if (memory_.flavor == MPI_WIN_FLAVOR_CREATE) {
        segment_ = global_.make_segment_at(memory_.base, size_bytes);
      } else {
        segment_ = global_.make_segment(
            size_bytes, memory_.flavor == MPI_WIN_FLAVOR_SHARED ? memory::Place() : memory_.place);
      }
      mine.memory = segment_.address();
      mine.is_host = segment_.place().is_host() ? 1 : 0;
    } catch (const std::bad_alloc&) {
      mine.error = MPI_ERR_NO_MEM;
    } catch (const base::Error& error) {
      mine.error = error.code() == base::StatusCode::kOutOfRange ? MPI_ERR_SIZE : MPI_ERR_NO_MEM;
    }
  }

  // The segment that has the memory of that rank.
  const rma::GlobalAddress& memory_of(std::size_t rank) const {
    return all_[is_one_segment_ ? 0 : rank].memory;
  }

  // How this process reaches all of them.
  runtime::Task<> learn() {
    VirtualRank* const rank = VirtualRank::current();
    std::vector<rma::Done> learning;
    for (const MemoryDescription& one : all_) {
      learning.push_back(global_.learn(one.control));
      if (!one.memory.is_null()) learning.push_back(global_.learn(one.memory));
    }
    for (const rma::Done& one : learning) co_await one;
    VirtualRank::set_current(rank);
  }

  Window::Target target(int rank) {
    const auto place = static_cast<std::size_t>(rank);
    const MemoryDescription& one = all_[place];
    Window::Target target;
    target.size_bytes = one.size_bytes;
    target.displacement_unit = one.displacement_unit;
    target.access_word = rma::GlobalPtr<std::uint64_t>(one.control);
    const rma::GlobalMemory::HeldMemory control = global_.hold(one.control, sizeof(WindowControl));
    target.control = static_cast<WindowControl*>(control.memory.data);
    target.control_keeper = control.keeper;
    if (memory_of(place).is_null()) return target;
    target.segment =
        memory_of(place).moved_by(is_one_segment_ ? static_cast<std::ptrdiff_t>(offsets_[place]) : 0);
    // The CPU does not reach memory of devices.
    if (one.is_host == 0) return target;
    const rma::GlobalMemory::HeldMemory held = global_.hold(target.segment, one.size_bytes);
    target.memory = static_cast<std::byte*>(held.memory.data);
    target.memory_keeper = held.keeper;
    target.is_direct = target.memory != nullptr && target.control != nullptr;
    // Processes that map the same memory are on one host.
    if (memory_.flavor == MPI_WIN_FLAVOR_CREATE && !target.is_direct && target.control != nullptr &&
        !communicator_.engine().messenger().machine().peer_memory().is_off() && one.probe.succeeds())
      target.process = {one.probe.pid, one.base};
    return target;
  }

  runtime::Task<> check_shared(const std::vector<Window::Target>& targets) {
    const bool is_shared = std::ranges::all_of(
        targets, [](const Window::Target& one) { return one.is_direct || one.size_bytes == 0; });
    const std::vector<int> all = co_await tell_all(communicator_, is_shared ? 1 : 0);
    if (std::ranges::count(all, 1) != communicator_.size()) {
      throw TransferFailed(MPI_ERR_RMA_SHARED,
                           "not all processes can map the memory of all others; give a communicator of "
                           "MPI_Comm_split_type with MPI_COMM_TYPE_SHARED, and leave WEFT_PGAS_MAPPING on");
    }
  }

  Communicator& communicator_;
  rma::GlobalMemory& global_;
  WindowMemory memory_;
  bool is_one_segment_;                 // all processes agree after find_offsets()
  std::vector<std::uint64_t> offsets_;  // of the ranks in the one segment; then its size
  rma::Segment control_;
  rma::Segment segment_;
  // Other processes have other values, also those with the same address.
  std::uint64_t probed_word_ = communicator_.engine().new_context_base();
  std::vector<MemoryDescription> all_;
};

}  // namespace

runtime::Task<Ref<Window>> create_window(Ref<Communicator> parent, WindowMemory memory, bool is_contiguous,
                                         Ref<ErrorHandler> handler) {
  Ref<Communicator> communicator = begin_duplicate(*parent);
  co_await duplicate(parent, communicator);
  Creation creation(*communicator, memory, is_contiguous);
  Window::Parts parts = co_await creation.run();
  parts.communicator = std::move(communicator);
  auto made = Ref<Window>::adopt(new Window(std::move(parts), std::move(handler)));
  made->open();
  co_return made;
}

}  // namespace weft::mpi
