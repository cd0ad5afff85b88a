#include "models/mpi/collective/block_collectives.h"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "weft/mpi/mpi.h"

namespace weft::mpi {

namespace {

using collective::Call;
using collective::Kind;

// Not measured yet on machines with more than 16 cores.
constexpr std::size_t kMostBroadcastBytes = 8192;
constexpr std::size_t kMostReducedBytes = 32767;  // larger values are cut, see reductions.cpp
constexpr std::size_t kMostGatheredBytes = 81920;
constexpr std::size_t kMostSwappedBytes = 4096;  // between two processes: one round in any form
constexpr std::size_t kMostExchangedBytes = 2048;
constexpr int kMostExchanging = 64;
constexpr std::size_t kMostForwardedBytes = 1024;
constexpr std::size_t kMostRootedBytes = 65536;  // of all parts: a root may run ahead
constexpr MPI_Count kLargestAlignment = 16;

// Blocks for the engine: the memory of a view if that will do, else memory of their own.
class Blocks {
 public:
  // A process without memory has failed.
  Blocks(Transfers& transfers, std::size_t size_bytes) : size_bytes_(size_bytes) {
    transfers.compute([&] { own_.resize(size_bytes); });
    data_ = own_.data();
  }
  Blocks(Transfers& transfers, const DataView& view, std::size_t size_bytes) : size_bytes_(size_bytes) {
    if (view.is_dense() && view.place.is_host() && view.size_bytes == size_bytes) {
      data_ = view.data;
    } else {
      transfers.compute([&] { own_.resize(size_bytes); });
      data_ = own_.data();
    }
  }
  std::byte* data() const { return data_; }
  // The view of all, or of some bytes.
  DataView view() const { return DataView::of_bytes(data_, size_bytes_); }
  DataView view(std::size_t first, std::size_t count) const {
    return data_ == nullptr ? DataView() : DataView::of_bytes(data_ + first, count);
  }
  // Copies are for views that are not the blocks themselves.
  void copy_from(Transfers& transfers, const DataView& view) const {
    if (view.data != data_) transfers.copy(view, this->view());
  }
  void copy_to(Transfers& transfers, const DataView& view) const {
    if (view.data != data_) transfers.copy(this->view(), view);
  }

 private:
  std::size_t size_bytes_;
  std::vector<std::byte> own_;
  std::byte* data_;
};

// Takes part in the call with what the transfers have brought.
runtime::Task<> run_call(Transfers& transfers, Call call) {
  call.number = transfers.context().call_number();
  if (transfers.is_under_way()) co_await transfers.wait();
  const std::shared_ptr<collective::Group> group = transfers.context().group();
  collective::Run run(*group, call);
  if (transfers.has_failed()) run.fail();
  run.start();
  if (!run.is_over() || !run.has_sent()) co_await ended(run);
  if (run.has_failed()) transfers.fail(run.is_out_of_memory() ? MPI_ERR_NO_MEM : MPI_ERR_TRUNCATE);
}

runtime::Task<> run_reduction(Transfers& transfers, Call call, const Reduction& what) {
  PackedCombiner combiner(what);
  call.combiner = combiner.get();
  co_await run_call(transfers, call);
  if (combiner.error() != nullptr) transfers.replace_error(combiner.error());  // it tells more
}

std::size_t packed_bytes(const Reduction& what) {
  return static_cast<std::size_t>(what.count * what.type->size_bytes());
}

std::size_t place_of(const CollectiveContext& context, int distance) {
  return static_cast<std::size_t>((context.rank() + context.size() + distance) % context.size());
}

}  // namespace

bool is_small_broadcast(std::size_t size_bytes) { return size_bytes <= kMostBroadcastBytes; }
bool is_small_reduction(std::size_t size_bytes) { return size_bytes <= kMostReducedBytes; }
bool is_small_allgather(int num_processes, std::size_t total_bytes) {
  return total_bytes <= (num_processes > 2 ? kMostGatheredBytes : kMostSwappedBytes);
}
bool is_small_alltoall(int num_processes, std::size_t part_bytes) {
  return collective::size_class_of(part_bytes) == 0 ||
         (part_bytes <= kMostExchangedBytes && num_processes <= kMostExchanging);
}
bool is_small_gather(int num_processes, std::size_t part_bytes) {
  return part_bytes <= kMostForwardedBytes &&
         static_cast<std::size_t>(num_processes) * part_bytes <= kMostRootedBytes;
}

bool is_aligned_for(const Reduction& what, const void* data) {
  return what.type->size_bytes() % kLargestAlignment != 0 ||
         reinterpret_cast<std::uintptr_t>(data) % kLargestAlignment == 0;
}

bool PackedCombiner::combine(void* self, const std::byte* left, std::byte* right, std::size_t size_bytes) {
  auto& mine = *static_cast<PackedCombiner*>(self);
  VirtualRank* const before = VirtualRank::current();
  if (mine.rank_ != before) VirtualRank::set_current(mine.rank_);  // the program may ask for it
  try {
    mine.combine_packed(left, right, size_bytes);
  } catch (...) {
    mine.error_ = std::current_exception();
  }
  if (mine.rank_ != before) VirtualRank::set_current(before);
  return mine.error_ == nullptr;
}

void PackedCombiner::combine_packed(const std::byte* left, std::byte* right, std::size_t size_bytes) const {
  const Datatype& type = *what_.type;
  const MPI_Count count = static_cast<MPI_Count>(size_bytes) / type.size_bytes();
  if (const std::optional<MPI_Count> offset = type.dense_offset(count)) [[likely]]
    return what_.operation->reduce(left - *offset, right - *offset, count, type);
  const ScratchElements in(what_.type, count);
  const ScratchElements inout(what_.type, count);
  in.view().unpack(left, size_bytes);
  inout.view().unpack(right, size_bytes);
  what_.operation->reduce(in.buffer(), inout.buffer(), count, type);
  inout.view().pack(right);
}

runtime::Task<> broadcast_blocks(Transfers& transfers, int root, DataView data) {
  const Blocks blocks(transfers, data, data.size_bytes);
  const bool is_root = transfers.context().rank() == root;
  if (is_root) blocks.copy_from(transfers, data);
  co_await run_call(
      transfers,
      {.kind = Kind::kBroadcast, .root = root, .data = blocks.data(), .block_bytes = data.size_bytes});
  if (!is_root) blocks.copy_to(transfers, data);
  co_await transfers.wait();
}

runtime::Task<> reduce_blocks(Transfers& transfers, int root, Reduction what, DataView in, DataView out) {
  const std::size_t size_bytes = packed_bytes(what);
  const bool is_root = transfers.context().rank() == root;
  const Blocks blocks(transfers, is_root && is_aligned_for(what, out.data) ? out : DataView(), size_bytes);
  blocks.copy_from(transfers, in);
  const Kind kind = what.operation->is_commutative() ? Kind::kReduce : Kind::kReduceInOrder;
  co_await run_reduction(
      transfers, {.kind = kind, .root = root, .data = blocks.data(), .block_bytes = size_bytes}, what);
  if (is_root) blocks.copy_to(transfers, out);
  co_await transfers.wait();
}

runtime::Task<> allreduce_blocks(Transfers& transfers, Reduction what, DataView in, DataView out) {
  const std::size_t size_bytes = packed_bytes(what);
  const Blocks blocks(transfers, is_aligned_for(what, out.data) ? out : DataView(), size_bytes);
  blocks.copy_from(transfers, in);
  co_await run_reduction(transfers,
                         {.kind = Kind::kAllreduce, .data = blocks.data(), .block_bytes = size_bytes}, what);
  blocks.copy_to(transfers, out);
  co_await transfers.wait();
}

collective::Kind reduce_scatter_kind(int num_processes, const Reduction& what) {
  const bool by_parts = (num_processes & (num_processes - 1)) == 0 && what.operation->is_commutative();
  return by_parts ? Kind::kReduceScatter : Kind::kAllreduce;
}

std::vector<std::size_t> begins_of(const Reduction& what, const std::vector<MPI_Count>& counts) {
  std::vector<std::size_t> begins(1, 0);
  for (const MPI_Count count : counts)
    begins.push_back(begins.back() + static_cast<std::size_t>(count * what.type->size_bytes()));
  return begins;
}

runtime::Task<> reduce_scatter_blocks(Transfers& transfers, Reduction what, std::vector<std::size_t> begins,
                                      DataView in, DataView out) {
  const CollectiveContext& context = transfers.context();
  const Blocks blocks(transfers, begins.back());
  blocks.copy_from(transfers, in);
  Call call{
      .kind = reduce_scatter_kind(context.size(), what), .data = blocks.data(), .block_bytes = begins.back()};
  if (call.kind == Kind::kReduceScatter) call.begins = begins.data();
  co_await run_reduction(transfers, call, what);
  transfers.copy(blocks.view(begins[static_cast<std::size_t>(context.rank())], out.size_bytes), out);
  co_await transfers.wait();
}

runtime::Task<> scan_blocks(Transfers& transfers, Reduction what, bool exclusive, DataView in, DataView out) {
  const std::size_t size_bytes = packed_bytes(what);
  const Blocks blocks(transfers, 2 * size_bytes);
  transfers.copy(in, blocks.view(0, size_bytes));
  if (!exclusive) transfers.copy(in, blocks.view(size_bytes, size_bytes));
  const Kind kind = exclusive ? Kind::kExclusiveScan : Kind::kScan;
  co_await run_reduction(transfers, {.kind = kind, .data = blocks.data(), .block_bytes = size_bytes}, what);
  if (!exclusive || transfers.context().rank() > 0) transfers.copy(blocks.view(size_bytes, size_bytes), out);
  co_await transfers.wait();
}

runtime::Task<> allgather_blocks(Transfers& transfers, OwnView mine, Views parts) {
  const CollectiveContext& context = transfers.context();
  std::vector<std::size_t> begins(parts.size() + 1);
  for (std::size_t i = 0; i < parts.size(); ++i)
    begins[i + 1] = begins[i] + parts[place_of(context, static_cast<int>(i))].size_bytes;
  const Blocks blocks(transfers, begins.back());
  const auto block = [&](std::size_t i) { return blocks.view(begins[i], begins[i + 1] - begins[i]); };
  transfers.copy(mine.in_place ? parts[place_of(context, 0)] : mine.view, block(0));
  co_await run_call(transfers, {.kind = Kind::kAllgather, .data = blocks.data(), .begins = begins.data()});
  for (std::size_t i = mine.in_place ? 1 : 0; i < parts.size(); ++i)
    transfers.copy(block(i), parts[place_of(context, static_cast<int>(i))]);
  co_await transfers.wait();
}

runtime::Task<> alltoall_blocks(Transfers& transfers, Views out, Views in) {
  const CollectiveContext& context = transfers.context();
  const std::size_t part_bytes = out[0].size_bytes;
  const Blocks blocks(transfers, out.size() * part_bytes);
  for (std::size_t i = 0; i < out.size(); ++i)
    transfers.copy(out[place_of(context, static_cast<int>(i))], blocks.view(i * part_bytes, part_bytes));
  co_await run_call(transfers, {.kind = Kind::kAlltoall, .data = blocks.data(), .block_bytes = part_bytes});
  for (std::size_t i = 0; i < in.size(); ++i)
    transfers.copy(blocks.view(i * part_bytes, part_bytes), in[place_of(context, -static_cast<int>(i))]);
  co_await transfers.wait();
}

runtime::Task<> gather_blocks(Transfers& transfers, int root, OwnView mine, Views parts,
                              std::size_t part_bytes) {
  const CollectiveContext& context = transfers.context();
  const std::size_t num_blocks = collective::blocks_below({context.rank(), context.size()}, root);
  const Blocks blocks(transfers, num_blocks * part_bytes);
  transfers.copy(mine.in_place ? parts[static_cast<std::size_t>(root)] : mine.view,
                 blocks.view(0, part_bytes));
  co_await run_call(transfers,
                    {.kind = Kind::kGather, .root = root, .data = blocks.data(), .block_bytes = part_bytes});
  for (std::size_t i = mine.in_place ? 1 : 0; context.rank() == root && i < num_blocks; ++i)
    transfers.copy(blocks.view(i * part_bytes, part_bytes), parts[place_of(context, static_cast<int>(i))]);
  co_await transfers.wait();
}

runtime::Task<> scatter_blocks(Transfers& transfers, int root, Views parts, OwnView mine,
                               std::size_t part_bytes) {
  const CollectiveContext& context = transfers.context();
  const std::size_t num_blocks = collective::blocks_below({context.rank(), context.size()}, root);
  const Blocks blocks(transfers, num_blocks * part_bytes);
  for (std::size_t i = mine.in_place ? 1 : 0; context.rank() == root && i < num_blocks; ++i)
    transfers.copy(parts[place_of(context, static_cast<int>(i))], blocks.view(i * part_bytes, part_bytes));
  co_await run_call(transfers,
                    {.kind = Kind::kScatter, .root = root, .data = blocks.data(), .block_bytes = part_bytes});
  if (!mine.in_place) transfers.copy(blocks.view(0, part_bytes), mine.view);
  co_await transfers.wait();
}

}  // namespace weft::mpi
