#include "memory/kinds/cuda/reduction_kernels.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "memory/kinds/cuda/kernel_text.h"

namespace weft::memory {

namespace {

// The loads of so many sources are in flight before the first one is combined.
constexpr std::size_t kSourcesAtOnce = 8;
// More threads than a device runs at a time: each then does several vectors.
constexpr std::uint64_t kMaxReductionBlocks = 1024;

// 16 bytes at most.
constexpr std::size_t vector_size(ElementType type) { return size_of(type) == 8 ? 2 : 4; }

// An element is loaded as `raw` and combined as `value`. `widen` makes x of $r, and `narrow` makes $r of $a.
struct ElementText {
  std::string_view raw;
  std::string_view value;
  std::string_view widen;
  std::string_view narrow;
  bool is_integer;
};

constexpr std::string_view kToBfloat16Text = R"(
  mov.b32 bits, $a;
  bfe.u32 odd, bits, 16, 1;
  add.u32 bits, bits, odd;
  add.u32 bits, bits, 0x7fff;  // to the nearest, and to the even one of two
  shr.u32 bits, bits, 16;
  setp.nan.f32 p, $a, $a;
  selp.b32 bits, 0x7fff, bits, p;
  cvt.u16.u32 $r, bits;
)";

constexpr std::array<ElementText, 6> kElements{
    {{"s32", "s32", "mov.s32 x, $r;", "mov.s32 $r, $a;", true},
     {"s64", "s64", "mov.s64 x, $r;", "mov.s64 $r, $a;", true},
     {"b16", "f32", "cvt.f32.f16 x, $r;", "cvt.rn.f16.f32 $r, $a;", false},
     {"b16", "f32", "mov.b32 x, {zero, $r};", kToBfloat16Text, false},
     {"f32", "f32", "mov.f32 x, $r;", "mov.f32 $r, $a;", false},
     {"f64", "f64", "mov.f64 x, $r;", "mov.f64 $r, $a;", false}}};

// Combines x into $a. The minimum of -0 and 0 is the first of them, and a NaN stays or comes.
constexpr std::array<std::string_view, 4> kIntegerTexts{"add.$value $a, $a, x;", "min.$value $a, $a, x;",
                                                        "max.$value $a, $a, x;", "mul.lo.$value $a, $a, x;"};
constexpr std::array<std::string_view, 4> kFloatTexts{
    "add.rn.$value $a, $a, x;",
    "setp.num.$value p, $a, $a; setp.ltu.and.$value p, x, $a, p; selp.$value $a, x, $a, p;",
    "setp.num.$value p, $a, $a; setp.gtu.and.$value p, x, $a, p; selp.$value $a, x, $a, p;",
    "mul.rn.$value $a, $a, x;"};

constexpr std::string_view kReductionBeginText = R"(
.visible .entry $kernel(.param .align 8 .b8 reduction[$reduction_bytes], .param .u64 vectors)
.maxntid $threads
{
  .reg .u32 thread, threads, block, blocks;
  .reg .u64 index, stride, shift;
  mov.u32 thread, %tid.x;
  mov.u32 threads, %ntid.x;
  mov.u32 block, %ctaid.x;
  mov.u32 blocks, %nctaid.x;
  cvt.u64.u32 index, thread;
  mul.wide.u32 stride, block, threads;
  add.u64 index, index, stride;
  mul.wide.u32 stride, blocks, threads;
  mov.u64 shift, 0;
)";

constexpr std::string_view kReductionText = R"(
  {  // First whole vectors, then the other elements.
  .reg .pred p;
  .reg .b16 zero;
  .reg .u32 bits, odd, num_sources;
  .reg .u64 at, from, limit, advance, address;
  mov.b16 zero, 0;
  ld.param.u32 num_sources, [$num_sources];
  ld.param.u64 limit, [vectors];
  mul.lo.u64 at, index, $vector_bytes;
  mul.lo.u64 limit, limit, $vector_bytes;
  mul.lo.u64 advance, stride, $vector_bytes;
$vectors
  mad.lo.u64 at, index, $element_bytes, limit;
  ld.param.u64 limit, [$num_elements];
  mul.lo.u64 limit, limit, $element_bytes;
  mul.lo.u64 advance, stride, $element_bytes;
$elements
  }
)";

constexpr std::string_view kReductionLoopText = R"(
  {
  .reg .$raw r<$registers>;
  .reg .$value x, a<$size>;
next:
  setp.ge.u64 p, at, limit;
  @p bra over;
  add.u64 from, at, shift;
$body
store:
$narrow
  ld.param.u64 address, [$out];
  add.u64 address, address, at;
  st.global$vector.$raw [address], $result;
  ld.param.u64 address, [$also];
  setp.ne.u64 p, address, 0;
  add.u64 address, address, at;
  @p st.global$vector.$raw [address], $result;
  add.u64 at, at, advance;
  bra next;
over:
  }
)";

constexpr std::string_view kLoadSourceText = R"(
  ld.param.u64 address, [$source];
  add.u64 address, address, from;
  setp.gt.u32 p, num_sources, $number;
  @p ld.global$vector.$raw $registers, [address];)";

constexpr std::string_view kLastSourceText = R"(
  setp.le.u32 p, num_sources, $number;
  @p bra store;)";

// Writes the reduction of one type and one combination, whose parameter is at `parameter`+`offset`.
class ReductionText {
 public:
  ReductionText(ElementType type, Combination combination, std::string parameter, std::size_t offset)
      : type_(type),
        combination_(static_cast<std::size_t>(combination)),
        parameter_(std::move(parameter)),
        offset_(offset) {}

  std::string text() const {
    const std::size_t size = vector_size(type_);
    return filled(kReductionText,
                  {{"num_sources", at(offsetof(DeviceReduction, sources) + offsetof(Sources, size))},
                   {"num_elements", at(offsetof(DeviceReduction, num_elements))},
                   {"vector_bytes", std::to_string(size * size_of(type_))},
                   {"element_bytes", std::to_string(size_of(type_))},
                   {"vectors", loop(size)},
                   {"elements", loop(1)}});
  }

 private:
  using Sources = StepList<const std::byte*>;

  std::string at(std::size_t offset) const { return parameter_ + "+" + std::to_string(offset_ + offset); }
  const ElementText& element() const { return kElements[static_cast<std::size_t>(type_)]; }

  static std::string vector_of(std::size_t size) { return size == 1 ? "" : ".v" + std::to_string(size); }
  static std::string name(const char* letter, std::size_t number) { return letter + std::to_string(number); }
  // The registers of a vector of the source that is loaded as the slot-th.
  static std::string registers(std::size_t slot, std::size_t size) {
    std::string text = name("r", slot * size);
    for (std::size_t i = 1; i < size; ++i) text += ", " + name("r", slot * size + i);
    return size == 1 ? text : "{" + text + "}";
  }

  std::string loop(std::size_t size) const {
    std::string body;
    for (std::size_t source = 0; source < kMaxStepPeers; ++source) {
      if (source > 0) body += filled(kLastSourceText, {{"number", std::to_string(source)}});
      if (source % kSourcesAtOnce == 0) body += loads(source, size);
      body += combine(source, size);
    }
    std::string narrow;
    for (std::size_t i = 0; i < size; ++i)
      narrow += filled(element().narrow, {{"r", name("r", i)}, {"a", name("a", i)}}) + "\n";
    return filled(kReductionLoopText, {{"raw", std::string(element().raw)},
                                       {"value", std::string(element().value)},
                                       {"registers", std::to_string(kSourcesAtOnce * size)},
                                       {"size", std::to_string(size)},
                                       {"body", body},
                                       {"narrow", narrow},
                                       {"out", at(offsetof(DeviceReduction, out))},
                                       {"also", at(offsetof(DeviceReduction, also))},
                                       {"vector", vector_of(size)},
                                       {"result", registers(0, size)}});
  }

  std::string loads(std::size_t first, std::size_t size) const {
    std::string text;
    for (std::size_t slot = 0; slot < kSourcesAtOnce; ++slot) {
      const std::size_t number = first + slot;
      text += filled(kLoadSourceText, {{"source", at(offsetof(DeviceReduction, sources) +
                                                     offsetof(Sources, items) + number * sizeof(std::byte*))},
                                       {"number", std::to_string(number)},
                                       {"vector", vector_of(size)},
                                       {"raw", std::string(element().raw)},
                                       {"registers", registers(slot, size)}});
    }
    return text;
  }

  std::string combine(std::size_t source, std::size_t size) const {
    const std::string_view combination =
        element().is_integer ? kIntegerTexts[combination_] : kFloatTexts[combination_];
    const std::string value(element().value);
    std::string text;
    for (std::size_t i = 0; i < size; ++i) {
      const std::string raw = name("r", source % kSourcesAtOnce * size + i);
      text +=
          "\n  " + filled(element().widen, {{"r", raw}}) + " " +
          filled(source == 0 ? "mov.$value $a, x;" : combination, {{"value", value}, {"a", name("a", i)}});
    }
    return text;
  }

  ElementType type_;
  std::size_t combination_;
  std::string parameter_;
  std::size_t offset_;
};

}  // namespace

std::string reduction_text(ElementType type, Combination combination, const std::string& parameter,
                           std::size_t offset) {
  return ReductionText(type, combination, parameter, offset).text();
}

std::string reduction_kernel_text(ElementType type, Combination combination) {
  return filled(kReductionBeginText, {{"kernel", kReductionKernel},
                                      {"reduction_bytes", std::to_string(sizeof(DeviceReduction))},
                                      {"threads", std::to_string(kReductionThreads)}}) +
         reduction_text(type, combination, "reduction", 0) + "  ret;\n}\n";
}

std::uint64_t num_vectors(const DeviceReduction& reduction, std::size_t place_bytes) {
  const std::size_t size = vector_size(reduction.type);
  std::uintptr_t addresses = reinterpret_cast<std::uintptr_t>(reduction.out) |
                             reinterpret_cast<std::uintptr_t>(reduction.also) | place_bytes;
  for (const std::byte* const source : reduction.sources)
    addresses |= reinterpret_cast<std::uintptr_t>(source);
  return addresses % (size * size_of(reduction.type)) == 0 ? reduction.num_elements / size : 0;
}

std::uint64_t reduction_units(const DeviceReduction& reduction, std::uint64_t vectors) {
  return vectors == 0 ? reduction.num_elements : vectors;
}

unsigned reduction_blocks(const DeviceReduction& reduction) {
  const std::uint64_t units = reduction_units(reduction, num_vectors(reduction));
  const std::uint64_t wanted = (units + kReductionThreads - 1) / kReductionThreads;
  return static_cast<unsigned>(std::clamp(wanted, std::uint64_t{1}, kMaxReductionBlocks));
}

}  // namespace weft::memory
