#include "models/chare/elements/placements.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "weft/runtime/runtime.h"

namespace weft::chare {

namespace {

bool any_overlap(const Placements::Ranges& some, const Placements::Ranges& others) {
  return std::ranges::any_of(some, [&others](const Placements::Range& range) {
    return std::ranges::any_of(others,
                               [&range](const Placements::Range& other) { return range.overlaps(other); });
  });
}

}  // namespace

Placements::Ranges Placements::ranges_of(std::span<const runtime::ReceiveBuffer> receive_buffers) {
  Ranges ranges;
  for (const runtime::ReceiveBuffer& receive_buffer : receive_buffers) {
    if (!receive_buffer.into) continue;
    const auto begin = reinterpret_cast<std::uintptr_t>(receive_buffer.into.buffer().data);
    const std::size_t size_bytes =
        std::min(receive_buffer.into.buffer().size_bytes, receive_buffer.size_bytes);
    if (size_bytes > 0) ranges.push_back({begin, begin + size_bytes});
  }
  return ranges;
}

bool Placements::overlap_one_another(const Ranges& ranges) {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (ranges[i].overlaps(ranges[j])) return true;
    }
  }
  return false;
}

bool Placements::is_occupied(const Range& range) const {
  const auto after = occupied_.lower_bound(range.end);  // the first range behind it
  return after != occupied_.begin() && std::prev(after)->second > range.begin;
}

bool Placements::is_free(const Ranges& ranges) const {
  return std::ranges::none_of(ranges, [this](const Range& range) { return is_occupied(range); });
}

void Placements::take(const Ranges& ranges) {
  for (const Range& range : ranges) occupied_.emplace(range.begin, range.end);
}

bool Placements::occupy(const Ranges& ranges) {
  const bool is_wanted = std::ranges::any_of(
      waiting_, [&ranges](const Waiting& earlier) { return any_overlap(earlier.ranges, ranges); });
  if (is_wanted || !is_free(ranges)) return false;
  take(ranges);
  return true;
}

void Placements::wait(runtime::MessagePtr message, const Ranges& ranges,
                      std::span<runtime::ReceiveBuffer> receive_buffers) {
  Waiting call{std::move(message), ranges, {}};
  call.receive_buffers.assign(std::make_move_iterator(receive_buffers.begin()),
                              std::make_move_iterator(receive_buffers.end()));
  waiting_.push_back(std::move(call));
}

void Placements::release(const Ranges& ranges) {
  if (ranges.empty()) return;
  for (const Range& range : ranges) occupied_.erase(range.begin);
  // place() may complete at once and call release() again, so take all memory before placing any call.
  std::vector<Waiting> free;
  for (auto call = waiting_.begin(); call != waiting_.end();) {
    const bool is_wanted = std::any_of(waiting_.begin(), call, [&call](const Waiting& earlier) {
      return any_overlap(earlier.ranges, call->ranges);
    });
    if (is_wanted || !is_free(call->ranges)) {
      ++call;
      continue;
    }
    take(call->ranges);
    free.push_back(std::move(*call));
    call = waiting_.erase(call);
  }
  for (Waiting& call : free) runtime_.place(std::move(call.message), call.receive_buffers);
}

}  // namespace weft::chare
