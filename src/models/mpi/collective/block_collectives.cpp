#include "models/mpi/collective/block_collectives.h"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "weft/mpi/mpi.h"

namespace weft::mpi {

namespace {

using collective::Call;
using collective::Form;
using collective::Kind;

constexpr MPI_Count kLargestAlignment = 16;

bool is_aligned_to_largest(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % kLargestAlignment == 0;
}

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
  if (run.has_failed())
    transfers.fail(
        transfers.context().failure_class(run.is_out_of_memory() ? MPI_ERR_NO_MEM : MPI_ERR_TRUNCATE));
}

runtime::Task<> run_reduction(Transfers& transfers, Call call, const Reduction& what) {
  PackedCombiner combiner(what);
  call.combiner = combiner.get();
  co_await run_call(transfers, call);
  if (combiner.error() != nullptr) transfers.replace_error(combiner.error());  // it tells more
}

std::size_t place_of(const CollectiveContext& context, int distance) {
  return static_cast<std::size_t>((context.rank() + context.size() + distance) % context.size());
}

}  // namespace

std::vector<MPI_Count> equal_counts(MPI_Count count, int num_processes) {
  std::vector<MPI_Count> counts(static_cast<std::size_t>(num_processes), count / num_processes);
  for (MPI_Count i = 0; i < count % num_processes; ++i) ++counts[static_cast<std::size_t>(i)];
  return counts;
}

EngineReduction::EngineReduction(const collective::Group& group, Kind kind, int root, const Reduction& what,
                                 const std::vector<MPI_Count>* counts) {
  const int size = group.member().size;
  call = {.kind = kind, .root = root, .block_bytes = packed_bytes(what)};
  call.form = group.form(kind, call.block_bytes);
  // In few messages kReduceScatter needs a power of two of members, and a commutative operator.
  if (kind == Kind::kReduceScatter && !is_direct() &&
      ((size & (size - 1)) != 0 || !what.operation->is_commutative())) {
    call.kind = Kind::kAllreduce;
    call.form = group.form(call.kind, call.block_bytes);
  }
  if (!is_direct() && counts == nullptr) return;
  begins.push_back(0);
  for (const MPI_Count part : counts == nullptr ? equal_counts(what.count, size) : *counts)
    begins.push_back(begins.back() + static_cast<std::size_t>(part * what.type->size_bytes()));
  if (is_direct() || call.kind == Kind::kReduceScatter) call.begins = begins.data();
}

bool is_aligned_for(const Reduction& what, const void* data) {
  return what.type->size_bytes() % kLargestAlignment != 0 || is_aligned_to_largest(data);
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
  const MPI_Count count = count_of(size_bytes);
  // One element of a type with a gap behind it may lie where the next one would not be aligned.
  const bool is_aligned =
      type.size_bytes() == type.extent() || (is_aligned_to_largest(left) && is_aligned_to_largest(right));
  if (const std::optional<MPI_Count> offset = type.dense_offset(count); offset && is_aligned) [[likely]]
    return what_.operation->reduce(left - *offset, right - *offset, count, type);
  const ScratchElements in(what_.type, count);
  const ScratchElements inout(what_.type, count);
  in.view().unpack(left, size_bytes);
  inout.view().unpack(right, size_bytes);
  what_.operation->reduce(in.buffer(), inout.buffer(), count, type);
  inout.view().pack(right);
}

runtime::Task<> broadcast_blocks(Transfers& transfers, int root, DataView data, std::size_t size_bytes) {
  const Blocks blocks(transfers, data, data.size_bytes);
  const bool is_root = transfers.context().rank() == root;
  if (is_root) blocks.copy_from(transfers, data);
  const Form form = transfers.context().group()->form(Kind::kBroadcast, size_bytes);
  co_await run_call(transfers, {.kind = Kind::kBroadcast,
                                .root = root,
                                .form = form,
                                .data = blocks.data(),
                                .block_bytes = data.size_bytes});
  if (!is_root) blocks.copy_to(transfers, data);
  co_await transfers.wait();
}

namespace {

// A reduction in memory of its own, or in that of the result.
runtime::Task<> reduce_in_blocks(Transfers& transfers, EngineReduction& reduction, const Reduction& what,
                                 const Blocks& blocks, const DataView& in) {
  blocks.copy_from(transfers, in);
  reduction.call.data = blocks.data();
  co_await run_reduction(transfers, reduction.call, what);
}

}  // namespace

runtime::Task<> reduce_blocks(Transfers& transfers, int root, Reduction what, DataView in, DataView out) {
  const std::size_t size_bytes = packed_bytes(what);
  const bool is_root = transfers.context().rank() == root;
  const Blocks blocks(transfers, is_root && is_aligned_for(what, out.data) ? out : DataView(), size_bytes);
  const Kind kind = what.operation->is_commutative() ? Kind::kReduce : Kind::kReduceInOrder;
  EngineReduction reduction(*transfers.context().group(), kind, root, what, nullptr);
  co_await reduce_in_blocks(transfers, reduction, what, blocks, in);
  if (is_root) blocks.copy_to(transfers, out);
  co_await transfers.wait();
}

runtime::Task<> allreduce_blocks(Transfers& transfers, Reduction what, DataView in, DataView out) {
  const Blocks blocks(transfers, is_aligned_for(what, out.data) ? out : DataView(), packed_bytes(what));
  EngineReduction reduction(*transfers.context().group(), Kind::kAllreduce, 0, what, nullptr);
  co_await reduce_in_blocks(transfers, reduction, what, blocks, in);
  blocks.copy_to(transfers, out);
  co_await transfers.wait();
}

runtime::Task<> reduce_scatter_blocks(Transfers& transfers, Reduction what, std::vector<MPI_Count> counts,
                                      DataView in, DataView out) {
  const CollectiveContext& context = transfers.context();
  const Blocks blocks(transfers, packed_bytes(what));
  EngineReduction reduction(*context.group(), Kind::kReduceScatter, 0, what, &counts);
  co_await reduce_in_blocks(transfers, reduction, what, blocks, in);
  const std::size_t begin = reduction.begins[static_cast<std::size_t>(context.rank())];
  transfers.copy(blocks.view(begin, out.size_bytes), out);
  co_await transfers.wait();
}

runtime::Task<> scan_blocks(Transfers& transfers, Reduction what, bool exclusive, DataView in, DataView out) {
  const CollectiveContext& context = transfers.context();
  const Blocks blocks(transfers, packed_bytes(what));
  EngineReduction reduction(*context.group(), exclusive ? Kind::kExclusiveScan : Kind::kScan, 0, what,
                            nullptr);
  co_await reduce_in_blocks(transfers, reduction, what, blocks, in);
  if (!exclusive || context.rank() > 0) transfers.copy(blocks.view(), out);
  co_await transfers.wait();
}

runtime::Task<> allgather_blocks(Transfers& transfers, OwnView mine, Views parts, std::size_t most_bytes) {
  const CollectiveContext& context = transfers.context();
  const std::shared_ptr<collective::Group> group = context.group();
  const Form form = group->form(Kind::kAllgather, most_bytes);
  const auto place = [&](std::size_t i) { return group->place_of_block(form, static_cast<int>(i)); };
  const auto part = [&](std::size_t i) -> const DataView& {
    return parts[static_cast<std::size_t>(place(i))];
  };
  std::size_t own = 0;
  while (place(own) != context.rank()) ++own;
  std::vector<std::size_t> begins(parts.size() + 1);
  for (std::size_t i = 0; i < parts.size(); ++i) begins[i + 1] = begins[i] + part(i).size_bytes;
  const Blocks blocks(transfers, begins.back());
  const auto block = [&](std::size_t i) { return blocks.view(begins[i], begins[i + 1] - begins[i]); };
  transfers.copy(mine.in_place ? part(own) : mine.view, block(own));
  co_await run_call(transfers,
                    {.kind = Kind::kAllgather, .form = form, .data = blocks.data(), .begins = begins.data()});
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (i != own || !mine.in_place) transfers.copy(block(i), part(i));
  co_await transfers.wait();
}

runtime::Task<> alltoall_blocks(Transfers& transfers, Views out, Views in) {
  const CollectiveContext& context = transfers.context();
  const std::size_t part_bytes = out[0].size_bytes;
  const Form form = context.group()->form(Kind::kAlltoall, part_bytes);
  const auto block_of = [&](const Views& views, std::size_t i, int direction) -> const DataView& {
    return form == Form::kDirect ? views[i] : views[place_of(context, direction * static_cast<int>(i))];
  };
  const Blocks blocks(transfers, out.size() * part_bytes);
  for (std::size_t i = 0; i < out.size(); ++i)
    transfers.copy(block_of(out, i, 1), blocks.view(i * part_bytes, part_bytes));
  co_await run_call(
      transfers, {.kind = Kind::kAlltoall, .form = form, .data = blocks.data(), .block_bytes = part_bytes});
  for (std::size_t i = 0; i < in.size(); ++i)
    transfers.copy(blocks.view(i * part_bytes, part_bytes), block_of(in, i, -1));
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
