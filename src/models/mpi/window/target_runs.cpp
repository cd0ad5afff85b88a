#include "models/mpi/window/target_runs.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace weft::mpi {

namespace {

class RunsAsLayout final : public ElementLayout {
 public:
  explicit RunsAsLayout(std::vector<WindowRun> runs) : runs_(std::move(runs)) {}

  void pack(const std::byte* buffer, std::int64_t /*count*/, std::byte* packed) const override {
    for_each_piece(SIZE_MAX, [&](std::int64_t offset, std::size_t size_bytes, std::size_t done) {
      std::memcpy(packed + done, buffer + offset, size_bytes);
    });
  }
  void unpack(const std::byte* packed, std::size_t size_bytes, std::byte* buffer,
              std::int64_t /*count*/) const override {
    for_each_piece(size_bytes, [&](std::int64_t offset, std::size_t piece_bytes, std::size_t done) {
      std::memcpy(buffer + offset, packed + done, piece_bytes);
    });
  }
  void visit_runs(const std::byte* buffer, std::int64_t /*count*/, std::size_t size_bytes,
                  const RunVisitor& visit) const override {
    std::size_t left = size_bytes;
    for (const WindowRun& run : runs_) {
      const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(buffer + run.offset);
      const std::size_t whole = std::min<std::size_t>(run.count, left / run.size_bytes);
      if (whole > 0) visit({address, run.size_bytes, whole, static_cast<std::ptrdiff_t>(run.stride)});
      left -= whole * run.size_bytes;
      if (whole == run.count) continue;
      const auto next = static_cast<std::uintptr_t>(run.stride) * whole;
      if (left > 0) visit({address + next, left, 1, 0});
      return;
    }
  }

 private:
  // Calls visit(offset, size, packed bytes before it) for the pieces of the leading bytes.
  template <class Visit>
  void for_each_piece(std::size_t size_bytes, const Visit& visit) const {
    std::size_t done = 0;
    for (const WindowRun& run : runs_) {
      std::int64_t offset = run.offset;
      for (std::uint64_t i = 0; i < run.count && done < size_bytes; ++i, offset += run.stride) {
        const std::size_t piece_bytes = std::min<std::size_t>(run.size_bytes, size_bytes - done);
        visit(offset, piece_bytes, done);
        done += piece_bytes;
      }
    }
  }

  std::vector<WindowRun> runs_;
};

}  // namespace

std::vector<WindowRun> runs_of(const Datatype& type, MPI_Count count, MPI_Aint displacement_bytes,
                               std::size_t most) {
  const MPI_Count size = count * type.size_bytes();
  if (const std::optional<MPI_Count> offset = type.dense_offset(count))
    return {{displacement_bytes + *offset, static_cast<std::uint64_t>(size), 1, 0}};
  std::vector<WindowRun> runs;
  type.visit_runs(reinterpret_cast<const void*>(displacement_bytes), count, size, [&](const EvenRuns& even) {
    if (runs.size() <= most)
      runs.push_back({static_cast<std::int64_t>(even.address), even.size_bytes, even.count, even.stride});
  });
  return runs;
}

DataView runs_view(std::byte* base, std::vector<WindowRun> runs) {
  DataView view;
  for (const WindowRun& run : runs) view.size_bytes += run.size_bytes * run.count;
  if (runs.size() == 1 && runs.front().count == 1) {
    view.data = base + runs.front().offset;
    return view;
  }
  view.data = base;
  view.count = 1;
  view.layout = std::make_shared<RunsAsLayout>(std::move(runs));
  return view;
}

}  // namespace weft::mpi
