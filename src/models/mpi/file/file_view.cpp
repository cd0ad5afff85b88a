#include "models/mpi/file/file_view.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "models/mpi/datatype/checked.h"

namespace weft::mpi {

namespace {

Error wrong_filetype(std::string text) { return {MPI_ERR_ARG, "the filetype " + std::move(text)}; }

}  // namespace

Error FileView::make(Description description, bool is_written, PredefinedTypes& types,
                     std::shared_ptr<const FileView>* made) {
  const std::shared_ptr<FileView> view(new FileView(std::move(description)));
  const Description& given = view->description_;
  const Representation& representation = view->representation();
  if (Error error = find_file_size(representation, given.etype->signature(), &view->etype_bytes_);
      !error.ok())
    return error;
  Ref<Datatype> in_file;
  if (Error error = make_file_type(representation, types, *given.filetype, &in_file); !error.ok())
    return error;
  const bool is_whole =
      view->etype_bytes_ == 0 ? in_file->size_bytes() == 0 : in_file->size_bytes() % view->etype_bytes_ == 0;
  if (!is_whole) return wrong_filetype("does not consist of whole etypes; make it of the etype");
  if (Error error = view->add_runs(*in_file); !error.ok()) return error;
  if (is_written && !view->runs_.empty()) {
    // A copy that begins before the one before it has ended may overlap it, or lie in its gaps.
    for (std::size_t i = 0; i < view->runs_.size(); ++i) {
      const FileRun& run = view->runs_[i].run;
      const bool overlaps = (run.count > 1 && run.stride < run.size_bytes) ||
                            (i > 0 && run.offset < view->runs_[i - 1].run.end());
      if (overlaps) return wrong_filetype("has regions that overlap, and the file is open for writing");
    }
  }
  *made = view;
  return {};
}

Error FileView::add_run(const EvenRuns& even) {
  FileRun run{static_cast<std::int64_t>(even.address), static_cast<std::int64_t>(even.size_bytes),
              static_cast<std::int64_t>(even.count), even.stride};
  if (run.size_bytes == 0 || run.count == 0) return {};
  if (run.count == 1) run.stride = 0;
  if (run.offset < 0 || run.stride < 0)
    return wrong_filetype("has displacements that are negative or decrease, which the standard forbids");
  if (!runs_.empty()) {
    FileRun& before = runs_.back().run;
    const std::int64_t last = before.offset + (before.count - 1) * before.stride;
    if (run.offset < last)
      return wrong_filetype("has displacements that decrease, which the standard forbids");
    if (run.offset < before.end()) is_monotonic_ = false;
    if (before.count == 1 && run.count == 1 && run.offset == before.end()) {
      before.size_bytes += run.size_bytes;
      tile_bytes_ += run.size_bytes;
      return {};
    }
  }
  if (run.count > 1 && run.stride < run.size_bytes) is_monotonic_ = false;
  runs_.push_back({run, tile_bytes_});
  tile_bytes_ += run.size_bytes * run.count;
  return {};
}

Error FileView::add_runs(const Datatype& in_file) {
  tile_extent_ = in_file.extent();
  if (in_file.size_bytes() == 0) return {};
  if (tile_extent_ <= 0) return wrong_filetype("has an extent that is not positive");
  if (const std::optional<MPI_Count> offset = in_file.dense_offset(1)) {
    if (Error error = add_run(
            {static_cast<std::uintptr_t>(*offset), static_cast<std::size_t>(in_file.size_bytes()), 1, 0});
        !error.ok())
      return error;
  } else {
    Error error;
    in_file.visit_runs(nullptr, 1, in_file.size_bytes(), [&](const EvenRuns& even) {
      if (error.ok()) error = add_run(even);
    });
    if (!error.ok()) return error;
  }
  for (const TileRun& one : runs_) tile_pieces_ += one.run.count;
  if (runs_.back().run.end() - runs_.front().run.offset > tile_extent_) is_monotonic_ = false;
  return {};
}

const FileView::TileRun& FileView::run_at(std::int64_t bytes) const {
  const auto next =
      std::upper_bound(runs_.begin(), runs_.end(), bytes,
                       [](std::int64_t value, const TileRun& run) { return value < run.bytes_before; });
  return *std::prev(next);
}

std::int64_t FileView::num_pieces(std::int64_t size_bytes) const {
  if (size_bytes == 0 || is_dense()) return size_bytes == 0 ? 0 : 1;
  return static_cast<std::int64_t>(Wide{size_bytes} * tile_pieces_ / tile_bytes_) + 1;
}

bool FileView::fits(std::int64_t first, std::int64_t last) const {
  if (first < 0 || last < first) return false;
  if (first == last) return true;
  if (!has_bytes()) return false;
  const Wide tile = (last - 1) / tile_bytes_;
  return fits_count(description_.displacement + tile * tile_extent_ + runs_.back().run.end());
}

std::int64_t FileView::offset_of(std::int64_t position) const {
  const std::int64_t tile = position / tile_bytes_;
  const std::int64_t inside = position % tile_bytes_;
  const TileRun& at = run_at(inside);
  const std::int64_t in_run = inside - at.bytes_before;
  return description_.displacement + tile * tile_extent_ + at.run.offset +
         in_run / at.run.size_bytes * at.run.stride + in_run % at.run.size_bytes;
}

std::int64_t FileView::bytes_before(std::int64_t offset) const {
  if (!has_bytes()) return 0;
  const std::int64_t first = runs_.front().run.offset;
  if (offset <= description_.displacement || offset - description_.displacement <= first) return 0;
  const std::int64_t from_first = offset - description_.displacement - first;
  if (!is_monotonic_) return ((from_first - 1) / tile_extent_ + 1) * tile_bytes_;
  const std::int64_t tile = from_first / tile_extent_;
  const std::int64_t inside = from_first % tile_extent_ + first;
  const auto next =
      std::upper_bound(runs_.begin(), runs_.end(), inside,
                       [](std::int64_t value, const TileRun& run) { return value < run.run.offset; });
  if (next == runs_.begin()) return tile * tile_bytes_;
  const TileRun& at = *std::prev(next);
  const std::int64_t distance = inside - at.run.offset;
  const std::int64_t whole = at.run.count == 1 ? 0 : std::min(distance / at.run.stride, at.run.count - 1);
  const std::int64_t part = std::min(distance - whole * at.run.stride, at.run.size_bytes);
  return tile * tile_bytes_ + at.bytes_before + whole * at.run.size_bytes + part;
}

}  // namespace weft::mpi
