// Coverage: which bytes of a part of a file are accessed. Threads: any, one at a time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::mpi {

class Coverage {
 public:
  explicit Coverage(std::int64_t size_bytes)
      : size_bytes_(size_bytes), words_(static_cast<std::size_t>((size_bytes + kBits - 1) / kBits)) {}

  // REQUIRES: 0 <= begin < end <= size.
  void mark(std::int64_t begin, std::int64_t end) {
    const auto first = static_cast<std::size_t>(begin / kBits);
    const auto last = static_cast<std::size_t>((end - 1) / kBits);
    const std::uint64_t from_begin = ~std::uint64_t{0} << (begin % kBits);
    const std::uint64_t to_end = ~std::uint64_t{0} >> (kBits - 1 - (end - 1) % kBits);
    if (first == last) {
      words_[first] |= from_begin & to_end;
      return;
    }
    words_[first] |= from_begin;
    for (std::size_t i = first + 1; i < last; ++i) words_[i] = ~std::uint64_t{0};
    words_[last] |= to_end;
  }

  // Calls visit(begin, end) for the ranges of marked bytes. Gaps of up to `most_gap_bytes` count as marked.
  template <class Visit>
  void for_each_range(std::int64_t most_gap_bytes, const Visit& visit) const {
    std::int64_t begin = next(0, true);
    while (begin < size_bytes_) {
      std::int64_t end = next(begin, false);
      std::int64_t following = next(end, true);
      while (following < size_bytes_ && following - end <= most_gap_bytes) {
        end = next(following, false);
        following = next(end, true);
      }
      visit(begin, end);
      begin = following;
    }
  }

 private:
  static constexpr std::int64_t kBits = 64;

  // The first byte from `at` on that is marked, or that is not; the size if there is none.
  std::int64_t next(std::int64_t at, bool is_marked) const {
    while (at < size_bytes_) {
      const std::uint64_t word = words_[static_cast<std::size_t>(at / kBits)];
      const std::uint64_t wanted = (is_marked ? word : ~word) >> (at % kBits);
      if (wanted != 0) {
        const std::int64_t found = at + std::countr_zero(wanted);
        return found < size_bytes_ ? found : size_bytes_;
      }
      at = (at / kBits + 1) * kBits;
    }
    return size_bytes_;
  }

  std::int64_t size_bytes_;
  std::vector<std::uint64_t> words_;
};

}  // namespace weft::mpi
