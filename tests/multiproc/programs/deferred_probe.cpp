// Messages between processes whose poster defers them: placed in another order, refused, and left behind when
// the job ends. Ends with a sentence and code 1 when something is wrong.
//
//     deferred_probe            all of that
//     deferred_probe die        the sender dies while its message is deferred
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weft/weft.h"

namespace {

using weft::runtime::Message;
using weft::runtime::MessagePtr;

constexpr weft::runtime::HandlerId kHandler = weft::runtime::kNumHandlers - 1;
constexpr std::size_t kSizes[] = {8, 1000, 20'000, 1'500'000};
constexpr std::size_t kLarge = kSizes[3];  // fetched from the sender, not sent eagerly

class Peer : public weft::Chare<Peer> {
 public:
  Peer() {
    runtime().set_handler(
        kHandler,
        [](void* context, MessagePtr message) {
          static_cast<Peer*>(context)->handled_.push_back(std::move(message));
        },
        this);
    runtime().set_poster(kHandler,
                         [](void* context, MessagePtr& message, std::span<weft::runtime::ReceiveBuffer>) {
                           static_cast<Peer*>(context)->deferred_.push_back(std::move(message));
                           return weft::runtime::Posting::kDefer;
                         });
  }

  int num_deferred() { return static_cast<int>(deferred_.size()); }
  std::vector<std::uint8_t> large_answer() { return std::vector<std::uint8_t>(10'000); }
  int num_handled() { return static_cast<int>(handled_.size()); }
  void place_last_first() {
    while (!deferred_.empty()) {
      MessagePtr message = std::move(deferred_.back());
      deferred_.pop_back();
      std::vector<weft::runtime::ReceiveBuffer> receive_buffers = runtime().receive_buffers_of(*message);
      runtime().place(std::move(message), receive_buffers);
    }
  }
  void refuse_all() { deferred_.clear(); }
  // The sum of all bytes that were handled.
  std::uint64_t sum() {
    std::uint64_t sum = 0;
    for (const MessagePtr& message : handled_) {
      const weft::memory::Buffer& buffer = message->attachments()[0].buffer();
      const auto* bytes = static_cast<const std::uint8_t*>(buffer.data);
      sum = std::accumulate(bytes, bytes + buffer.size_bytes, sum);
    }
    return sum;
  }

 private:
  std::vector<MessagePtr> deferred_;
  std::vector<MessagePtr> handled_;
};

weft::Operation send(weft::Runtime& runtime, std::vector<std::uint8_t>& bytes) {
  MessagePtr message = Message::pack(runtime, kHandler, std::uint64_t{bytes.size()});
  message->attach(weft::runtime::Attachment({bytes.data(), bytes.size(), {}, nullptr}));
  weft::Operation sent(report_sending(runtime, *message));
  runtime.send(1, std::move(message));
  return sent;
}

void expect(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

weft::Task<> until_deferred(weft::ElementProxy<Peer> peer, int count) {
  for (;;) {
    const int deferred = co_await peer.call<&Peer::num_deferred>();
    if (deferred == count) co_return;
  }
}

weft::Task<> probe(weft::Runtime& runtime, bool dies) {
  auto peers = weft::Group<Peer>::create(runtime);
  auto peer = peers[1];
  co_await peers.call<&Peer::num_deferred>();  // handler and poster are set on every PE

  std::vector<std::vector<std::uint8_t>> sent;
  std::vector<weft::Operation> operations;
  std::uint64_t expected = 0;
  for (std::size_t size : kSizes) {
    std::vector<std::uint8_t> bytes(size, static_cast<std::uint8_t>(size % 251 + 1));
    expected = std::accumulate(bytes.begin(), bytes.end(), expected);
    sent.push_back(std::move(bytes));
    operations.push_back(send(runtime, sent.back()));
  }
  co_await until_deferred(peer, static_cast<int>(std::size(kSizes)));
  expect(!operations[3].is_done(), "a large buffer was sent before it had a place");
  if (dies) {
    // UCX may crash in a PE to which a dying one has just sent its first request to connect (src/machine/ucx/README.md).
    co_await peer.call<&Peer::large_answer>();
    ::_exit(7);
  }
  peer.send<&Peer::place_last_first>();
  for (weft::Operation& operation : operations) co_await operation;
  co_await runtime.quiescence();
  const int handled = co_await peer.call<&Peer::num_handled>();
  const std::uint64_t sum = co_await peer.call<&Peer::sum>();
  expect(handled == static_cast<int>(std::size(kSizes)), "not every message was handled once");
  expect(sum == expected, "the bytes that landed are not those that were sent");

  weft::Operation refused = send(runtime, sent[3]);
  co_await until_deferred(peer, 1);
  peer.send<&Peer::refuse_all>();
  co_await refused;
  co_await runtime.quiescence();
  const int still = co_await peer.call<&Peer::num_handled>();
  expect(still == handled, "a message that was refused was handled");

  static std::vector<std::uint8_t> left_behind(kLarge, 1);  // in flight when this coroutine has ended
  send(runtime, left_behind).detach();
  co_await until_deferred(peer, 1);  // and the job ends
}

}  // namespace

int main(int argc, char** argv) {
  const bool dies = argc == 2 && std::string(argv[1]) == "die";
  return weft::run(argc, argv, [dies](weft::Runtime& runtime) { return probe(runtime, dies); });
}
