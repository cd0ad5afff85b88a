#include "memory/kinds/cuda/step_kernels.h"

#include <string_view>

#include "memory/kinds/cuda/copy_text.h"
#include "memory/kinds/cuda/kernel_text.h"
#include "memory/kinds/cuda/message_kernel.h"

namespace weft::memory {

namespace {

// The parameters of a kernel may have 4 KiB.
static_assert(sizeof(DeviceStep) <= 2048);

constexpr std::string_view kHeadText = R"(
.version 7.0
.target sm_70
.address_size 64
)";

constexpr std::string_view kKernelBeginText = R"(
.visible .entry $kernel(.param .align 8 .b8 step[$step_bytes], .param .u64 report, .param .u64 $more)
.maxntid $threads
{)";

// All steps of a launch are done by one block of threads, one after the other; the text of each is a scope of its own. The barrier makes
// what the step before has done visible.
constexpr std::string_view kNextStepText = R"(
  {
  .reg .pred p;
  .reg .u64 number;
  ld.param.u64 number, [num_steps];
  setp.le.u64 p, number, $step;
  @p ret;
  bar.sync 0;
  }
)";

constexpr std::string_view kStepBeginText = R"(
  {
  .reg .pred p, has_count;
  .reg .u32 thread, threads, number, rings, bits;
  .reg .u32 before_offset, signals_offset, after_offset;
  .reg .u64 parameters, count, index, stride, place, shift, to, from, before_word, signals_word, after_word;
  mov.u64 parameters, step;
  add.u64 parameters, parameters, $base;
  mov.u32 thread, %tid.x;
  mov.u32 threads, %ntid.x;
  cvt.u64.u32 index, thread;
  cvt.u64.u32 stride, threads;
  mov.u32 number, 0;
  ld.param.u64 count, [parameters+$count];
  setp.ne.u64 has_count, count, 0;
  @has_count ld.global.u32 number, [count];
)";

constexpr std::string_view kWordText = R"(
  {  // Thread i has word i; the address is 0 if there is none.
  .reg .u32 size;
  .reg .u64 item;
  mov.u64 $word, 0;
  ld.param.u32 size, [parameters+$size];
  setp.ge.u32 p, thread, size;
  @p bra over;
  mul.wide.u32 item, thread, $item_bytes;
  add.u64 item, item, parameters;
  ld.param.u64 $word, [item+$list_word];
  ld.param.u32 $offset, [item+$list_offset];
over:
  }
)";

constexpr std::string_view kPlaceText = R"(
  ld.param.u32 rings, [parameters+$rings];
  ld.param.u32 bits, [parameters+$num_places];
  ld.param.u64 place, [parameters+$place_bytes];
  sub.u32 bits, bits, 1;
  and.b32 bits, bits, number;
  cvt.u64.u32 shift, bits;
  mul.lo.u64 place, place, shift;
)";

// How far the place of this step is from the address of place 0.
constexpr std::string_view kShiftText = R"(
  and.b32 bits, rings, $ring;
  setp.ne.u32 p, bits, 0;
  selp.b64 shift, place, 0, p;)";

// An acquire of one thread and the barrier make all that the signal's stream has written visible to the whole block.
constexpr std::string_view kWaitText = R"(
  {  // Thread i waits for word i.
  .reg .pred p, is_aborted;
  .reg .u32 size, value, seen, polls, turn;
  .reg .u64 abort_word;
  ld.param.u32 size, [parameters+$size];
  setp.eq.u32 p, size, 0;
  @p bra over;
  setp.ne.u32 is_aborted, size, size;
  setp.eq.u64 p, $word, 0;
  @p bra reached;
  add.u32 value, $offset, number;
  mov.u32 polls, 0;
poll:
  ld.acquire.sys.global.u32 seen, [$word];
  sub.u32 seen, seen, value;
  setp.ge.s32 p, seen, 0;
  @p bra reached;
  add.u32 polls, polls, 1;  // the abort word is looked at first after 64 polls, then after each 1024
  and.b32 turn, polls, 1023;
  setp.ne.u32 p, turn, 64;
  @p bra poll;
  ld.param.u64 abort_word, [report];
  ld.relaxed.sys.global.u32 seen, [abort_word+$is_aborted];
  setp.eq.u32 p, seen, 0;
  @p bra poll;
  setp.eq.u32 is_aborted, size, size;
reached:
  bar.red.or.pred is_aborted, 0, is_aborted;
  @is_aborted ret;
over:
  }
)";

// Of the copy and of its place.
constexpr std::string_view kMovedText = R"(
  ld.param.u64 to, [parameters+$to];
  ld.param.u64 from, [parameters+$from];
$shift_to
  add.u64 to, to, shift;
$shift_from
  add.u64 from, from, shift;
)";

constexpr std::string_view kStepCopyText = R"(
  {
  .reg .u64 left;
  ld.param.u64 left, [parameters+$size_bytes];
)";

// The barrier and the release of one thread order the writes of the whole block, and of earlier work on the stream, before the word.
constexpr std::string_view kSignalText = R"(
  bar.sync 0;
  setp.ne.u64 p, signals_word, 0;
  add.u32 bits, signals_offset, number;
  @p st.release.sys.global.u32 [signals_word], bits;  // thread i writes word i
)";

constexpr std::string_view kStepEndText = R"(
  setp.eq.and.u32 p, thread, 0, has_count;
  add.u32 number, number, 1;
  @p st.global.u32 [count], number;
  }
)";

constexpr std::string_view kKernelEndText = R"(
  ret;
}
)";

std::string digits_of(std::size_t offset) { return std::to_string(offset); }

// Where a list of a step has its items. Its size comes first.
constexpr std::size_t kListItems = offsetof(StepList<StepWord>, items);

std::string word_text(const std::string& name, std::size_t list) {
  return filled(kWordText, {{"word", name + "_word"},
                            {"offset", name + "_offset"},
                            {"size", digits_of(list)},
                            {"item_bytes", digits_of(sizeof(StepWord))},
                            {"list_word", digits_of(list + kListItems + offsetof(StepWord, word))},
                            {"list_offset", digits_of(list + kListItems + offsetof(StepWord, offset))}});
}

std::string wait_text(const std::string& name, std::size_t list) {
  return filled(kWaitText, {{"word", name + "_word"},
                            {"offset", name + "_offset"},
                            {"size", digits_of(list)},
                            {"is_aborted", digits_of(offsetof(StepReport, is_aborted))}});
}

std::string shift_text(StepRing ring) { return filled(kShiftText, {{"ring", std::to_string(ring)}}); }

std::string kernel_text(const char* kernel, std::size_t step_bytes, const char* more,
                        const std::string& body) {
  return filled(kKernelBeginText, {{"kernel", kernel},
                                   {"step_bytes", digits_of(step_bytes)},
                                   {"more", more},
                                   {"threads", std::to_string(kMaxStepThreads)}}) +
         body + std::string(kKernelEndText);
}

template <class Step>
std::string begin_text(std::size_t base) {
  std::string text =
      filled(kStepBeginText, {{"base", digits_of(base)}, {"count", digits_of(offsetof(Step, count))}});
  text += word_text("before", offsetof(Step, before));
  text += word_text("signals", offsetof(Step, signals));
  text += word_text("after", offsetof(Step, after));
  return text += filled(kPlaceText, {{"rings", digits_of(offsetof(Step, rings))},
                                     {"num_places", digits_of(offsetof(Step, num_places))},
                                     {"place_bytes", digits_of(offsetof(Step, place_bytes))}});
}

template <class Step>
std::string moved_text() {
  return filled(kMovedText, {{"to", digits_of(offsetof(Step, to))},
                             {"from", digits_of(offsetof(Step, from))},
                             {"shift_to", shift_text(kRingOfTargets)},
                             {"shift_from", shift_text(kRingOfSources)}});
}

// All of a step whose parameter is at this offset; `reduction` is the text of its reduction.
template <class Step>
std::string step_text(std::size_t base = 0, const std::string& reduction = {}) {
  std::string text = begin_text<Step>(base);
  text += wait_text("before", offsetof(Step, before));
  text += moved_text<Step>();
  text += filled(kStepCopyText, {{"size_bytes", digits_of(offsetof(Step, size_bytes))}});
  text += copy_text() + "  }\n";
  text += kSignalText;
  text += wait_text("after", offsetof(Step, after));
  text += reduction;
  return text += kStepEndText;
}

std::string short_steps_text() {
  std::string body = step_text<ShortStep>();
  for (std::size_t step = 1; step < kMostShortSteps; ++step) {
    body += filled(kNextStepText, {{"step", digits_of(step)}});
    body += step_text<ShortStep>(step * sizeof(ShortStep));
  }
  return kernel_text(kShortStepsKernel, kMostShortSteps * sizeof(ShortStep), "num_steps", body);
}

}  // namespace

std::string step_module_text(std::size_t module) {
  std::string text(kHeadText);
  if (module == 0) {
    text += kernel_text(kStepKernel, sizeof(DeviceStep), "vectors", step_text<DeviceStep>());
    text += kernel_text(kShortStepKernel, sizeof(ShortStep), "vectors", step_text<ShortStep>());
    text += short_steps_text();
    return text += message_kernels_text();
  }
  const auto type = static_cast<ElementType>((module - 1) / kNumCombinations);
  const auto combination = static_cast<Combination>((module - 1) % kNumCombinations);
  const std::string reduction = shift_text(kRingOfContributions) +
                                reduction_text(type, combination, "step", offsetof(DeviceStep, reduction));
  text += kernel_text(kStepKernel, sizeof(DeviceStep), "vectors", step_text<DeviceStep>(0, reduction));
  return text += reduction_kernel_text(type, combination);
}

}  // namespace weft::memory
