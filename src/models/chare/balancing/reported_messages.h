// The messages that elements have sent, in the report of a PE to the PE that decides about load balancing.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "weft/balance/snapshot.h"
#include "weft/base/status.h"
#include "weft/chare/sent_messages.h"

#include "base/format.h"

namespace weft::chare {

// Messages that the element at that position of the report has sent. Travels as its bytes.
struct ReportedMessages {
  std::uint64_t position = 0;
  SentTo sent;
};
static_assert(std::is_trivially_copyable_v<ReportedMessages> && sizeof(ReportedMessages) == 32);

// Calls `add` with the index of a sender and what it has sent to one receiver, for each of `messages`. `loads` are those of the
// report; indices are less than `size`. `sum_bytes` is that of all reports so far. kInvalidArgument, which says what is wrong: the
// messages are a claim of a peer.
template <class Load, class Add>
base::Status read_messages(std::span<const Load> loads, std::span<const ReportedMessages> messages,
                           std::uint64_t size, std::uint64_t& sum_bytes, Add add) {
  std::vector<SentTo> sent;  // by one element
  for (std::size_t i = 0; i < messages.size();) {
    const std::uint64_t position = messages[i].position;
    if (position >= loads.size() || (i > 0 && position <= messages[i - 1].position)) {
      return {base::StatusCode::kInvalidArgument,
              base::format("it reports messages of element number {} of {} of its report", position,
                           loads.size())};
    }
    sent.clear();
    for (; i < messages.size() && messages[i].position == position; ++i) sent.push_back(messages[i].sent);
    const std::uint64_t sender = loads[position].index;
    if (!SentMessages::are_valid(sent, sender, size)) {
      return {base::StatusCode::kInvalidArgument,
              base::format("it reports {} receivers of messages of element {}, or counts, that cannot be",
                           sent.size(), sender)};
    }
    for (const SentTo& to : sent) {
      sum_bytes += to.bytes;
      if (sum_bytes > balance::kMaxEdgeBytes) {
        return {base::StatusCode::kInvalidArgument,
                base::format("it reports messages of element {} that make the sum of bytes {}", sender,
                             sum_bytes)};
      }
      add(sender, to);
    }
  }
  return {};
}

}  // namespace weft::chare
