#include "collective/run.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "weft/base/pup.h"
#include "weft/runtime/remote_error.h"
#include "weft/runtime/scheduler.h"

#include "base/format.h"
#include "base/refuse_claim.h"

namespace weft::collective {

namespace {

// Whether a member may be done before others have begun.
bool lets_run_ahead(Kind kind) {
  return kind != Kind::kBarrier && kind != Kind::kAllreduce && kind != Kind::kAllgather &&
         kind != Kind::kAlltoall && kind != Kind::kReduceScatter;
}

}  // namespace

Run::Run(Group& group, const Call& call)
    : Awaiting(call.number),
      Work(&Run::on_turn),
      group_(group),
      call_(call),
      plan_(group_.plan({.kind = call.kind,
                         .form = call.kind == Kind::kBarrier ? group.barrier_form() : call.form,
                         .root = call.root,
                         .waits_first = lets_run_ahead(call.kind) && waits_first(call.number),
                         .in_order = call.form != Form::kFewMessages && !call.combiner.is_commutative})) {
  ++plan_.num_users;
  group_.inbox().begin(*this);
}

Run::~Run() {
  --plan_.num_users;
  if (!is_over_) group_.inbox().end(*this);
}

void Run::start() {
  is_posted_ = false;
  if (runtime::Observer* const observer = scheduler().observer()) [[unlikely]]
    observer->span_began(span());
  advance();
}

runtime::SpanEvent Run::span() const {
  return {.group = "collectives",
          .name = name_of(kind()),
          .number = reinterpret_cast<std::uintptr_t>(this),
          .value = number()};
}

std::exception_ptr Run::wrong_size(int /*from*/, std::size_t /*arrived_bytes*/,
                                   std::size_t /*awaited_bytes*/) const {
  return nullptr;
}

bool Run::advance() {
  const std::vector<Step>& steps = plan_.steps;
  for (; next_ < steps.size(); ++next_) {
    const Step& step = steps[next_];
    if (step.action == Step::Action::kSend || step.action == Step::Action::kSendInput) {
      send(step);
      continue;
    }
    if (step.action == Step::Action::kTakeInput) {
      take_input(step);
      continue;
    }
    const std::optional<KeptMessage> kept = group_.inbox().take_kept(number(), step.peer, step.round);
    if (!kept) {
      if (step.action != Step::Action::kFail) [[likely]]
        return false;
      has_failed_ = true;
      continue;
    }
    if (!group_.is_member(kept->header.from, kept->source_pe)) [[unlikely]]
      base::refuse_claim(base::format("a message of a collective from PE {} names a sender that is not there",
                                      kept->source_pe));
    if (!take_arrival(kept->header, {kept->blocks.data(), kept->blocks.size()})) return false;
  }
  group_.inbox().end(*this);
  is_over_ = true;
  if (runtime::Observer* const observer = scheduler().observer()) [[unlikely]]
    observer->span_ended(span());
  ended();
  return true;
}

std::optional<int> Run::awaited_place() const {
  if (is_over_ || is_posted_ || next_ >= plan_.steps.size()) return std::nullopt;
  return plan_.steps[next_].peer;
}

bool Run::awaits(const StepHeader& header) const {
  if (next_ >= plan_.steps.size()) return false;
  const Step& step = plan_.steps[next_];
  return step.peer == header.from && step.round == header.round && step.action >= Step::Action::kReceive;
}

Awaiting::Taken Run::take(const StepHeader& header, std::span<const std::byte> blocks) {
  if (!awaits(header) || call_.combiner.runs_program || is_posted_) return Taken::kNot;
  if (!take_arrival(header, blocks)) return Taken::kYes;
  ++next_;
  return advance() ? Taken::kAndOver : Taken::kYes;
}

void Run::note_kept(const StepHeader& header) {
  if (is_posted_ || !awaits(header)) return;
  is_posted_ = true;
  scheduler().post(this);
}

void Run::ask() {
  if (is_posted_) return;
  const Step& step = plan_.steps[next_];
  if (group_.pe_of(step.peer) != scheduler().pe())
    group_.send(number(), step, {}, StepHeader::kQuestion, sent_);
}

void Run::end_with_group() {
  has_failed_ = true;
  next_ = plan_.steps.size();
  if (!is_posted_) advance();
}

void Run::on_turn(runtime::Work* self, runtime::Runtime& /*runtime*/, runtime::WorkAction action) {
  Run* const run = static_cast<Run*>(self);
  run->is_posted_ = false;
  if (action == runtime::WorkAction::kRun) run->advance();
}

template <class Use>
void Run::for_marked(const Step& step, const Use& use) const {
  const auto size = static_cast<std::size_t>(group_.member().size);
  for (std::size_t block = step.first; block < size; ++block)
    if ((block & step.first) != 0)
      use(std::span<std::byte>(call_.data + begin_of(block), begin_of(block + 1) - begin_of(block)));
}

std::size_t Run::bytes_of_marked(const Step& step) const {
  std::size_t bytes = 0;
  for_marked(step, [&](std::span<std::byte> part) { bytes += part.size(); });
  return bytes;
}

void Run::send(const Step& step) {
  if (!has_failed_) {
    try {
      return send_blocks(step);
    } catch (const std::bad_alloc&) {
      fail_without_memory();
    }
  }
  group_.send(number(), step, packed_error(), StepHeader::kFailed, sent_);
  sent_.data = nullptr;  // the memory is used again
}

std::vector<std::byte> Run::packed_error() const {
  if (error_ == nullptr) return {};
  try {
    Pup sizer = Pup::sizer(&scheduler().runtime());
    runtime::pack_error(sizer, error_);
    std::vector<std::byte> bytes(sizer.offset_bytes());
    Pup packer = Pup::packer(bytes.data(), bytes.size(), &scheduler().runtime());
    runtime::pack_error(packer, error_);
    return bytes;
  } catch (const std::bad_alloc&) {
    return {};
  }
}

void Run::take_input(const Step& step) {
  if (input() == call_.data || has_failed_) return;
  const std::span<std::byte> place = blocks_of(step);
  if (!place.empty()) std::memcpy(place.data(), input() + begin_of(step.first), place.size());
}

void Run::send_blocks(const Step& step) {
  if (!step.is_marked) {
    std::span<const std::byte> blocks = blocks_of(step);
    if (step.action == Step::Action::kSendInput) blocks = {input() + begin_of(step.first), blocks.size()};
    return group_.send(number(), step, blocks, place_mark(step), sent_);
  }
  const std::size_t size_bytes = bytes_of_marked(step);
  std::byte* const together = scratch(size_bytes);
  std::byte* end = together;
  for_marked(step, [&](std::span<std::byte> part) { end = std::copy(part.begin(), part.end(), end); });
  group_.send(number(), step, {together, size_bytes}, 0, sent_);
  sent_.data = nullptr;  // the memory is used again
}

bool Run::take_arrival(const StepHeader& header, std::span<const std::byte> payload) {
  if ((header.flags & StepHeader::kPosted) == 0) [[likely]] {
    sent_.data = nullptr;  // blocks may change now
    apply(plan_.steps[next_], header, payload);
    return true;
  }
  const std::optional<Boards::Block> block = group_.open(header, payload);
  if (!block) return false;
  sent_.data = nullptr;
  apply(plan_.steps[next_], header, block->bytes);
  block->release();
  return true;
}

void Run::apply(const Step& step, const StepHeader& header, std::span<const std::byte> blocks) {
  if (has_failed_) return;
  if ((header.flags & StepHeader::kFailed) != 0) [[unlikely]]
    return hear_of_failure(blocks);
  if (step.is_marked) [[unlikely]]
    return apply_marked(step, blocks);
  const std::span<std::byte> place = blocks_of(step);
  if (blocks.size() != place.size() || (header.flags & StepHeader::kMarks) != place_mark(step)) [[unlikely]]
    return fail(wrong_size(step.peer, blocks.size(), place.size()));
  if (blocks.empty()) return;
  if (step.action == Step::Action::kReceive) {
    std::memcpy(place.data(), blocks.data(), blocks.size());
    return;
  }
  try {
    combine(step, place, blocks);
  } catch (const std::bad_alloc&) {
    fail_without_memory();
  }
}

void Run::hear_of_failure(std::span<const std::byte> packed_error) {
  has_failed_ = true;
  if (packed_error.empty()) return;
  Pup p = Pup::unpacker(packed_error.data(), packed_error.size(), &scheduler().runtime());
  error_ = runtime::unpack_error(p);
}

void Run::apply_marked(const Step& step, std::span<const std::byte> blocks) {
  if (const std::size_t awaited_bytes = bytes_of_marked(step); blocks.size() != awaited_bytes)
    return fail(wrong_size(step.peer, blocks.size(), awaited_bytes));
  const std::byte* from = blocks.data();
  for_marked(step, [&](std::span<std::byte> part) {
    if (!part.empty()) std::memcpy(part.data(), from, part.size());
    from += part.size();
  });
}

// An arrival may lie in memory that the peer can write. It is copied first, if code of the program is to work on it, or if it is not
// aligned.
void Run::combine(const Step& step, std::span<std::byte> place, std::span<const std::byte> blocks) {
  const Combiner& combiner = call_.combiner;
  const std::size_t size_bytes = blocks.size();
  std::byte* const block = place.data();
  const bool is_from_right = step.action == Step::Action::kCombineFromRight;
  if (!is_from_right && !combiner.runs_program && reinterpret_cast<std::uintptr_t>(blocks.data()) % 16 == 0) {
    if (!combiner.combine(combiner.context, blocks.data(), block, size_bytes)) has_failed_ = true;
    return;
  }
  std::byte* const arrived = scratch(size_bytes);
  std::memcpy(arrived, blocks.data(), size_bytes);
  const bool ok = is_from_right ? combiner.combine(combiner.context, block, arrived, size_bytes)
                                : combiner.combine(combiner.context, arrived, block, size_bytes);
  if (is_from_right) std::memcpy(block, arrived, size_bytes);
  if (!ok) has_failed_ = true;
}

std::byte* Run::scratch(std::size_t size_bytes) {
  if (size_bytes <= sizeof scratch_) return scratch_;
  if (large_scratch_bytes_ < size_bytes) {
    large_scratch_ = std::make_unique_for_overwrite<std::byte[]>(size_bytes);
    large_scratch_bytes_ = size_bytes;
  }
  return large_scratch_.get();
}

}  // namespace weft::collective
