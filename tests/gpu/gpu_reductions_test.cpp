// Reductions on a real device, in steps and alone: their bits are those of reduce_on_cpu().
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "memory/kinds/software/software_reduction.h"
#include "tests/gpu/gpu_test.h"
#include "tests/unit/memory/places.h"

namespace weft::memory {
namespace {

using Bits = std::vector<std::uint64_t>;

struct Reduced {
  ElementType type;
  Combination combination;
  std::string text;
};

std::vector<Reduced> all_reductions() {
  std::vector<Reduced> all;
  const char* const types[] = {"int32", "int64", "float16", "bfloat16", "float32", "float64"};
  const char* const combinations[] = {"sum", "minimum", "maximum", "product"};
  for (std::uint32_t type = 0; type < 6; ++type) {
    for (std::uint32_t combination = 0; combination < 4; ++combination) {
      all.push_back({static_cast<ElementType>(type), static_cast<Combination>(combination),
                     std::string(combinations[combination]) + " of " + types[type]});
    }
  }
  return all;
}

// Both infinities, a NaN, both zeros, the smallest and the largest subnormal number, the largest number, and one.
Bits special_values(ElementType type) {
  switch (type) {
    case ElementType::kInt32:
      return {0, 1, 0x7fffffff, 0x80000000, 0xffffffff};
    case ElementType::kInt64:
      return {0, 1, 0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff};
    case ElementType::kFloat16:
      return {0x7c00, 0xfc00, 0x7e01, 0, 0x8000, 1, 0x83ff, 0x7bff, 0x3c00};
    case ElementType::kBfloat16:
      return {0x7f80, 0xff80, 0x7fc1, 0, 0x8000, 1, 0x807f, 0x7f7f, 0x3f80};
    case ElementType::kFloat32:
      return {0x7f800000, 0xff800000, 0x7fc00001, 0, 0x80000000, 1, 0x807fffff, 0x7f7fffff, 0x3f800000};
    default:
      return {0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000001, 0, 0x8000000000000000, 1,
              0x800fffffffffffff, 0x7fefffffffffffff, 0x3ff0000000000000};
  }
}

bool is_nan(ElementType type, std::uint64_t bits) {
  switch (type) {
    case ElementType::kFloat16:
      return (bits & 0x7fff) > 0x7c00;
    case ElementType::kBfloat16:
      return (bits & 0x7fff) > 0x7f80;
    case ElementType::kFloat32:
      return (bits & 0x7fffffff) > 0x7f800000;
    case ElementType::kFloat64:
      return (bits & 0x7fffffffffffffff) > 0x7ff0000000000000;
    default:
      return false;
  }
}

class GpuReductionsTest : public GpuTest {
 protected:
  static constexpr std::size_t kMostSources = kMaxStepPeers;
  static constexpr std::size_t kMostElements = 1000;

  // A quarter of them special values, a quarter of them near one, so that results are ordinary numbers.
  std::vector<std::byte> random_elements(ElementType type, std::size_t count) {
    const Bits special = special_values(type);
    const std::size_t size = size_of(type);
    std::vector<std::byte> bytes(count * size);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t bits = random_();
      const std::uint64_t choice = random_() % 4;
      if (choice == 0) bits = special[random_() % special.size()];
      if (choice == 1) bits = special.back() + bits % 1024;
      std::memcpy(bytes.data() + i * size, &bits, size);
    }
    return bytes;
  }

  // Element i of source s is at (s * stride + i) of the sources' memory. Each is in host memory too.
  struct Sources {
    ElementType type;
    std::size_t stride;
    std::vector<std::byte> bytes;
    Buffer on_device;
  };
  Sources make_sources(ElementType type, std::size_t num_sources, std::size_t stride) {
    Sources sources{type, stride, random_elements(type, num_sources * stride), {}};
    sources.on_device = make(sources.bytes.size(), kGpu0);
    move(sources.on_device, ConstBuffer(sources.bytes.data(), sources.bytes.size()));
    return sources;
  }
  static DeviceReduction reduction_of(const Reduced& reduced, const Sources& sources, const std::byte* base,
                                      std::size_t num_sources, std::size_t first, std::size_t count) {
    DeviceReduction reduction;
    for (std::size_t s = 0; s < num_sources; ++s)
      reduction.sources.add(base + (s * sources.stride + first) * size_of(sources.type));
    reduction.num_elements = count;
    reduction.type = reduced.type;
    reduction.combination = reduced.combination;
    return reduction;
  }
  // The same on the CPU.
  static std::vector<std::byte> expected_of(const Reduced& reduced, const Sources& sources,
                                            std::size_t num_sources, std::size_t first, std::size_t count) {
    std::vector<std::byte> out(count * size_of(sources.type));
    DeviceReduction reduction =
        reduction_of(reduced, sources, sources.bytes.data(), num_sources, first, count);
    reduction.out = out.data();
    reduce_on_cpu(reduction);
    return out;
  }
  void queue(const DeviceReduction& reduction, bool is_in_step) {
    DeviceStep step;
    step.reduction = reduction;
    const base::Status queued = is_in_step ? cuda().queue_step(step, kGpu0, stream_)
                                           : cuda().queue_reduction(reduction, kGpu0, stream_);
    ASSERT_TRUE(queued.ok()) << queued.to_string();
  }
  std::vector<std::byte> result_of(const Buffer& out) {
    Outcome done;
    EXPECT_TRUE(memory.when_queued_done(kGpu0, stream_, &done).is_pending());
    finish(done);
    std::vector<std::byte> result(out.size_bytes);
    move(host_buffer(result), out);
    return result;
  }
  static void expect_equal(const Reduced& reduced, const std::byte* got, const std::byte* wanted,
                           std::size_t count, const std::string& what) {
    const std::size_t size = size_of(reduced.type);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t left = 0;
      std::uint64_t right = 0;
      std::memcpy(&left, got + i * size, size);
      std::memcpy(&right, wanted + i * size, size);
      if (left == right || (is_nan(reduced.type, left) && is_nan(reduced.type, right))) continue;
      FAIL() << reduced.text << ", " << what << ": element " << i << " of " << count << " is " << std::hex
             << left << " and not " << right;
    }
  }

  // Reductions of 1 to kMostElements elements, each into a row of its own, whose other bytes stay.
  void expect_all_sizes(const Reduced& reduced, std::size_t shift, bool is_in_step) {
    constexpr std::size_t kRow = kMostElements + 24;
    constexpr std::size_t kSources = 3;
    const std::size_t size = size_of(reduced.type);
    const Sources sources = make_sources(reduced.type, kSources, kRow);
    const std::vector<std::byte> expected = expected_of(reduced, sources, kSources, shift, kMostElements);
    std::vector<std::byte> untouched(kMostElements * kRow * size, std::byte{0xa5});
    const Buffer out = make(untouched.size(), kGpu0);
    move(out, host_buffer(untouched));
    for (std::size_t count = 1; count <= kMostElements; ++count) {
      DeviceReduction reduction = reduction_of(
          reduced, sources, static_cast<const std::byte*>(sources.on_device.data), kSources, shift, count);
      reduction.out = static_cast<std::byte*>(out.data) + ((count - 1) * kRow + shift) * size;
      queue(reduction, is_in_step);
    }
    const std::vector<std::byte> result = result_of(out);
    for (std::size_t count = 1; count <= kMostElements; ++count) {
      const std::byte* const row = result.data() + (count - 1) * kRow * size;
      expect_equal(reduced, row + shift * size, expected.data(), count,
                   "shifted by " + std::to_string(shift));
      const auto rest = static_cast<std::ptrdiff_t>((shift + count) * size);
      const bool is_untouched =
          std::all_of(row, row + shift * size, [](std::byte byte) { return byte == std::byte{0xa5}; }) &&
          std::all_of(row + rest, row + kRow * size, [](std::byte byte) { return byte == std::byte{0xa5}; });
      ASSERT_TRUE(is_untouched) << reduced.text << " of " << count;
    }
    release(sources.on_device);
    release(out);
  }
  // In place: the last source is `out`, too.
  void expect_one(const Reduced& reduced, std::size_t num_sources, std::size_t count, std::size_t shift,
                  bool is_in_step) {
    const Sources sources = make_sources(reduced.type, num_sources, (count + 15) / 8 * 8);
    const auto expected = expected_of(reduced, sources, num_sources, shift, count);
    const auto* const base = static_cast<const std::byte*>(sources.on_device.data);
    DeviceReduction reduction = reduction_of(reduced, sources, base, num_sources, shift, count);
    const std::size_t at = ((num_sources - 1) * sources.stride + shift) * size_of(reduced.type);
    reduction.out = static_cast<std::byte*>(sources.on_device.data) + at;
    queue(reduction, is_in_step);
    expect_equal(reduced, result_of(sources.on_device).data() + at, expected.data(), count,
                 std::to_string(num_sources) + " sources");
    release(sources.on_device);
  }
  void release(const Buffer& buffer) {
    std::erase_if(owned, [&](const Buffer& other) { return other.data == buffer.data; });
    EXPECT_TRUE(memory.deallocate(buffer).ok());
  }

  std::mt19937_64 random_{20261129};  // the seed is constant: the same values on every machine
  StreamHandle stream_ = nullptr;     // the kind's own
};

TEST_F(GpuReductionsTest, AllSizes) {
  for (const Reduced& reduced : all_reductions()) {
    for (const bool is_in_step : {true, false})
      for (const std::size_t shift : {std::size_t{0}, std::size_t{1}})
        expect_all_sizes(reduced, shift, is_in_step);
  }
}

TEST_F(GpuReductionsTest, AnyNumberOfSources) {
  for (const Reduced& reduced : all_reductions()) {
    for (std::size_t num_sources = 1; num_sources <= kMostSources; ++num_sources) {
      for (const bool is_in_step : {true, false})
        expect_one(reduced, num_sources, 77, num_sources % 2, is_in_step);
    }
  }
}

TEST_F(GpuReductionsTest, ManyElements) {
  for (const Reduced& reduced : all_reductions()) {
    for (const bool is_in_step : {true, false})
      for (const std::size_t shift : {std::size_t{0}, std::size_t{1}})
        expect_one(reduced, 2, (std::size_t{1} << 20) + 3, shift, is_in_step);
  }
}

TEST_F(GpuReductionsTest, OfMemoryOfTwoGpus) {
  if (cuda().num_devices() < 2) GTEST_SKIP() << "needs two GPUs, there is one";
  if (!cuda().can_access_peer(0, 1)) GTEST_SKIP() << "no peer access";
  constexpr std::size_t kCount = 100003;
  const Buffer own = make(kCount * 4, kGpu0);
  const Buffer far = make(kCount * 4, kGpu1);
  std::vector<std::int32_t> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) values[i] = static_cast<std::int32_t>(i);
  move(own, host_buffer(values));
  move(far, host_buffer(values));
  DeviceReduction sum;
  sum.sources.add(static_cast<const std::byte*>(own.data));
  sum.sources.add(static_cast<const std::byte*>(far.data));
  sum.out = static_cast<std::byte*>(own.data);
  sum.num_elements = kCount;
  sum.type = ElementType::kInt32;
  queue(sum, false);
  const std::vector<std::byte> result = result_of(own);
  for (std::int32_t& value : values) value *= 2;
  EXPECT_EQ(std::memcmp(result.data(), values.data(), result.size()), 0);
}

}  // namespace
}  // namespace weft::memory
