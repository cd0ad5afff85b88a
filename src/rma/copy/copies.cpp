#include "rma/copy/copies.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "machine/machine.h"
#include "memory/memory.h"
#include "rma/copy/batch.h"

namespace weft::rma {

using base::Error;
using base::Status;
using base::StatusCode;
using runtime::Task;

namespace {

std::string text_of(const CopyEnd& end) {
  return end.is_local ? base::format("{} ({})", end.local.data, memory::place_name(end.local.place))
                      : describe(end.address);
}

memory::Buffer base_of(const CopyEnd& end, const KnownSegment* segment, memory::StreamHandle stream) {
  memory::Buffer base = end.is_local ? end.local : segment->part(end.address, 0);
  base.stream = stream;
  return base;
}

// Null if this PE has no address for that end.
const void* address_of(const CopyEnd& end, const KnownSegment* segment) {
  if (end.is_local) return end.local.data;
  return segment != nullptr && segment->is_reached() ? segment->part(end.address, 0).data : nullptr;
}

void copy_host_runs(const Copy& copy, const memory::Buffer& from, const memory::Buffer& to) {
  for (const Run& run : copy.runs) {
    std::memmove(part_of(to, run.to_bytes, 0).data, part_of(from, run.from_bytes, 0).data, run.size_bytes);
  }
}

// Whether the CPU reaches that end.
bool is_host_end(const CopyEnd& end, const KnownSegment* segment) {
  return end.is_local ? end.local.place.is_host()
                      : segment != nullptr && segment->is_reached() && segment->memory.place.is_host();
}

}  // namespace

std::string Copy::text() const {
  return base::format("a copy of {} bytes from {} to {}", total_bytes(runs), text_of(from), text_of(to));
}

Copies::Ticket::Ticket(Copies& copies, runtime::OperationState* state) : copies_(copies), state_(state) {
  copies_.running_.insert(state);
}

Copies::Ticket::~Ticket() { end(Status(StatusCode::kClosed, "the job has ended"), 0); }

void Copies::Ticket::end(Status status, std::size_t size_bytes) {
  if (state_ == nullptr || copies_.running_.erase(state_) == 0) return;
  std::exchange(state_, nullptr)->complete(std::move(status), size_bytes);
}

Copies::Copies(runtime::Runtime& runtime, runtime::HandlerId handler, Segments& segments, RemoteHooks& hooks)
    : runtime_(runtime), handler_(handler), segments_(segments), hooks_(hooks) {
  runtime_.set_handler(
      handler_,
      [](void* self, runtime::MessagePtr message) { static_cast<Copies*>(self)->on_message(*message); },
      this);
}

void Copies::close() {
  closed_ = true;
  for (runtime::OperationState* state : std::exchange(running_, {})) {
    state->complete(Status(StatusCode::kClosed, "the job has ended"), 0);
  }
  asked_.clear();
}

void Copies::expect_ends(const Copy& copy, const KnownSegment* from, const KnownSegment* to) const {
  for (const Run& run : copy.runs) {
    if (from != nullptr) {
      segments_.expect_inside(*from, copy.from.address.moved_by(run.from_bytes), run.size_bytes);
    }
    if (to != nullptr) segments_.expect_inside(*to, copy.to.address.moved_by(run.to_bytes), run.size_bytes);
  }
  bool is_overlap = false;
  if (from != nullptr && from == to) {
    is_overlap = overlaps(copy.runs, copy.from.address.offset_bytes(), copy.to.address.offset_bytes());
  } else {
    const void* const source = address_of(copy.from, from);
    const void* const target = address_of(copy.to, to);
    is_overlap = source != nullptr && target != nullptr &&
                 overlaps(copy.runs, reinterpret_cast<std::uintptr_t>(source),
                          reinterpret_cast<std::uintptr_t>(target));
  }
  if (!is_overlap) return;
  throw Error(StatusCode::kInvalidArgument,
              base::format("the source at {} and the target at {} overlap: copy to other memory first",
                           text_of(copy.from), text_of(copy.to)));
}

ByteRange Copies::origin_of(const CopyEnd& end, bool is_target) const {
  const KnownSegment* const segment = end.is_local ? nullptr : segments_.find(end.address);
  if (const void* const data = address_of(end, segment); data != nullptr) {
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    return {0, begin, begin, is_target};
  }
  return {end.address.segment_word(), end.address.offset_bytes(), end.address.offset_bytes(), is_target};
}

void Copies::expect_apart(std::span<const CopyPart> parts) const {
  std::vector<ByteRange> origins;
  std::vector<ByteRange> ranges;
  for (const CopyPart& part : parts) {
    origins.push_back(origin_of(part.from, false));
    origins.push_back(origin_of(part.to, true));
    // Most ends are far apart as a whole.
    for (const bool is_target : {false, true}) {
      std::int64_t first = std::numeric_limits<std::int64_t>::max();
      std::int64_t last = std::numeric_limits<std::int64_t>::min();
      for (const Run& run : part.runs) {
        const std::int64_t begin = is_target ? run.to_bytes : run.from_bytes;
        first = std::min(first, begin);
        last = std::max(last, begin + static_cast<std::int64_t>(run.size_bytes));
      }
      if (part.runs.empty()) continue;
      ByteRange whole = origins[origins.size() - (is_target ? 1 : 2)];
      whole.end = whole.begin + static_cast<std::uint64_t>(last);
      whole.begin += static_cast<std::uint64_t>(first);
      ranges.push_back(whole);
    }
  }
  if (!have_overlap(ranges)) return;
  ranges.clear();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const Run& run : parts[i].runs) {
      ByteRange source = origins[2 * i];
      source.begin += static_cast<std::uint64_t>(run.from_bytes);
      source.end = source.begin + run.size_bytes;
      ByteRange target = origins[2 * i + 1];
      target.begin += static_cast<std::uint64_t>(run.to_bytes);
      target.end = target.begin + run.size_bytes;
      ranges.push_back(source);
      ranges.push_back(target);
    }
  }
  if (!have_overlap(ranges)) return;
  throw Error(
      StatusCode::kInvalidArgument,
      base::format("the source and the target of a copy of {} parts, the first from {} to {}, overlap: "
                   "copy to other memory first",
                   parts.size(), text_of(parts.front().from), text_of(parts.front().to)));
}

bool Copies::copy_now(const Copy& copy) {
  KnownSegment* const from = copy.from.is_local ? nullptr : segments_.find(copy.from.address);
  KnownSegment* const to = copy.to.is_local ? nullptr : segments_.find(copy.to.address);
  if (!is_host_end(copy.from, from) || !is_host_end(copy.to, to)) return false;
  expect_ends(copy, from, to);
  if (total_bytes(copy.runs) > kAtOnceBytes) return false;
  copy_host_runs(copy, base_of(copy.from, from, nullptr), base_of(copy.to, to, nullptr));
  return true;
}

void Copies::finish(Copy& copy) {
  if (copy.completions.source.has_value()) {
    const runtime::Future<> source = *copy.completions.source;
    copy.completions.source.reset();
    source.set();
  }
  if (!copy.completions.remote.has_value()) return;
  hooks_.send(copy.to.is_local ? runtime_.pe() : copy.to.address.pe(), *copy.completions.remote);
}

void Copies::start(Copy copy, runtime::OperationState* state) {
  try {
    if (start_direct(copy, state)) return;
  } catch (const Error& error) {
    return state->complete(Status(error.code(), base::format("{} failed: {}", copy.text(), error.what())), 0);
  }
  spawn(run(std::move(copy), state));
}

void Copies::learn(const GlobalAddress& address, runtime::OperationState* state) {
  spawn(run_learn(address, state));
}

Task<> Copies::run_learn(GlobalAddress address, runtime::OperationState* state) {
  Ticket ticket(*this, state);
  Status status;
  try {
    Task<SegmentUse> reached = segments_.reach(address);
    const SegmentUse use = co_await std::move(reached);
  } catch (const Error& error) {
    status = Status(error.code(), error.what());
  }
  ticket.end(std::move(status), 0);
}

Task<> Copies::run(Copy copy, runtime::OperationState* state) {
  Ticket ticket(*this, state);
  const std::uint64_t size_bytes = total_bytes(copy.runs);
  Status status;
  try {
    Task<> copied = carry_out(copy);
    co_await std::move(copied);
    finish(copy);
  } catch (const Error& error) {
    status = Status(error.code(), base::format("{} failed: {}", copy.text(), error.what()));
  }
  if (status.failed() && copy.completions.source.has_value()) {
    copy.completions.source->set_error(
        std::make_exception_ptr(Error(status.code(), std::string(status.message()))));
  }
  ticket.end(std::move(status), size_bytes);
}

Task<> Copies::carry_out(Copy& copy) {
  SegmentUse from;
  SegmentUse to;
  if (!copy.from.is_local) {
    Task<SegmentUse> reached = segments_.reach(copy.from.address);
    from = co_await std::move(reached);
  }
  if (!copy.to.is_local) {
    Task<SegmentUse> reached = segments_.reach(copy.to.address);
    to = co_await std::move(reached);
  }
  KnownSegment* const source = from ? &*from : nullptr;
  KnownSegment* const target = to ? &*to : nullptr;
  expect_ends(copy, source, target);
  const bool reaches_source = source == nullptr || source->is_reached();
  const bool reaches_target = target == nullptr || target->is_reached();
  const memory::Buffer source_base = base_of(copy.from, source, copy.completions.source_stream);
  const memory::Buffer target_base = base_of(copy.to, target, copy.completions.target_stream);
  if (reaches_source && reaches_target) {
    const std::uint64_t size_bytes = total_bytes(copy.runs);
    lock_pages(source, target_base.place, size_bytes);
    lock_pages(target, source_base.place, size_bytes);
    Task<> copied = copy_memory(copy, source_base, target_base);
    co_await std::move(copied);
  } else if (reaches_source) {
    Task<> copied = put_runs(copy, source_base, *target);
    co_await std::move(copied);
  } else if (reaches_target) {
    Task<> copied = get_runs(copy, *source, target_base);
    co_await std::move(copied);
  } else {
    Task<> copied = ask_source(copy);
    co_await std::move(copied);
  }
}

void Copies::lock_pages(KnownSegment* segment, memory::Place device, std::uint64_t size_bytes) {
  if (segment == nullptr || !segment->memory.place.is_host() || device.is_host()) return;
  segment->page_lock.copy_begins(*runtime_.memory().backend(device.kind), device, segment->memory,
                                 size_bytes);
}

Task<> Copies::copy_memory(const Copy& copy, memory::Buffer from, memory::Buffer to) {
  const bool has_streams = from.stream != nullptr || to.stream != nullptr;
  const bool is_packed = are_small(copy.runs) && !has_streams;
  // One run between places of a device is an ordinary copy of the memory layer, which needs few events for many copies.
  const bool is_one_copy = copy.runs.size() == 1 && !from.place.is_host();
  if (from.place == to.place && !has_streams && !is_one_copy) {
    Task<> copied = copy_at_place(copy.runs, from, to);
    co_await std::move(copied);
  } else if (is_packed) {
    Task<> copied = copy_packed(copy, from, to);
    co_await std::move(copied);
  } else {
    Batch batch(runtime_);
    for (const Run& run : copy.runs) {
      batch.start([&](base::Completion* completion) {
        return runtime_.memory().copy(part_of(to, run.to_bytes, run.size_bytes),
                                      part_of(from, run.from_bytes, run.size_bytes), completion);
      });
    }
    co_await batch;
    base::check(batch.status());
  }
}

Task<> Copies::put_runs(Copy& copy, memory::Buffer from, KnownSegment& to) {
  Task<> key = segments_.get_key(to);
  co_await std::move(key);
  const int pe = to.start.pe();
  const bool is_packed = from.stream == nullptr && are_small(copy.runs);
  for (std::span<const Run> left = copy.runs; !left.empty();) {
    const std::span<const Run> piece = is_packed ? take_piece(left) : std::exchange(left, {});
    Block block;
    if (is_packed) block = make_block(piece, End::kTarget, from.place);
    if (block.is_used()) {
      const std::vector<Run> packing = packing_runs(piece);
      Task<> packed = copy_at_place(packing, from, block.buffer());
      co_await std::move(packed);
    }
    const memory::Buffer source = block.is_used() ? block.buffer() : from;
    Batch puts(runtime_);
    for (const Run& run : block.is_used() ? std::span<const Run>(block.runs) : piece) {
      puts.start([&](base::Completion* completion) {
        return runtime_.machine().put(pe, part_of(source, run.from_bytes, run.size_bytes), *to.remote,
                                      copy.to.address.moved_by(run.to_bytes).offset_bytes(), completion);
      });
    }
    co_await puts;
    base::check(puts.status());
  }
  if (copy.completions.source.has_value()) {
    copy.completions.source->set();
    copy.completions.source.reset();
  }
  Batch flush(runtime_);
  flush.start([&](base::Completion* completion) { return runtime_.machine().flush(pe, completion); });
  co_await flush;
  base::check(flush.status());
}

Task<> Copies::get_runs(const Copy& copy, KnownSegment& from, memory::Buffer to) {
  Task<> key = segments_.get_key(from);
  co_await std::move(key);
  const bool is_packed = to.stream == nullptr && are_small(copy.runs);
  for (std::span<const Run> left = copy.runs; !left.empty();) {
    const std::span<const Run> piece = is_packed ? take_piece(left) : std::exchange(left, {});
    Block block;
    if (is_packed) block = make_block(piece, End::kSource, to.place);
    const memory::Buffer receive_buffer = block.is_used() ? block.buffer() : to;
    Batch gets(runtime_);
    for (const Run& run : block.is_used() ? std::span<const Run>(block.runs) : piece) {
      gets.start([&](base::Completion* completion) {
        return runtime_.machine().get(from.start.pe(), part_of(receive_buffer, run.to_bytes, run.size_bytes),
                                      *from.remote, copy.from.address.moved_by(run.from_bytes).offset_bytes(),
                                      completion);
      });
    }
    co_await gets;
    base::check(gets.status());
    if (!block.is_used()) continue;
    const std::vector<Run> unpacking = unpacking_runs(piece);
    Task<> unpacked = copy_at_place(unpacking, receive_buffer, to);
    co_await std::move(unpacked);
  }
}

}  // namespace weft::rma
