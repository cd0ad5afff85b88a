// GatheredValues: memory for the packed values of all ranks, in which the engine gathers them. Threads: the PE's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "collective/run.h"

namespace weft::pgas {

class GatheredValues {
 public:
  // The number of values, in front of them in packed().
  static constexpr std::size_t kCountBytes = sizeof(std::uint64_t);

  // `sizes`: of the values, by rank, or one for all. They may be claims of peers. Throws std::bad_alloc. The group outlives it.
  GatheredValues(const collective::Group& group, collective::Form form, std::span<const std::size_t> sizes)
      : group_(group), form_(form), is_in_order_(group.gathers_by_place(form)) {
    if (sizes.size() == 1) {
      block_bytes_ = sizes[0];
      if (block_bytes_ > kMostBytes / num_ranks()) throw std::bad_array_new_length();
      total_bytes_ = block_bytes_ * num_ranks();
    } else {
      place_values(sizes);
    }
    const std::size_t in_order_bytes = kCountBytes + total_bytes_ + 1;
    const std::size_t first = is_in_order_ ? kCountBytes : (in_order_bytes + 15) / 16 * 16;
    memory_ =
        std::make_unique_for_overwrite<std::byte[]>(is_in_order_ ? in_order_bytes : first + total_bytes_);
    blocks_ = memory_.get() + first;
  }

  // The value of this rank, of the size that was given.
  void put(std::span<const std::byte> mine) {
    int block = 0;
    while (group_.place_of_block(form_, block) != group_.member().place) ++block;
    if (!mine.empty())
      std::memcpy(blocks_ + begin_of(static_cast<std::size_t>(block)), mine.data(), mine.size());
  }
  // All blocks become those of the call.
  void give_to(collective::Call& call) const {
    call.data = blocks_;
    call.block_bytes = block_bytes_;
    call.begins = begins_.empty() ? nullptr : begins_.data();
  }
  // The bytes [begin, begin + size_bytes) of each block, as far as it has them. REQUIRES: kDirect; several sizes.
  void give_piece_to(collective::Call& call, std::size_t begin, std::size_t size_bytes) {
    piece_begins_.assign(begins_.begin(), begins_.end() - 1);
    piece_ends_.assign(begins_.begin() + 1, begins_.end());
    for (std::size_t i = 0; i < piece_begins_.size(); ++i) {
      const std::size_t end = piece_ends_[i];
      piece_begins_[i] += std::min(begin, end - begins_[i]);
      piece_ends_[i] = piece_begins_[i] + std::min(size_bytes, end - piece_begins_[i]);
    }
    call.data = blocks_;
    call.begins = piece_begins_.data();
    call.ends = piece_ends_.data();
  }

  // A packed vector of the values by rank, and a byte behind it: a vector reads an element, also one of no bytes, only if a byte is left.
  std::span<const std::byte> packed() {
    const std::uint64_t count = num_ranks();
    std::memcpy(memory_.get(), &count, kCountBytes);
    if (!is_in_order_) bring_in_order();
    memory_[kCountBytes + total_bytes_] = {};
    return {memory_.get(), kCountBytes + total_bytes_ + 1};
  }

 private:
  // Twice that, and some, is no overflow.
  static constexpr std::size_t kMostBytes = static_cast<std::size_t>(PTRDIFF_MAX) / 4;

  std::size_t num_ranks() const { return static_cast<std::size_t>(group_.member().size); }
  std::size_t place_of(std::size_t block) const {
    return static_cast<std::size_t>(group_.place_of_block(form_, static_cast<int>(block)));
  }
  std::size_t begin_of(std::size_t block) const {
    return begins_.empty() ? block * block_bytes_ : begins_[block];
  }
  void place_values(std::span<const std::size_t> sizes) {
    for (const std::size_t size_bytes : sizes) {
      if (size_bytes > kMostBytes - total_bytes_) throw std::bad_array_new_length();
      value_begins_.push_back(total_bytes_);
      total_bytes_ += size_bytes;
    }
    begins_.push_back(0);
    for (std::size_t block = 0; block < sizes.size(); ++block)
      begins_.push_back(begins_.back() + sizes[place_of(block)]);
  }
  void bring_in_order() {
    for (std::size_t block = 0; block < num_ranks(); ++block) {
      const std::size_t place = place_of(block);
      const std::size_t value_begin = value_begins_.empty() ? place * block_bytes_ : value_begins_[place];
      const std::size_t size_bytes = begin_of(block + 1) - begin_of(block);
      if (size_bytes > 0)
        std::memcpy(memory_.get() + kCountBytes + value_begin, blocks_ + begin_of(block), size_bytes);
    }
  }

  const collective::Group& group_;
  const collective::Form form_;
  const bool is_in_order_;  // the blocks lie where packed() has them
  std::size_t block_bytes_ = 0;
  std::size_t total_bytes_ = 0;
  std::vector<std::size_t> begins_;  // of the blocks, and the end of the last one; empty if all have one size
  std::vector<std::size_t> value_begins_;  // the same of the values by rank
  std::vector<std::size_t> piece_begins_;
  std::vector<std::size_t> piece_ends_;
  std::unique_ptr<std::byte[]> memory_;  // packed(), and the blocks behind that unless they are in it
  std::byte* blocks_ = nullptr;
};

}  // namespace weft::pgas
