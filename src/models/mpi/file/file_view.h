// FileView: which bytes of a file a process sees, and in which order. MPI 5.0, section 14.3.
//
// A view is a displacement and a filetype, whose copies follow one another. The bytes of the view have positions from 0 on. It never
// changes. Threads: any.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/mpi/mpi.h"

#include "models/mpi/datatype/datatype.h"
#include "models/mpi/datatype/describing/representation.h"

namespace weft::mpi {

// `count` pieces of `size_bytes` in a file, `stride` bytes from one to the next. They follow one another in the view.
struct FileRun {
  std::int64_t offset = 0;
  std::int64_t size_bytes = 0;
  std::int64_t count = 1;
  std::int64_t stride = 0;

  std::int64_t end() const { return offset + (count - 1) * stride + size_bytes; }
};

class FileView {
 public:
  // The arguments of MPI_File_set_view.
  struct Description {
    MPI_Offset displacement = 0;
    Ref<Datatype> etype;
    Ref<Datatype> filetype;
    RepresentationPointer representation;
  };
  // `is_written`: the file is open for writing, so the pieces of the filetype do not overlap.
  // Errors: MPI_ERR_ARG for types that the standard does not allow, and those of make_file_type().
  static Error make(Description description, bool is_written, PredefinedTypes& types,
                    std::shared_ptr<const FileView>* made);

  const Description& description() const { return description_; }
  const Representation& representation() const { return *description_.representation; }
  // In the file; 0 for etypes without bytes.
  std::int64_t etype_bytes() const { return etype_bytes_; }
  bool has_bytes() const { return tile_bytes_ > 0; }
  // Later bytes of the view are later in the file, and no byte is there twice.
  bool is_monotonic() const { return is_monotonic_; }

  // About how many pieces of the file have so many bytes of the view.
  std::int64_t num_pieces(std::int64_t size_bytes) const;
  // Whether the bytes at the positions [first, last) have offsets that fit 64 bits.
  bool fits(std::int64_t first, std::int64_t last) const;
  // The offset in the file of the byte at a position. REQUIRES: has_bytes(), fits(position, position + 1).
  std::int64_t offset_of(std::int64_t position) const;
  // How many bytes of the view are before an offset of the file. If the view is not monotonic: those of the copies of the filetype that
  // begin before it.
  std::int64_t bytes_before(std::int64_t offset) const;

  // Calls visit(const FileRun&) for the bytes at the positions [first, last), in their order. Adjacent pieces are one.
  // REQUIRES: has_bytes(), or first == last; fits(first, last).
  template <class Visit>
  void for_each_run(std::int64_t first, std::int64_t last, const Visit& visit) const;
  // As for_each_run(): visit(offset, size).
  template <class Visit>
  void for_each_piece(std::int64_t first, std::int64_t last, const Visit& visit) const;

 private:
  // A run of the filetype, and the bytes of the filetype before it.
  struct TileRun {
    FileRun run;
    std::int64_t bytes_before = 0;
  };

  explicit FileView(Description description) : description_(std::move(description)) {}
  Error add_runs(const Datatype& in_file);
  Error add_run(const EvenRuns& even);
  const TileRun& run_at(std::int64_t bytes) const;
  template <class Visit>
  void visit_tile(std::int64_t base, std::int64_t first, std::int64_t last, const Visit& visit) const;
  bool is_dense() const {
    return runs_.size() == 1 && runs_[0].run.count == 1 && tile_bytes_ == tile_extent_;
  }

  Description description_;
  std::int64_t etype_bytes_ = 0;
  std::int64_t tile_bytes_ = 0;
  std::int64_t tile_extent_ = 0;
  std::int64_t tile_pieces_ = 0;
  std::vector<TileRun> runs_;
  bool is_monotonic_ = true;
};

// Joins pieces of a file that are visited in order, and passes runs on.
template <class Visit>
class RunMerger {
 public:
  explicit RunMerger(const Visit& visit) : visit_(visit) {}
  RunMerger(const RunMerger&) = delete;
  RunMerger& operator=(const RunMerger&) = delete;
  ~RunMerger() = default;

  void add(std::int64_t offset, std::int64_t size_bytes) {
    if (size_bytes == 0) return;
    const bool is_first = now_.size_bytes == 0;
    if (!is_first && now_.count == 1 && now_.end() == offset) {
      now_.size_bytes += size_bytes;
    } else if (!is_first && size_bytes == now_.size_bytes && now_.count == 1) {
      now_.stride = offset - now_.offset;
      now_.count = 2;
    } else if (!is_first && size_bytes == now_.size_bytes &&
               offset == now_.offset + now_.count * now_.stride && now_.end() != offset) {
      ++now_.count;
    } else {
      finish();
      now_ = {offset, size_bytes, 1, 0};
    }
  }
  void finish() {
    if (now_.size_bytes > 0) visit_(now_);
    now_ = {};
  }

 private:
  const Visit& visit_;
  FileRun now_{0, 0, 1, 0};
};

// Calls visit(offset, size) for the part [first, last) of the copy of the filetype that begins at `base`.
template <class Visit>
void FileView::visit_tile(std::int64_t base, std::int64_t first, std::int64_t last,
                          const Visit& visit) const {
  for (const TileRun* at = &run_at(first); first < last; ++at) {
    const FileRun& run = at->run;
    while (first < last && first - at->bytes_before < run.size_bytes * run.count) {
      const std::int64_t inside = first - at->bytes_before;
      const std::int64_t skipped = inside % run.size_bytes;
      const std::int64_t size = std::min(run.size_bytes - skipped, last - first);
      visit(base + run.offset + inside / run.size_bytes * run.stride + skipped, size);
      first += size;
    }
  }
}

template <class Visit>
void FileView::for_each_run(std::int64_t first, std::int64_t last, const Visit& visit) const {
  if (first >= last) return;
  if (is_dense()) return visit(FileRun{offset_of(first), last - first, 1, 0});
  RunMerger<Visit> merger(visit);
  while (first < last) {
    const std::int64_t tile = first / tile_bytes_;
    const std::int64_t begin = tile * tile_bytes_;
    const std::int64_t end = std::min(last - begin, tile_bytes_);
    visit_tile(description_.displacement + tile * tile_extent_, first - begin, end,
               [&](std::int64_t offset, std::int64_t size) { merger.add(offset, size); });
    first = begin + end;
  }
  merger.finish();
}

template <class Visit>
void FileView::for_each_piece(std::int64_t first, std::int64_t last, const Visit& visit) const {
  for_each_run(first, last, [&](const FileRun& run) {
    for (std::int64_t i = 0; i < run.count; ++i) visit(run.offset + i * run.stride, run.size_bytes);
  });
}

}  // namespace weft::mpi
