// Check mode (`weft run --check`, WEFT_CHECK=1): each message of a channel is announced by what it consists
// of, and a receive of other elements is an error that names both.
//
// Otherwise nothing of a message but its size is known: its tag has no bits left, and receives that ignored
// some bits of it would make UCX search a list for each message.
//
// The sender tells the receiving end, in an active message, what message n consists of. The receive of
// message n completes when both have come. Messages agree if
//   - one of them is plain bytes, or both have the same type of elements; and
//   - one of them has one dimension at most, extents of 1 not counted, or both have the same extents.
//
// The bytes of a send in place must not change before the send is over. UnchangedSends takes a checksum of the buffer when the program
// calls send(), and again when the operation ends. If they differ, the operation fails with an Error that names channel, message and
// buffer: the receiver may have got the old bytes, the new ones or a mix. Host memory only, because the CPU does not read that of devices.
//
// Threads: the PE's. Invariant: a receive completes exactly once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "weft/base/completion.h"
#include "weft/memory/buffer.h"
#include "weft/runtime/operation.h"
#include "weft/runtime/runtime.h"

#include "models/channel/description.h"
#include "models/channel/end_table.h"

namespace weft::channel {

class CheckedMessages {
 public:
  // `runtime` and `ends` must outlive it; `handler` is its own.
  CheckedMessages(runtime::Runtime& runtime, const EndTable& ends, runtime::HandlerId handler);
  CheckedMessages(const CheckedMessages&) = delete;
  CheckedMessages& operator=(const CheckedMessages&) = delete;

  // Tells the receiving end of what message `counter` consists. REQUIRES: the peer is known.
  void tell(const ChannelEnd& end, std::uint32_t counter, const Description& description);
  // Returns the completion for the data of message `counter`: give it to a start function, and the function's result to
  // started(). `operation` completes when the data and the sender's description have come.
  base::Completion* expect(const ChannelEnd& end, std::uint32_t counter, Description description,
                           runtime::OperationState* operation);
  // The sender does not describe message `counter`, because it does not send it.
  void expect_none(const ChannelEnd& end, std::uint32_t counter);
  // REQUIRES: `data` came from expect().
  void started(base::Completion* data, base::Status status, std::size_t size_bytes);
  // That end of this PE is gone.
  void forget(std::uint32_t end_number) {
    descriptions_.erase(descriptions_.lower_bound({end_number, 0}),
                        descriptions_.lower_bound({end_number + 1, 0}));
  }
  // The machine is closed: ends what waits for a message of the sender.
  void close();

 private:
  struct Receive;
  using Key = std::pair<std::uint32_t, std::uint32_t>;  // end and counter

  void on_message(runtime::MessagePtr message);
  void describe(Key key, Description description);
  void data_arrived(Receive& receive, base::Status status, std::size_t size_bytes);
  void finish(Receive& receive, base::Status status);

  runtime::Runtime& runtime_;
  const EndTable& ends_;
  runtime::HandlerId handler_;
  std::map<Key, Description> descriptions_;  // for receives that are not over
  std::map<Key, Receive*> waiting_;          // receives whose data has come
};

class UnchangedSends {
 public:
  // What an operation needs in its extra bytes, behind `before` bytes of others.
  static constexpr std::size_t extra_bytes(std::size_t before) { return aligned(before) + sizeof(SentBytes); }
  // REQUIRES: the operation was made with extra_bytes(before); the buffer is in host memory.
  static void note(runtime::OperationState* operation, std::size_t before, const memory::ConstBuffer& buffer);
  // For the finisher of an operation of note(): fails it if the bytes have changed. `counter`: the number of the message.
  [[gnu::cold, gnu::noinline]] static void check(runtime::OperationState* operation, std::size_t before,
                                                 const ChannelEnd& end, std::uint32_t counter);

 private:
  struct SentBytes {
    const void* data = nullptr;
    std::size_t size_bytes = 0;
    std::uint32_t checksum = 0;
  };
  static constexpr std::size_t aligned(std::size_t before) {
    return (before + alignof(SentBytes) - 1) / alignof(SentBytes) * alignof(SentBytes);
  }
};

}  // namespace weft::channel
