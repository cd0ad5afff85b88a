#include "models/mpi/window/access_parts.h"

#include <algorithm>
#include <utility>

#include "models/mpi/window/target_runs.h"

namespace weft::mpi {

std::vector<RunPart> cut_runs(std::span<const WindowRun> runs, std::uint64_t element_bytes,
                              std::size_t most_runs) {
  std::vector<RunPart> parts;
  std::uint64_t cut_bytes = 0;  // of all parts that are made
  std::size_t first = 0;
  while (first < runs.size()) {
    RunPart part;
    RunPart whole;  // its whole elements
    while (part.num_runs < most_runs && first + part.num_runs < runs.size()) {
      const WindowRun& run = runs[first + part.num_runs];
      part.size_bytes += run.size_bytes * run.count;
      ++part.num_runs;
      if ((cut_bytes + part.size_bytes) % element_bytes == 0) whole = part;
    }
    parts.push_back(whole.num_runs > 0 ? whole : part);
    first += parts.back().num_runs;
    cut_bytes += parts.back().size_bytes;
  }
  return parts;
}

ViewParts::ViewParts(const DataView& view) : view_(view) {
  if (view.is_dense()) return;
  view.layout->visit_runs(view.data, view.count, view.size_bytes, [&](const EvenRuns& even) {
    const std::uintptr_t offset = even.address - reinterpret_cast<std::uintptr_t>(view.data);
    runs_.push_back({static_cast<std::int64_t>(offset), even.size_bytes, even.count, even.stride});
  });
}

DataView ViewParts::next(std::size_t size_bytes) {
  if (view_.size_bytes == 0) return view_;
  if (view_.is_dense()) {
    DataView part = view_;
    part.data += std::exchange(done_bytes_, done_bytes_ + size_bytes);
    part.size_bytes = size_bytes;
    return part;
  }
  DataView part = runs_view(view_.data, take(size_bytes));
  part.place = view_.place;
  part.stream = view_.stream;
  return part;
}

std::vector<WindowRun> ViewParts::take(std::uint64_t size_bytes) {
  std::vector<WindowRun> taken;
  while (size_bytes > 0) {
    const WindowRun& run = runs_[next_run_];
    const std::uint64_t whole = skipped_bytes_ > 0 ? 0 : std::min(run.count, size_bytes / run.size_bytes);
    if (whole > 0) {
      taken.push_back({run.offset, run.size_bytes, whole, run.stride});
      size_bytes -= whole * run.size_bytes;
      drop_pieces(whole);
      continue;
    }
    const std::uint64_t cut_bytes = std::min(size_bytes, run.size_bytes - skipped_bytes_);
    taken.push_back({run.offset + static_cast<std::int64_t>(skipped_bytes_), cut_bytes, 1, 0});
    size_bytes -= cut_bytes;
    skipped_bytes_ += cut_bytes;
    if (skipped_bytes_ == run.size_bytes) drop_pieces(1);
  }
  return taken;
}

void ViewParts::drop_pieces(std::uint64_t count) {
  skipped_bytes_ = 0;
  WindowRun& run = runs_[next_run_];
  run.count -= count;
  if (run.count == 0) {
    ++next_run_;
  } else {
    run.offset += static_cast<std::int64_t>(count) * run.stride;
  }
}

}  // namespace weft::mpi
