#include "models/mpi/p2p/buffer_space.h"

#include <algorithm>
#include <cstdlib>

namespace weft::mpi {

namespace {

constexpr std::size_t kPieceAlignment = 16;

std::size_t rounded(std::size_t size_bytes) {
  return (std::max<std::size_t>(size_bytes, 1) + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
}

}  // namespace

void BufferSpace::attach(void* data, std::size_t size_bytes) {
  attached_ = true;
  automatic_ = false;
  data_ = static_cast<std::byte*>(data);
  size_bytes_ = size_bytes;
}

void BufferSpace::attach_automatic() {
  attach(nullptr, 0);
  automatic_ = true;
}

void BufferSpace::detach() {
  attached_ = false;
  automatic_ = false;
  data_ = nullptr;
  size_bytes_ = 0;
}

// First fit: a program has few buffered sends in flight.
std::byte* BufferSpace::take(std::size_t size_bytes) {
  reclaim();
  if (automatic_) return static_cast<std::byte*>(std::malloc(rounded(size_bytes)));
  const std::size_t wanted = rounded(size_bytes);
  std::size_t from = 0;
  auto next = pieces_.begin();
  for (;; ++next) {
    const std::size_t to = next == pieces_.end() ? size_bytes_ : static_cast<std::size_t>(next->data - data_);
    if (to >= from && to - from >= wanted) break;
    if (next == pieces_.end()) return nullptr;
    from = static_cast<std::size_t>(next->data - data_) + next->size_bytes;
  }
  pieces_.insert(next, {data_ + from, wanted});
  return data_ + from;
}

void BufferSpace::reclaim() {
  std::erase_if(sending_, [this](const Sending& one) {
    if (!one.request->is_complete()) return false;
    give_back(one.data);
    return true;
  });
}

void BufferSpace::give_back(std::byte* piece) {
  const auto found =
      std::find_if(pieces_.begin(), pieces_.end(), [&](const Piece& one) { return one.data == piece; });
  if (found == pieces_.end()) {
    std::free(piece);
  } else {
    pieces_.erase(found);
  }
}

}  // namespace weft::mpi
