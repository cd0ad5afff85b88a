#include "models/mpi/window/window_creation.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "weft/base/error.h"

#include "models/mpi/communicators/communicator_creation.h"

namespace weft::mpi {

namespace {

// What each process tells the others.
struct MemoryDescription {
  std::int32_t error = MPI_SUCCESS;
  std::int32_t is_host = 1;
  std::uint64_t size_bytes = 0;
  std::int64_t displacement_unit = 1;
  std::uint64_t base = 0;  // of memory of the program, for ranks of the same process
  rma::GlobalAddress control;
  rma::GlobalAddress memory;  // null for memory of the program
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
    if (is_one_segment_) co_await find_offsets();
    allocate(mine);
    all_ = co_await tell_all(communicator_, mine);
    for (const MemoryDescription& one : all_)
      if (one.error != MPI_SUCCESS) throw TransferFailed(one.error, "a process of the window has no memory left");
    co_await learn();
    Window::Parts parts;
    for (int rank = 0; rank < communicator_.size(); ++rank) parts.targets.push_back(target(rank));
    if (memory_.flavor == MPI_WIN_FLAVOR_SHARED) co_await check_shared(parts.targets);
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
    const std::vector<std::uint64_t> sizes = co_await tell_all(communicator_, memory_.size_bytes);
    offsets_.push_back(0);
    for (const std::uint64_t size : sizes) offsets_.push_back(offsets_.back() + size);
  }

  // An error is told to the others.
  void allocate(MemoryDescription& mine) {
    try {
      control_ = global_.make_segment(sizeof(WindowControl), {});
      mine.control = control_.address();
      std::uint64_t size_bytes = 0;
      if (is_one_segment_) {
        size_bytes = communicator_.rank() == 0 ? offsets_.back() : 0;
      } else if (memory_.flavor != MPI_WIN_FLAVOR_CREATE) {
        size_bytes = memory_.size_bytes;
      } else if (memory_.size_bytes > 0) {
        mine.is_host = global_.runtime().memory().place_of(memory_.base).is_host() ? 1 : 0;
      }
      if (size_bytes == 0) return;
      const memory::Place place = memory_.flavor == MPI_WIN_FLAVOR_SHARED ? memory::Place() : memory_.place;
      segment_ = global_.make_segment(size_bytes, place);
      mine.memory = segment_.address();
      mine.is_host = place.is_host() ? 1 : 0;
    } catch (const std::bad_alloc&) {
      mine.error = MPI_ERR_NO_MEM;
    } catch (const base::Error&) {
      mine.error = MPI_ERR_NO_MEM;
    }
  }

  // The segment that has the memory of that rank.
  const rma::GlobalAddress& memory_of(std::size_t rank) const { return all_[is_one_segment_ ? 0 : rank].memory; }

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
    // The CPU does not reach memory of devices.
    if (one.is_host == 0) return target;
    if (const rma::GlobalAddress& segment = memory_of(place); !segment.is_null()) {
      const std::uint64_t offset = is_one_segment_ ? offsets_[place] : 0;
      const auto held = global_.hold(segment.moved_by(static_cast<std::ptrdiff_t>(offset)), one.size_bytes);
      target.memory = static_cast<std::byte*>(held.memory.data);
      target.memory_keeper = held.keeper;
    } else if (memory_.flavor == MPI_WIN_FLAVOR_CREATE && is_here(rank)) {
      target.memory = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(one.base));
    }
    target.is_direct = target.memory != nullptr && target.control != nullptr;
    return target;
  }

  bool is_here(int rank) const {
    return communicator_.engine().shared().destination(communicator_.world_rank_of_peer(rank)).here != nullptr;
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
  const bool is_one_segment_;
  std::vector<std::uint64_t> offsets_;  // of the ranks in the one segment; then its size
  rma::Segment control_;
  rma::Segment segment_;
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
