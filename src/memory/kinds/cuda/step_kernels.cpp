#include "memory/kinds/cuda/step_kernels.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <string_view>
#include <utility>

namespace weft::memory {

namespace {

constexpr std::uint64_t kMaxStepThreads = 1024;
constexpr std::uint64_t kWarpThreads = 32;
// More threads than a device runs at a time: each then does several vectors.
constexpr std::uint64_t kMaxReductionBlocks = 1024;
// The loads of so many sources are in flight before the first one is combined.
constexpr std::size_t kSourcesAtOnce = 8;

// The parameters of a kernel may have 4 KiB.
static_assert(sizeof(DeviceStep) <= 2048);

using Values = std::initializer_list<std::pair<std::string_view, std::string>>;

// Replaces each $name of the text by its value.
std::string filled(std::string_view text, Values values) {
  std::string result;
  for (;;) {
    const std::size_t dollar = text.find('$');
    result += text.substr(0, dollar);
    if (dollar == std::string_view::npos) return result;
    const std::size_t end =
        std::min(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", dollar + 1), text.size());
    const std::string_view name = text.substr(dollar + 1, end - dollar - 1);
    const auto* const found = std::ranges::find(values, name, &Values::value_type::first);
    assert(found != values.end());
    result += found->second;
    text.remove_prefix(end);
  }
}

// --- Steps

constexpr std::string_view kHeadText = R"(
.version 7.0
.target sm_70
.address_size 64
)";

constexpr std::string_view kStepBeginText = R"(
.visible .entry $kernel(.param .align 8 .b8 step[$step_bytes], .param .u64 abort_word, .param .u64 vectors)
.maxntid $threads
{
  .reg .pred p, has_count;
  .reg .u32 thread, threads, number;
  .reg .u64 parameters, count, index, stride;
  mov.u64 parameters, step;
  mov.u32 thread, %tid.x;
  mov.u32 threads, %ntid.x;
  cvt.u64.u32 index, thread;
  cvt.u64.u32 stride, threads;
  mov.u32 number, 0;
  ld.param.u64 count, [step+$count];
  setp.ne.u64 has_count, count, 0;
  @has_count ld.global.u32 number, [count];
)";

// An acquire of one thread and the barrier make all that the signal's stream has written visible to the whole block.
constexpr std::string_view kWaitText = R"(
  {  // Thread i waits for word i.
  .reg .pred p, is_aborted;
  .reg .u32 size, value, seen, polls, turn;
  .reg .u64 item, word;
  ld.param.u32 size, [step+$size];
  setp.eq.u32 p, size, 0;
  @p bra over;
  setp.ne.u32 is_aborted, size, size;
  setp.ge.u32 p, thread, size;
  @p bra reached;
  mul.wide.u32 item, thread, $item_bytes;
  add.u64 item, item, parameters;
  ld.param.u64 word, [item+$word];
  ld.param.u32 value, [item+$offset];
  add.u32 value, value, number;
  mov.u32 polls, 0;
poll:
  ld.acquire.sys.global.u32 seen, [word];
  sub.u32 seen, seen, value;
  setp.ge.s32 p, seen, 0;
  @p bra reached;
  add.u32 polls, polls, 1;  // the abort word is looked at first after 64 polls, then after each 1024
  and.b32 turn, polls, 1023;
  setp.ne.u32 p, turn, 64;
  @p bra poll;
  ld.param.u64 item, [abort_word];
  ld.relaxed.sys.global.u32 seen, [item];
  setp.eq.u32 p, seen, 0;
  @p bra poll;
  setp.eq.u32 is_aborted, size, size;
reached:
  bar.red.or.pred is_aborted, 0, is_aborted;
  @is_aborted ret;
over:
  }
)";

// `width` is the widest vector for which both sides are aligned alike. The first bytes up to such an address and the last ones are
// fewer than 16, one for a thread.
constexpr std::string_view kCopyBeginText = R"(
  {
  .reg .pred p;
  .reg .u16 byte;
  .reg .u64 to, from, left, width, mask, head, at, limit, advance, wide_advance, reach, load, store;
  ld.param.u64 left, [step+$size_bytes];
  setp.eq.u64 p, left, 0;
  @p bra over;
  ld.param.u64 to, [step+$to];
  ld.param.u64 from, [step+$from];
  xor.b64 width, to, from;
  or.b64 width, width, 16;
  neg.s64 mask, width;
  and.b64 width, width, mask;
  sub.u64 mask, width, 1;
  neg.s64 head, to;
  and.b64 head, head, mask;
  min.u64 head, head, left;
  setp.ge.u64 p, index, head;
  @p bra aligned;
  add.u64 load, from, index;
  add.u64 store, to, index;
  ld.global.u8 byte, [load];
  st.global.u8 [store], byte;
aligned:
  add.u64 to, to, head;
  add.u64 from, from, head;
  sub.u64 left, left, head;
  and.b64 limit, left, mask;
  sub.u64 limit, left, limit;
  mul.lo.u64 at, index, width;
  mul.lo.u64 advance, stride, width;
  mul.lo.u64 wide_advance, advance, 4;
)";

constexpr std::string_view kCopyLoopText = R"(
  setp.ne.u64 p, width, $width;
  @p bra not_$width;
  {
  .reg .$type a<4>, b<4>, c<4>, d<4>;
wide:
  mad.lo.u64 reach, advance, 3, at;
  setp.ge.u64 p, reach, limit;
  @p bra narrow;
  add.u64 load, from, at;
  ld.global$vector.$type $a, [load];
  add.u64 load, load, advance;
  ld.global$vector.$type $b, [load];
  add.u64 load, load, advance;
  ld.global$vector.$type $c, [load];
  add.u64 load, load, advance;
  ld.global$vector.$type $d, [load];
  add.u64 store, to, at;
  st.global$vector.$type [store], $a;
  add.u64 store, store, advance;
  st.global$vector.$type [store], $b;
  add.u64 store, store, advance;
  st.global$vector.$type [store], $c;
  add.u64 store, store, advance;
  st.global$vector.$type [store], $d;
  add.u64 at, at, wide_advance;
  bra wide;
narrow:
  setp.ge.u64 p, at, limit;
  @p bra rest;
  add.u64 load, from, at;
  add.u64 store, to, at;
  ld.global$vector.$type $a, [load];
  st.global$vector.$type [store], $a;
  add.u64 at, at, advance;
  bra narrow;
  }
not_$width:
)";

constexpr std::string_view kCopyEndText = R"(
rest:
  add.u64 at, limit, index;
  setp.ge.u64 p, at, left;
  @p bra over;
  add.u64 load, from, at;
  add.u64 store, to, at;
  ld.global.u8 byte, [load];
  st.global.u8 [store], byte;
over:
  }
)";

// The barrier and the release of one thread order the writes of the whole block, and of earlier work on the stream, before the word.
constexpr std::string_view kSignalText = R"(
  bar.sync 0;
  {  // Thread i writes word i.
  .reg .u32 size, value;
  .reg .u64 item, word;
  ld.param.u32 size, [step+$size];
  setp.ge.u32 p, thread, size;
  @p bra over;
  mul.wide.u32 item, thread, $item_bytes;
  add.u64 item, item, parameters;
  ld.param.u64 word, [item+$word];
  ld.param.u32 value, [item+$offset];
  add.u32 value, value, number;
  st.release.sys.global.u32 [word], value;
over:
  }
)";

constexpr std::string_view kStepEndText = R"(
  setp.eq.and.u32 p, thread, 0, has_count;
  add.u32 number, number, 1;
  @p st.global.u32 [count], number;
  ret;
}
)";

std::string word_list_text(std::string_view text, std::size_t list) {
  return filled(text, {{"size", std::to_string(list + offsetof(StepList<StepWord>, size))},
                       {"item_bytes", std::to_string(sizeof(StepWord))},
                       {"word", std::to_string(list + offsetof(StepWord, word))},
                       {"offset", std::to_string(list + offsetof(StepWord, offset))}});
}

std::string copy_text() {
  std::string text = filled(kCopyBeginText, {{"size_bytes", std::to_string(offsetof(DeviceStep, size_bytes))},
                                             {"to", std::to_string(offsetof(DeviceStep, to))},
                                             {"from", std::to_string(offsetof(DeviceStep, from))}});
  struct Width {
    const char* bytes;
    const char* vector;
    const char* type;
  };
  for (const Width& width :
       {Width{"16", ".v4", "u32"}, {"8", "", "u64"}, {"4", "", "u32"}, {"2", "", "u16"}, {"1", "", "u8"}}) {
    const auto registers = [&](const std::string& name) {
      return filled(*width.vector == 0 ? "$name0" : "{$name0, $name1, $name2, $name3}", {{"name", name}});
    };
    text += filled(kCopyLoopText, {{"width", width.bytes},
                                   {"vector", width.vector},
                                   {"type", width.type},
                                   {"a", registers("a")},
                                   {"b", registers("b")},
                                   {"c", registers("c")},
                                   {"d", registers("d")}});
  }
  return text += kCopyEndText;
}

// --- Reductions

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
constexpr std::array<std::string_view, kNumCombinations> kIntegerTexts{
    "add.$value $a, $a, x;", "min.$value $a, $a, x;", "max.$value $a, $a, x;", "mul.lo.$value $a, $a, x;"};
constexpr std::array<std::string_view, kNumCombinations> kFloatTexts{
    "add.rn.$value $a, $a, x;",
    "setp.num.$value p, $a, $a; setp.ltu.and.$value p, x, $a, p; selp.$value $a, x, $a, p;",
    "setp.num.$value p, $a, $a; setp.gtu.and.$value p, x, $a, p; selp.$value $a, x, $a, p;",
    "mul.rn.$value $a, $a, x;"};

constexpr std::string_view kReductionBeginText = R"(
.visible .entry $kernel(.param .align 8 .b8 reduction[$reduction_bytes], .param .u64 vectors)
.maxntid $threads
{
  .reg .u32 thread, threads, block, blocks;
  .reg .u64 index, stride;
  mov.u32 thread, %tid.x;
  mov.u32 threads, %ntid.x;
  mov.u32 block, %ctaid.x;
  mov.u32 blocks, %nctaid.x;
  cvt.u64.u32 index, thread;
  mul.wide.u32 stride, block, threads;
  add.u64 index, index, stride;
  mul.wide.u32 stride, blocks, threads;
)";

constexpr std::string_view kReductionText = R"(
  {  // First whole vectors, then the other elements.
  .reg .pred p;
  .reg .b16 zero;
  .reg .u32 bits, odd, num_sources;
  .reg .u64 at, limit, advance, address;
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
$body
store:
$narrow
  ld.param.u64 address, [$out];
  add.u64 address, address, at;
  st.global$vector.$raw [address], $result;
  add.u64 at, at, advance;
  bra next;
over:
  }
)";

constexpr std::string_view kLoadSourceText = R"(
  ld.param.u64 address, [$source];
  add.u64 address, address, at;
  setp.gt.u32 p, num_sources, $number;
  @p ld.global$vector.$raw $registers, [address];)";

constexpr std::string_view kLastSourceText = R"(
  setp.le.u32 p, num_sources, $number;
  @p bra store;)";

// Writes the reduction of one type and one combination, whose parameter is at `parameter`+`offset`.
class ReductionText {
 public:
  ReductionText(std::size_t module, std::string parameter, std::size_t offset)
      : type_(static_cast<ElementType>((module - 1) / kNumCombinations)),
        combination_((module - 1) % kNumCombinations),
        parameter_(std::move(parameter)),
        offset_(offset) {}

  static std::size_t vector_size(ElementType type) { return size_of(type) == 8 ? 2 : 4; }

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
                                       {"vector", vector_of(size)},
                                       {"result", registers(0, size)}});
  }

  std::string loads(std::size_t first, std::size_t size) const {
    std::string text;
    for (std::size_t slot = 0; slot < kSourcesAtOnce; ++slot) {
      const std::size_t number = first + slot;
      text += filled(kLoadSourceText,
                     {{"source", at(offsetof(DeviceReduction, sources) + number * sizeof(std::byte*))},
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

std::uint64_t units_of(const DeviceReduction& reduction) {
  const std::uint64_t vectors = num_vectors(reduction);
  return vectors == 0 ? reduction.num_elements : vectors;
}

}  // namespace

std::string step_module_text(std::size_t module) {
  std::string text(kHeadText);
  text += filled(kStepBeginText, {{"kernel", kStepKernel},
                                  {"step_bytes", std::to_string(sizeof(DeviceStep))},
                                  {"threads", std::to_string(kMaxStepThreads)},
                                  {"count", std::to_string(offsetof(DeviceStep, count))}});
  text += word_list_text(kWaitText, offsetof(DeviceStep, before));
  text += copy_text();
  text += word_list_text(kSignalText, offsetof(DeviceStep, signals));
  text += word_list_text(kWaitText, offsetof(DeviceStep, after));
  if (module > 0) text += ReductionText(module, "step", offsetof(DeviceStep, reduction)).text();
  text += kStepEndText;
  if (module == 0) return text;
  text += filled(kReductionBeginText, {{"kernel", kReductionKernel},
                                       {"reduction_bytes", std::to_string(sizeof(DeviceReduction))},
                                       {"threads", std::to_string(kReductionThreads)}});
  text += ReductionText(module, "reduction", 0).text();
  return text += "  ret;\n}\n";
}

std::uint64_t num_vectors(const DeviceReduction& reduction) {
  const std::size_t size = ReductionText::vector_size(reduction.type);
  auto addresses = reinterpret_cast<std::uintptr_t>(reduction.out);
  for (const std::byte* const source : reduction.sources)
    addresses |= reinterpret_cast<std::uintptr_t>(source);
  return addresses % (size * size_of(reduction.type)) == 0 ? reduction.num_elements / size : 0;
}

unsigned step_threads(const DeviceStep& step) {
  std::uint64_t wanted = step.size_bytes / 16;
  if (!is_empty(step.reduction)) wanted = std::max(wanted, units_of(step.reduction));
  wanted = std::clamp(wanted, kWarpThreads, kMaxStepThreads);
  return static_cast<unsigned>((wanted + kWarpThreads - 1) / kWarpThreads * kWarpThreads);
}

unsigned reduction_blocks(const DeviceReduction& reduction) {
  const std::uint64_t wanted = (units_of(reduction) + kReductionThreads - 1) / kReductionThreads;
  return static_cast<unsigned>(std::clamp(wanted, std::uint64_t{1}, kMaxReductionBlocks));
}

}  // namespace weft::memory
