#include "models/mpi/file/strided_io.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace weft::mpi {

namespace {

// Reads pieces in the order of the view. Those that are near to each other wait until one call reads them all.
class SievedRead {
 public:
  SievedRead(const PosixFile& file, const Sieving& sieving, std::byte* to)
      : file_(file), sieving_(sieving), to_(to) {}

  void add(std::int64_t offset, std::int64_t size_bytes) {
    if (is_over()) return;
    if (!pieces_.empty()) {
      const std::int64_t gap = offset - end_;
      const bool joins = gap >= 0 && gap <= sieving_.most_gap_bytes &&
                         offset + size_bytes - pieces_.front().offset <= sieving_.buffer_bytes;
      if (!joins) read();
    }
    pieces_.push_back({offset, size_bytes});
    end_ = offset + size_bytes;
  }
  void finish() {
    if (!is_over()) read();
  }

  const Error& error() const { return error_; }
  std::size_t got() const { return got_; }

 private:
  struct Piece {
    std::int64_t offset;
    std::int64_t size_bytes;
  };

  bool is_over() const { return at_end_ || !error_.ok(); }

  void read() {
    if (pieces_.empty()) return;
    const std::int64_t first = pieces_.front().offset;
    std::size_t read_bytes = 0;
    if (pieces_.size() == 1) {
      const auto size = static_cast<std::size_t>(pieces_.front().size_bytes);
      error_ = file_.read({to_ + got_, size}, first, &read_bytes);
      got_ += read_bytes;
      at_end_ = read_bytes < size;
    } else {
      scratch_.resize(static_cast<std::size_t>(end_ - first));
      error_ = file_.read(scratch_, first, &read_bytes);
      for (const Piece& piece : pieces_) take(piece, first, static_cast<std::int64_t>(read_bytes));
    }
    pieces_.clear();
  }
  void take(const Piece& piece, std::int64_t first, std::int64_t read_bytes) {
    if (at_end_) return;
    const std::int64_t begin = piece.offset - first;
    const std::int64_t size = std::clamp<std::int64_t>(read_bytes - begin, 0, piece.size_bytes);
    at_end_ = size < piece.size_bytes;
    if (size == 0) return;
    std::memcpy(to_ + got_, scratch_.data() + begin, static_cast<std::size_t>(size));
    got_ += static_cast<std::size_t>(size);
  }

  const PosixFile& file_;
  const Sieving sieving_;
  std::byte* const to_;
  std::vector<Piece> pieces_;
  std::int64_t end_ = 0;  // of the last piece
  std::vector<std::byte> scratch_;
  std::size_t got_ = 0;
  bool at_end_ = false;
  Error error_;
};

}  // namespace

Error read_view(const PosixFile& file, const FileView& view, std::int64_t first, std::span<std::byte> bytes,
                const Sieving& sieving, std::size_t* got) {
  SievedRead read(file, sieving, bytes.data());
  view.for_each_piece(first, first + static_cast<std::int64_t>(bytes.size()),
                      [&](std::int64_t offset, std::int64_t size) { read.add(offset, size); });
  read.finish();
  *got = read.got();
  return read.error();
}

Error write_view(const PosixFile& file, const FileView& view, std::int64_t first,
                 std::span<const std::byte> bytes) {
  Error error;
  const std::byte* from = bytes.data();
  view.for_each_piece(first, first + static_cast<std::int64_t>(bytes.size()),
                      [&](std::int64_t offset, std::int64_t size) {
                        if (error.ok()) error = file.write({from, static_cast<std::size_t>(size)}, offset);
                        from += size;
                      });
  return error;
}

}  // namespace weft::mpi
