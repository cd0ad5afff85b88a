#include "queued/message_queue.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"

namespace weft::queued {

using memory::MessageEnd;
using memory::MessageSide;

namespace {

// By the copy engine.
bool is_large(const MessageEnd& end) { return end.size_bytes > kMostKernelBytes; }

// Of ends whose parts are blocks that wait.
bool has_many_parts(const std::vector<MessageEnd>& ends) {
  std::uint32_t num_parts = 0;
  for (const MessageEnd& end : ends) num_parts += end.side == MessageSide::kReceive ? 0 : end.parts;
  return num_parts > kMostWaitingParts;
}

}  // namespace

void MessageQueue::add(const MessageEnd& end, StreamWatch& watch, std::shared_ptr<void> keeper) {
  (memory::is_send(end.side) ? sends_ : receives_).push_back(end);
  const auto is_same = [&](const Noted& one) { return one.watch == &watch && one.keeper == keeper; };
  if (std::ranges::none_of(noted_, is_same)) noted_.push_back({&watch, std::move(keeper)});
}

void MessageQueue::flush() {
  const auto note = [this] {
    for (Noted& one : noted_) one.watch->note(device_, stream_, std::move(one.keeper));
  };
  try {
    launch_all();
  } catch (...) {
    if (has_launched_) note();
    throw;
  }
  note();
  sends_.clear();
  receives_.clear();
  noted_.clear();
}

void MessageQueue::launch_all() {
  if (has_many_parts(sends_) || std::ranges::any_of(sends_, is_large)) {
    await(sends_, MessageSide::kAwaitPlace);
    launch();
    copy_large_sends();
  }
  for (const MessageEnd& end : sends_) put(end);
  if (has_many_parts(receives_)) {
    await(receives_, MessageSide::kAwaitMessage);
    launch();
  }
  for (const MessageEnd& end : receives_) put(end);
  launch();
}

// Behind the waits for their places. Their parts signal. They wait, too: if the first wait is ended, there is no signal.
void MessageQueue::copy_large_sends() {
  for (MessageEnd& end : sends_) {
    if (!is_large(end)) continue;
    base::check(kind_.copy_async(end.to, device_, end.from, device_, end.size_bytes, stream_));
    end.part_bytes = 0;
    end.size_bytes = 0;
  }
}

void MessageQueue::await(const std::vector<MessageEnd>& ends, MessageSide side) {
  for (auto end = ends.begin(); end != ends.end(); ++end) {
    if (side == MessageSide::kAwaitMessage && !memory::is_take(end->side)) continue;
    MessageEnd wait = *end;
    wait.side = side;
    wait.parts = 1;
    wait.offset = static_cast<std::uint32_t>(
        std::count_if(ends.begin(), end, [&](const MessageEnd& other) { return other.count == end->count; }));
    put(wait);
  }
}

void MessageQueue::put(const MessageEnd& end) {
  if (num_put_ == put_.size()) launch();
  put_[num_put_++] = end;
}

void MessageQueue::launch() {
  if (num_put_ == 0) return;
  base::check(kind_.queue_messages({put_.data(), std::exchange(num_put_, 0)}, device_, stream_));
  has_launched_ = true;
}

}  // namespace weft::queued
