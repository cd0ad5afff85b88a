#include "queued/message_queue.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"

namespace weft::queued {

using memory::MessageEnd;
using memory::MessageSide;

namespace {

// By the copy engine.
bool is_large(const MessageEnd& end) {
  return memory::is_send(end.side) && end.size_bytes > kMostKernelBytes;
}

// Of ends whose parts are blocks that wait.
bool has_many_parts(const std::vector<MessageEnd>& ends) {
  std::uint32_t num_parts = 0;
  for (const MessageEnd& end : ends)
    num_parts += memory::is_send(end.side) || memory::is_take(end.side) ? end.parts : 0;
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
  const bool sends_wait = has_many_parts(sends_) || std::ranges::any_of(sends_, is_large);
  add_to_launches(sends_, sends_wait, MessageSide::kAwaitPlace);
  add_to_launches(receives_, has_many_parts(receives_), MessageSide::kAwaitMessage);
  launch();
}

// Ends that wait before do so only for themselves, and for those in front of them that have their count: the peer may need one of these
// before it goes on to the next. The count is raised between two of them, so they are in launches of their own.
void MessageQueue::add_to_launches(const std::vector<MessageEnd>& ends, bool wait_before, MessageSide side) {
  if (!wait_before) {
    for (const MessageEnd& end : ends) put(end);
    return;
  }
  std::vector<std::size_t> turns;
  for (auto end = ends.begin(); end != ends.end(); ++end) {
    turns.push_back(static_cast<std::size_t>(std::count_if(
        ends.begin(), end, [&](const MessageEnd& other) { return other.count == end->count; })));
  }
  const std::size_t num_turns = ends.empty() ? 0 : std::ranges::max(turns) + 1;
  for (std::size_t turn = 0; turn < num_turns; ++turn) {
    if (turn > 0) launch();
    const auto for_each = [&](const auto& body) {
      for (std::size_t i = 0; i < ends.size(); ++i)
        if (turns[i] == turn) body(ends[i]);
    };
    for_each([&](const MessageEnd& end) {
      if (memory::is_send(end.side) || memory::is_take(end.side)) await(end, side);
    });
    launch();
    for_each([&](const MessageEnd& end) { put(is_large(end) ? copy(end) : end); });
  }
}

void MessageQueue::await(const MessageEnd& end, MessageSide side) {
  MessageEnd wait = end;
  wait.side = side;
  wait.parts = 1;
  put(wait);
}

// Queues the copy behind the wait for its place. What is left signals. It waits, too: if the first wait is ended, there is no signal.
MessageEnd MessageQueue::copy(const MessageEnd& end) {
  base::check(kind_.copy_async(end.to, device_, end.from, device_, end.size_bytes, stream_));
  MessageEnd rest = end;
  rest.part_bytes = 0;
  rest.size_bytes = 0;
  return rest;
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
