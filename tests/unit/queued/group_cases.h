// Operations of groups of device arrays as a test queues them, with random bits, and what they give.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "weft/pgas/teams.h"

#include "base/format.h"
#include "memory/kinds/software/software_reduction.h"
#include "tests/support/device_memory.h"

namespace weft::testing {

using Bits = std::vector<std::byte>;

enum class GroupOperation : std::uint8_t {
  kBroadcast,
  kReduce,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll
};
inline constexpr int kNumGroupOperations = 6;
inline constexpr memory::ElementType kElementTypes[] = {
    memory::ElementType::kInt32,    memory::ElementType::kInt64,   memory::ElementType::kFloat16,
    memory::ElementType::kBfloat16, memory::ElementType::kFloat32, memory::ElementType::kFloat64};

inline memory::Place emulated_device(runtime::Runtime& runtime) {
  return weft::device_of(runtime, memory::Kind::kEmulated);
}

// Device memory with these bits, which frees itself.
class DeviceBits {
 public:
  DeviceBits(runtime::Runtime& runtime, const Bits& bits)
      : memory_(runtime.memory()),
        array_(runtime, std::max<std::size_t>(bits.size(), 1), emulated_device(runtime)) {
    if (!bits.empty()) std::memcpy(view(memory_, array_.buffer()), bits.data(), bits.size());
  }
  std::byte* data() const { return static_cast<std::byte*>(array_.buffer().data); }
  Bits get(std::size_t begin, std::size_t size) const {
    const auto* const first = reinterpret_cast<const std::byte*>(view(memory_, array_.buffer())) + begin;
    return {first, first + size};
  }

 private:
  memory::Memory& memory_;
  DeviceArray<std::byte> array_;
};

struct GroupCase {
  GroupOperation operation;
  std::size_t part_elements;  // of each member, or of one of its parts
  memory::ElementType type;
  Reducer reducer;
  int root;
  bool is_in_place;
  unsigned seed;

  bool has_parts() const {
    return operation == GroupOperation::kReduceScatter || operation == GroupOperation::kAllToAll;
  }
  bool is_rooted() const {
    return operation == GroupOperation::kBroadcast || operation == GroupOperation::kReduce;
  }
  std::size_t part_bytes() const { return part_elements * size_of(type); }
  std::size_t in_elements(int size) const {
    return has_parts() ? part_elements * static_cast<std::size_t>(size) : part_elements;
  }
  Bits input(int rank, int size) const {
    std::mt19937_64 random(seed * 100 + static_cast<unsigned>(rank));
    Bits bits(in_elements(size) * size_of(type));
    for (std::size_t begin = 0; begin < bits.size(); begin += sizeof(std::uint64_t)) {
      const std::uint64_t number = random();
      std::memcpy(bits.data() + begin, &number, std::min(sizeof number, bits.size() - begin));
    }
    return bits;
  }
  std::string text(int rank) const {
    return base::format("operation {}, {} elements of type {}, reducer {}, root {}, in place {}, rank {}",
                        static_cast<int>(operation), part_elements, static_cast<int>(type),
                        static_cast<int>(reducer), root, is_in_place, rank);
  }
};

inline Bits part_of(const Bits& bits, int rank, std::size_t part_bytes) {
  const auto begin = bits.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank) * part_bytes);
  return {begin, begin + static_cast<std::ptrdiff_t>(part_bytes)};
}

// All inputs, combined by rank.
inline Bits combined(const GroupCase& one, int size) {
  std::vector<Bits> inputs;
  memory::DeviceReduction reduction;
  for (int rank = 0; rank < size; ++rank) inputs.push_back(one.input(rank, size));
  for (const Bits& input : inputs) reduction.sources.add(input.data());
  Bits out(inputs.front().size());
  reduction.out = out.data();
  reduction.num_elements = one.in_elements(size);
  reduction.type = one.type;
  reduction.combination = one.reducer == Reducer::kSum       ? memory::Combination::kSum
                          : one.reducer == Reducer::kProduct ? memory::Combination::kProduct
                          : one.reducer == Reducer::kMin     ? memory::Combination::kMin
                                                             : memory::Combination::kMax;
  // One member's elements are not converted.
  if (size == 1) return inputs.front();
  memory::reduce_on_cpu(reduction);
  return out;
}

// What that rank gets; empty if it gets nothing.
inline Bits expected_output(const GroupCase& one, int rank, int size) {
  Bits all;
  switch (one.operation) {
    case GroupOperation::kBroadcast:
      return one.input(one.root, size);
    case GroupOperation::kReduce:
      return rank == one.root ? combined(one, size) : Bits();
    case GroupOperation::kAllReduce:
      return combined(one, size);
    case GroupOperation::kReduceScatter:
      return part_of(combined(one, size), rank, one.part_bytes());
    default:
      for (int from = 0; from < size; ++from) {
        const bool is_gather = one.operation == GroupOperation::kAllGather;
        const Bits part = part_of(one.input(from, size), is_gather ? 0 : rank, one.part_bytes());
        all.insert(all.end(), part.begin(), part.end());
      }
      return all;
  }
}

// One that has been queued: its memory stays as long as it.
class QueuedCase {
 public:
  QueuedCase(pgas::World& world, const pgas::DeviceGroup& group, const GroupCase& one,
             memory::StreamHandle stream)
      : case_(one), rank_(group.rank()), size_(group.size()) {
    const Bits input = one.input(rank_, size_);
    const std::size_t out_bytes = one.operation == GroupOperation::kAllGather
                                      ? input.size() * static_cast<std::size_t>(size_)
                                      : input.size();
    const std::size_t own_part = static_cast<std::size_t>(rank_) * one.part_bytes();
    const bool is_in_place = one.is_in_place || one.operation == GroupOperation::kBroadcast;
    Bits out(out_bytes, std::byte{0x5a});
    if (is_in_place) {
      const std::size_t begin = one.operation == GroupOperation::kAllGather ? own_part : 0;
      std::copy(input.begin(), input.end(), out.begin() + static_cast<std::ptrdiff_t>(begin));
      out_ = std::make_unique<DeviceBits>(world.runtime(), out);
      in_data_ = out_->data() + begin;
      if (one.operation == GroupOperation::kReduceScatter && one.seed % 2 == 0) result_begin_ = own_part;
    } else {
      in_ = std::make_unique<DeviceBits>(world.runtime(), input);
      out_ = std::make_unique<DeviceBits>(world.runtime(), out);
      in_data_ = in_->data();
    }
    start(group, out_->data() + result_begin_, stream);
  }

  void check() const {
    const Bits expected = expected_output(case_, rank_, size_);
    EXPECT_TRUE(out_->get(result_begin_, expected.size()) == expected) << case_.text(rank_);
    if (in_ == nullptr) return;
    const Bits input = case_.input(rank_, size_);
    EXPECT_TRUE(in_->get(0, input.size()) == input) << "the input changed: " << case_.text(rank_);
  }

 private:
  void start(const pgas::DeviceGroup& group, void* out, memory::StreamHandle stream) const {
    const std::size_t count = case_.in_elements(size_);
    const memory::ElementType type = case_.type;
    switch (case_.operation) {
      case GroupOperation::kBroadcast:
        return group.broadcast(out, count, type, case_.root, stream);
      case GroupOperation::kReduce:
        return group.reduce(in_data_, out, count, type, case_.reducer, case_.root, stream);
      case GroupOperation::kAllReduce:
        return group.all_reduce(in_data_, out, count, type, case_.reducer, stream);
      case GroupOperation::kAllGather:
        return group.all_gather(in_data_, out, count, type, stream);
      case GroupOperation::kReduceScatter:
        return group.reduce_scatter(in_data_, out, count, type, case_.reducer, stream);
      case GroupOperation::kAllToAll:
        return group.all_to_all(in_data_, out, count, type, stream);
    }
  }

  GroupCase case_;
  int rank_;
  int size_;
  std::unique_ptr<DeviceBits> in_;  // null: in place
  std::unique_ptr<DeviceBits> out_;
  const std::byte* in_data_ = nullptr;
  std::size_t result_begin_ = 0;
};

}  // namespace weft::testing
