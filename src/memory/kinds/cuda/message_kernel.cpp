#include "memory/kinds/cuda/message_kernel.h"

#include <algorithm>
#include <string_view>

#include "memory/kinds/cuda/copy_text.h"
#include "memory/kinds/cuda/kernel_text.h"
#include "memory/kinds/cuda/step_report.h"

namespace weft::memory {

namespace {

// The parameters of a kernel may have 4 KiB.
static_assert(kMaxMessageEnds * sizeof(MessageEnd) <= 2048);
static_assert(kMostPacketBytes <= 8 * kMaxStepThreads, "a thread has one pair of packets");
static_assert(kMostLabelledPacketBytes <= 8 * (kMaxStepThreads - 1), "and one thread has the label");
static_assert(kMostPacketBytes <= kMessagePartBytes, "packets are one part");

// A block does a part of an end that sends or takes, or an end that receives. All threads read the count. Of several blocks that read it, the
// last one raises it: none reads it later.
constexpr std::string_view kBeginText = R"(
.visible .entry $kernel(.param .align 8 .b8 ends[$ends_bytes], .param .u64 report)
.maxntid $threads
{
  .reg .pred p, has_count, has_label, is_aborted, is_bytes, is_taking;
  .reg .u16 byte;
  .reg .u32 thread, threads, part, parts, side, number, next, needed, begun, blocks, bits, polls, turn, low, high, first, second;
  .reg .u64 parameters, at, count, word, signal, tickets, label, labels, index, stride, to, from, left, size, value, packet, byte_at;
  mov.u32 thread, %tid.x;
  mov.u32 threads, %ntid.x;
  mov.u32 part, %ctaid.x;
  mov.u32 bits, %ctaid.y;
  mul.wide.u32 parameters, bits, $end_bytes;
  mov.u64 at, ends;
  add.u64 parameters, parameters, at;
  ld.param.u32 parts, [parameters+$parts];
  ld.param.u32 side, [parameters+$side];
  setp.eq.u32 p, side, $receive;
  selp.b32 bits, 1, parts, p;
  setp.ge.u32 p, part, bits;
  @p ret;
  setp.ge.u32 is_taking, side, $take;
  setp.ne.u32 is_aborted, parts, parts;
  cvt.u64.u32 index, thread;
  cvt.u64.u32 stride, threads;
  ld.param.u64 count, [parameters+$count];
  setp.ne.u64 has_count, count, 0;
  mov.u32 number, 0;
  @has_count ld.global.u32 number, [count];
  ld.param.u32 blocks, [parameters+$blocks];
  mov.u32 begun, 0;
  setp.lt.u32 p, blocks, 2;
  @p bra numbered;
  bar.sync 0;
  setp.ne.u32 p, thread, 0;
  @p bra numbered;
  atom.acq_rel.gpu.global.add.u32 begun, [count+$begun], 1;
numbered:
  ld.param.u32 bits, [parameters+$offset];
  add.u32 number, number, bits;
  add.u32 next, number, 1;
  ld.param.u64 word, [parameters+$waits];
  ld.param.u64 signal, [parameters+$signals];
  ld.param.u64 to, [parameters+$to];
  ld.param.u64 from, [parameters+$from];
  ld.param.u64 size, [parameters+$size_bytes];
  ld.param.u64 label, [parameters+$label];
  ld.param.u64 labels, [parameters+$labels];
  ld.param.u64 tickets, [parameters+$taken];
  setp.ne.u64 has_label, label, 0;
  mov.u32 needed, number;
  ld.param.u32 bits, [parameters+$num_places];
  setp.eq.u32 p, bits, 1;
  @p bra placed;
  sub.u32 bits, bits, 1;
  sub.u32 needed, number, bits;
  and.b32 bits, bits, number;
  cvt.u64.u32 left, bits;
  ld.param.u64 at, [parameters+$place_bytes];
  mul.lo.u64 at, at, left;
  add.u64 labels, labels, at;
  @is_taking add.u64 from, from, at;
  @!is_taking add.u64 to, to, at;
  shl.b64 left, left, 2;
  mul.lo.u64 at, left, $most_parts;
  @is_taking add.u64 word, word, at;
  @is_taking add.u64 signal, signal, left;
  @is_taking add.u64 tickets, tickets, left;
  @!is_taking add.u64 word, word, left;
  @!is_taking add.u64 signal, signal, at;
placed:
  setp.eq.u32 p, side, $send_packets;
  @p bra send_packets;
  setp.ge.u32 p, side, $receive;
  @p bra receive;
)";

// Goes to `$label` if the end of the job ends all waits: looked at after 64 polls, and then after each 1024.
constexpr std::string_view kAbortText = R"(
  add.u32 polls, polls, 1;
  and.b32 turn, polls, 1023;
  setp.ne.u32 p, turn, 64;
  @p bra $poll;
  ld.param.u64 at, [report];
  ld.relaxed.sys.global.u32 bits, [at+$is_aborted];
  setp.eq.u32 p, bits, 0;
  @p bra $poll;
  bra $label;
)";

// Sends and takes. One thread waits for the place, or for the part. The barrier makes what it has acquired visible to the block.
constexpr std::string_view kCopyingText = R"(
copying:
  @is_aborted bra reached;
  setp.ne.u32 p, thread, 0;
  @p bra reached;
  setp.eq.u64 p, word, 0;
  @p bra reached;
  mov.u32 polls, 0;
poll:
  ld.acquire.sys.global.u32 bits, [word];
  sub.u32 bits, bits, needed;
  setp.ge.s32 p, bits, 0;
  @p bra reached;
$abort
aborted:
  setp.eq.u32 is_aborted, parts, parts;
reached:
  bar.red.or.pred is_aborted, 0, is_aborted;
  @is_aborted ret;
  setp.eq.u32 p, side, $await_place;
  @p ret;
  @is_taking bra labelled;
  setp.ne.u32 p, thread, 0;
  setp.ne.or.u32 p, part, 0, p;
  setp.eq.or.u64 p, label, 0, p;
  @p bra labelled;
  mov.b64 {low, high}, label;
  st.volatile.global.v4.u32 [labels], {low, next, high, next};
labelled:
  ld.param.u64 left, [parameters+$part_bytes];
  cvt.u64.u32 at, part;
  mul.lo.u64 at, at, left;
  min.u64 at, at, size;
  sub.u64 size, size, at;
  min.u64 left, left, size;
  add.u64 to, to, at;
  add.u64 from, from, at;
$copy
  @is_taking bra over;
  bar.sync 0;
  mul.wide.u32 at, part, 4;
  add.u64 at, at, signal;
  setp.eq.u32 p, thread, 0;
  setp.ne.and.u64 p, signal, 0, p;
  @p st.release.sys.global.u32 [at], next;  // what the whole block has written is in front of it
  bra over;
)";

// Thread i has the 8 bytes with number i, which are two packets. If there is a label, thread 0 has that. The place is free when the word says
// so: nothing of it was read by this device, so the word needs no acquire.
constexpr std::string_view kPacketsText = R"(
send_packets:
  @!has_label bra pack;
  mov.b64 {low, high}, label;
  mov.u64 packet, labels;
  setp.eq.u32 p, thread, 0;
  @p bra loaded;
  sub.u64 index, index, 1;
pack:
  shl.b64 at, index, 3;
  setp.ge.u64 p, at, size;
  @p bra over;
  add.u64 from, from, at;
  sub.u64 left, size, at;
  shl.b64 packet, index, 4;
  add.u64 packet, packet, to;
  and.b64 byte_at, from, 7;
  setp.ne.u64 p, byte_at, 0;
  setp.lt.or.u64 is_bytes, left, 8, p;
  @is_bytes bra load_bytes;
  ld.global.v2.u32 {low, high}, [from];
  bra loaded;
load_bytes:
  min.u64 left, left, 8;
  mov.u64 value, 0;
next_load:
  sub.u64 left, left, 1;
  add.u64 byte_at, from, left;
  ld.global.u8 byte, [byte_at];
  cvt.u64.u16 byte_at, byte;
  shl.b64 value, value, 8;
  or.b64 value, value, byte_at;
  setp.ne.u64 p, left, 0;
  @p bra next_load;
  mov.b64 {low, high}, value;
loaded:
  mov.u32 polls, 0;
  setp.eq.u64 p, word, 0;
  @p bra is_free;
poll_place:
  ld.relaxed.sys.global.u32 bits, [word];
  sub.u32 bits, bits, needed;
  setp.ge.s32 p, bits, 0;
  @p bra is_free;
$abort_place
is_free:
  st.volatile.global.v4.u32 [packet], {low, next, high, next};
  bra over;

receive:
  @is_taking bra take;
  setp.ne.u32 p, thread, 0;
  @p bra has_freed;
  setp.eq.u64 p, signal, 0;
  @p bra has_freed;
  mov.u32 bits, 0;
  ld.param.u64 at, [parameters+$freed];
  setp.ne.u64 p, at, 0;
  @p ld.global.u32 bits, [at];
  st.relaxed.sys.global.u32 [signal], bits;  // earlier kernels have read the place, and they are over
has_freed:
  setp.ne.u32 p, side, $receive_packets;
  @p bra receive_parts;
unpack:
  shl.b64 at, index, 3;
  setp.ge.u64 p, at, size;
  @p bra over;
  add.u64 to, to, at;
  sub.u64 left, size, at;
  shl.b64 packet, index, 4;
  add.u64 packet, packet, from;
  and.b64 byte_at, to, 7;
  setp.ne.u64 p, byte_at, 0;
  setp.lt.or.u64 is_bytes, left, 8, p;
  mov.u32 polls, 0;
poll_packets:
  ld.volatile.global.v4.u32 {low, first, high, second}, [packet];
  setp.eq.u32 p, first, next;
  setp.eq.and.u32 p, second, next, p;
  @p bra has_come;
$abort_packets
has_come:
  @is_bytes bra store_bytes;
  st.global.v2.u32 [to], {low, high};
  bra over;
store_bytes:
  min.u64 left, left, 8;
  mov.b64 value, {low, high};
next_store:
  cvt.u16.u64 byte, value;
  st.global.u8 [to], byte;
  shr.b64 value, value, 8;
  add.u64 to, to, 1;
  sub.u64 left, left, 1;
  setp.ne.u64 p, left, 0;
  @p bra next_store;
  bra over;

receive_parts:  // Thread i waits for part i.
  setp.ge.u32 p, thread, parts;
  @p bra over;
  setp.eq.u64 p, word, 0;
  @p bra over;
  mul.wide.u32 at, thread, 4;
  add.u64 word, word, at;
  mov.u32 polls, 0;
poll_part:
  ld.acquire.sys.global.u32 bits, [word];
  sub.u32 bits, bits, next;
  setp.ge.s32 p, bits, 0;
  @p bra over;
$abort_part
)";

// Thread 0 waits for the label. A launch that traps has ended for the driver, too. The report is on its way to the host before the
// trap.
constexpr std::string_view kTakeText = R"(
take:
  @!has_label bra checked;
  setp.ne.u32 p, thread, 0;
  @p bra checked;
  mov.u32 polls, 0;
poll_label:
  ld.volatile.global.v4.u32 {low, first, high, second}, [labels];
  setp.eq.u32 p, first, next;
  setp.eq.and.u32 p, second, next, p;
  @p bra has_label_come;
$abort
has_label_come:
  mov.b64 value, {low, high};
  setp.eq.u64 p, value, label;
  @p bra checked;
  ld.param.u64 at, [report];
  st.relaxed.sys.global.u64 [at+$found_label], value;
  st.relaxed.sys.global.u64 [at+$expected_label], label;
  fence.acq_rel.sys;
  trap;
  exit;
no_label:
  setp.eq.u32 is_aborted, parts, parts;
checked:
  setp.eq.u32 p, side, $await_message;
  @p bra over;
  setp.eq.u32 p, side, $take_packets;
  @p bra take_packets;
  mul.wide.u32 at, part, 4;
  add.u64 word, word, at;
  mov.u32 needed, next;
  bra copying;
take_packets:
  @!has_label bra unpack;
  setp.eq.u32 p, thread, 0;
  @p bra over;
  sub.u64 index, index, 1;
  bra unpack;
)";

// The packets that the block has read have come to it, so their place is free without a fence. Parts may be of other blocks.
constexpr std::string_view kEndText = R"(
aborted_end:
  setp.eq.u32 is_aborted, parts, parts;
over:
  bar.red.or.pred is_aborted, 0, is_aborted;
  @is_aborted ret;
  setp.ne.u32 p, thread, 0;
  @p ret;
  @!has_count bra counted;
  add.u32 bits, begun, 1;
  setp.ne.u32 p, bits, blocks;
  @p bra counted;
  ld.param.u32 bits, [parameters+$raise];
  add.u32 number, number, bits;
  mov.u32 bits, 0;
  st.global.v2.u32 [count], {number, bits};
counted:
  @!is_taking ret;
  setp.eq.u32 p, side, $await_message;
  @p ret;
  setp.ne.u32 p, side, $take_packets;
  @p bra taken;
  st.relaxed.sys.global.u32 [signal], next;
  ret;
taken:
  atom.acq_rel.gpu.global.add.u32 bits, [tickets], 1;
  add.u32 bits, bits, 1;
  setp.ne.u32 p, bits, parts;
  @p ret;
  mov.u32 bits, 0;
  st.global.u32 [tickets], bits;
  st.release.sys.global.u32 [signal], next;
  ret;
}
)";

std::string number_of(std::size_t value) { return std::to_string(value); }
std::string side_of(MessageSide side) { return number_of(static_cast<std::size_t>(side)); }

std::string abort_text(const char* poll, const char* label) {
  return filled(
      kAbortText,
      {{"poll", poll}, {"label", label}, {"is_aborted", number_of(offsetof(StepReport, is_aborted))}});
}

std::string begin_text(const char* kernel, std::size_t most_ends) {
  return filled(kBeginText, {{"kernel", kernel},
                             {"ends_bytes", number_of(most_ends * sizeof(MessageEnd))},
                             {"threads", number_of(kMaxStepThreads)},
                             {"end_bytes", number_of(sizeof(MessageEnd))},
                             {"parts", number_of(offsetof(MessageEnd, parts))},
                             {"side", number_of(offsetof(MessageEnd, side))},
                             {"count", number_of(offsetof(MessageEnd, count))},
                             {"begun", number_of(offsetof(MessageCount, begun))},
                             {"blocks", number_of(offsetof(MessageEnd, blocks))},
                             {"offset", number_of(offsetof(MessageEnd, offset))},
                             {"waits", number_of(offsetof(MessageEnd, waits))},
                             {"signals", number_of(offsetof(MessageEnd, signals))},
                             {"taken", number_of(offsetof(MessageEnd, taken))},
                             {"to", number_of(offsetof(MessageEnd, to))},
                             {"from", number_of(offsetof(MessageEnd, from))},
                             {"size_bytes", number_of(offsetof(MessageEnd, size_bytes))},
                             {"label", number_of(offsetof(MessageEnd, label))},
                             {"labels", number_of(offsetof(MessageEnd, labels))},
                             {"num_places", number_of(offsetof(MessageEnd, num_places))},
                             {"place_bytes", number_of(offsetof(MessageEnd, place_bytes))},
                             {"most_parts", number_of(kMaxMessageParts)},
                             {"send_packets", side_of(MessageSide::kSendPackets)},
                             {"receive", side_of(MessageSide::kReceive)},
                             {"take", side_of(MessageSide::kTake)}});
}

std::string kernel_text(const char* kernel, std::size_t most_ends) {
  std::string text = begin_text(kernel, most_ends);
  text += filled(kCopyingText, {{"abort", abort_text("poll", "aborted")},
                                {"await_place", side_of(MessageSide::kAwaitPlace)},
                                {"part_bytes", number_of(offsetof(MessageEnd, part_bytes))},
                                {"copy", copy_text()}});
  text += filled(kPacketsText, {{"abort_place", abort_text("poll_place", "aborted_end")},
                                {"freed", number_of(offsetof(MessageEnd, freed))},
                                {"receive_packets", side_of(MessageSide::kReceivePackets)},
                                {"abort_packets", abort_text("poll_packets", "aborted_end")},
                                {"abort_part", abort_text("poll_part", "aborted_end")}});
  text += filled(kTakeText, {{"abort", abort_text("poll_label", "no_label")},
                             {"found_label", number_of(offsetof(StepReport, found_label))},
                             {"expected_label", number_of(offsetof(StepReport, expected_label))},
                             {"await_message", side_of(MessageSide::kAwaitMessage)},
                             {"take_packets", side_of(MessageSide::kTakePackets)}});
  return text += filled(kEndText, {{"raise", number_of(offsetof(MessageEnd, raise))},
                                   {"await_message", side_of(MessageSide::kAwaitMessage)},
                                   {"take_packets", side_of(MessageSide::kTakePackets)}});
}

unsigned threads_of(const MessageEnd& end) {
  std::uint64_t wanted = end.parts;
  if (end.side == MessageSide::kSend || end.side == MessageSide::kTake) wanted = end.part_bytes / 16;
  if (has_packets(end.side))
    wanted = packet_bytes(end.size_bytes) / kPacketPairBytes + (end.label == 0 ? 0 : 1);
  return static_cast<unsigned>(
      std::clamp((wanted + kWarpThreads - 1) / kWarpThreads * kWarpThreads, kWarpThreads, kMaxStepThreads));
}

}  // namespace

std::string message_kernels_text() {
  return kernel_text(kFewMessagesKernel, kFewMessageEnds) + kernel_text(kMessagesKernel, kMaxMessageEnds);
}

MessageGrid message_grid(std::span<const MessageEnd> ends) {
  MessageGrid grid;
  grid.ends = static_cast<unsigned>(ends.size());
  for (const MessageEnd& end : ends) {
    grid.threads = std::max(grid.threads, threads_of(end));
    grid.blocks = std::max(grid.blocks, static_cast<unsigned>(own_parts(end)));
  }
  return grid;
}

}  // namespace weft::memory
