// A call of the engine with what it should give, and one member's part of it. Values are functions, whose composition is not commutative.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "collective/group.h"
#include "collective/plan.h"
#include "collective/run.h"

namespace weft::collective {

// x -> a x + b, modulo 2^32. Composition is not commutative, and has no rounding.
struct Affine {
  std::uint32_t a;
  std::uint32_t b;
  bool operator==(const Affine&) const = default;
};

// First `left`, then `right`.
inline Affine composed(Affine left, Affine right) { return {left.a * right.a, left.b * right.a + right.b}; }

inline bool compose(void* /*context*/, const std::byte* left, std::byte* right, std::size_t size_bytes) {
  for (std::size_t i = 0; i < size_bytes / sizeof(Affine); ++i) {
    Affine one;
    Affine other;
    std::memcpy(&one, left + i * sizeof one, sizeof one);
    std::memcpy(&other, right + i * sizeof other, sizeof other);
    other = composed(one, other);
    std::memcpy(right + i * sizeof other, &other, sizeof other);
  }
  return true;
}

using Values = std::vector<Affine>;

// One call of all members, and what it should give.
struct ExpectedCall {
  Kind kind;
  int root;
  std::size_t count;  // of values in a block
  bool runs_program;
  std::uint32_t number;
  Form form = Form::kFewMessages;

  // What a member gives: the blocks at the beginning of its data.
  Affine value(int place, std::size_t block, std::size_t i) const {
    const auto seed =
        static_cast<std::uint32_t>(number * 977 + static_cast<std::uint32_t>(place) * 131 + block * 17 + i);
    // kReduce combines in an order of its own: without factors the composition is commutative.
    return {kind == Kind::kReduce ? 1U : seed * 2654435761U | 1U, seed * 40503U};
  }
  // The composition of the members [first, last).
  Affine composition(int first, int last, std::size_t i) const {
    Affine result{1, 0};
    for (int place = first; place < last; ++place) result = composed(result, value(place, 0, i));
    return result;
  }
};

// One member's part.
class MemberCall {
 public:
  MemberCall(Group& group, const ExpectedCall& expected) : expected_(expected), group_(group) {
    const Member member = group.member();
    const std::size_t num_blocks = blocks_of(member);
    data_.resize(num_blocks * expected.count);
    const std::size_t first =
        num_blocks == static_cast<std::size_t>(member.size) ? block_of(member.place) : 0;
    for (std::size_t block = 0; block < num_blocks; ++block)
      for (std::size_t i = 0; i < expected.count; ++i)
        data_[(block + first) % num_blocks * expected.count + i] = expected.value(member.place, block, i);
    Call call{.kind = expected.kind,
              .root = expected.root,
              .number = expected.number,
              .form = expected.form,
              .data = reinterpret_cast<std::byte*>(data_.data()),
              .block_bytes = expected.count * sizeof(Affine),
              .combiner = {&compose, nullptr, expected.runs_program}};
    if (is_direct()) {
      if (expected.number % 2 == 0 && takes_input()) {
        input_ = data_;
        std::ranges::fill(data_, Affine{});
        call.input = reinterpret_cast<const std::byte*>(input_.data());
      }
      if (num_blocks == 1 && expected.kind != Kind::kBroadcast) {
        for (std::size_t i = 0; i <= static_cast<std::size_t>(member.size); ++i)
          begins_.push_back(expected.count * i / static_cast<std::size_t>(member.size) * sizeof(Affine));
        call.begins = begins_.data();
      }
    }
    run_.emplace(group, call);
  }
  collective::Run& run() { return *run_; }

  void check() {
    const Member member = group_.member();
    EXPECT_FALSE(run_->has_failed());
    for (std::size_t i = 0; i < expected_.count; ++i) check_values(member, i);
  }

 private:
  bool is_direct() const { return expected_.form == Form::kDirect; }
  bool takes_input() const {
    return expected_.kind != Kind::kBroadcast && expected_.kind != Kind::kAllgather;
  }
  std::size_t blocks_of(Member member) const {
    switch (expected_.kind) {
      case Kind::kBarrier:
        return 0;
      case Kind::kAllgather:
      case Kind::kAlltoall:
        return static_cast<std::size_t>(member.size);
      case Kind::kGather:
      case Kind::kScatter:
        return blocks_below(member, expected_.root);
      default:
        return 1;
    }
  }
  Affine at(std::size_t block, std::size_t i) const { return data_[block * expected_.count + i]; }
  // The block of the member so many places to the right.
  Affine at_right(std::size_t distance, std::size_t i) const {
    const Member member = group_.member();
    return at(block_of((member.place + static_cast<int>(distance)) % member.size), i);
  }
  std::size_t block_of(int place) const {
    int block = 0;
    while (group_.place_of_block(expected_.form, block) != place) ++block;
    return static_cast<std::size_t>(block);
  }
  void check_values(Member member, std::size_t i) const {
    const auto right = [&](int from, std::size_t distance) {
      return (from + static_cast<int>(distance)) % member.size;
    };
    const auto size = static_cast<std::size_t>(member.size);
    const bool is_root = member.place == expected_.root;
    switch (expected_.kind) {
      case Kind::kBarrier:
      case Kind::kReduceScatter:
        break;
      case Kind::kBroadcast:
        EXPECT_EQ(at(0, i), expected_.value(expected_.root, 0, i));
        break;
      case Kind::kReduce:
      case Kind::kReduceInOrder:
        if (is_root) {
          EXPECT_EQ(at(0, i), expected_.composition(0, member.size, i));
        }
        break;
      case Kind::kAllreduce:
        EXPECT_EQ(at(0, i), expected_.composition(0, member.size, i));
        break;
      case Kind::kScan:
        EXPECT_EQ(at(0, i), expected_.composition(0, member.place + 1, i));
        break;
      case Kind::kExclusiveScan:
        if (member.place > 0) {
          EXPECT_EQ(at(0, i), expected_.composition(0, member.place, i));
        }
        break;
      case Kind::kAllgather:
        for (std::size_t block = 0; block < size; ++block)
          EXPECT_EQ(at_right(block, i), expected_.value(right(member.place, block), 0, i));
        break;
      case Kind::kAlltoall:
        for (std::size_t block = 0; block < size; ++block)
          EXPECT_EQ(is_direct() ? at_right(size - block, i) : at(block, i),
                    expected_.value(right(member.place, size - block), block, i));
        break;
      case Kind::kGather:
        for (std::size_t block = 0; is_root && block < size; ++block)
          EXPECT_EQ(at(block, i), expected_.value(right(member.place, block), 0, i));
        break;
      case Kind::kScatter:
        EXPECT_EQ(at(0, i),
                  expected_.value(expected_.root,
                                  static_cast<std::size_t>(
                                      right(member.place, size - static_cast<std::size_t>(expected_.root))),
                                  i));
        break;
    }
  }

  const ExpectedCall expected_;
  Group& group_;
  Values data_;
  Values input_;
  std::vector<std::size_t> begins_;
  std::optional<collective::Run> run_;
};

}  // namespace weft::collective
