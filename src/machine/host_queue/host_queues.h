// The queues of all PEs of a host, in one file that its first PE has made, and the sockets by which sleepers are woken.
//
// PEs tell each other what they need in their introductions. A PE that cannot open the file keeps its queue closed, and
// then its messages take the transport.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/status.h"

#include "base/shared_mapping.h"
#include "machine/host_queue/host_queue.h"

namespace weft::machine {

// What a PE tells the others. It travels as it lies in memory. All zeros: this PE takes part in no queue.
struct HostQueuesName {
  base::SharedMappingName file;
  std::uint64_t host = 0;  // equal for PEs that see the same processes and sockets
};
static_assert(std::has_unique_object_representations_v<HostQueuesName>, "padding would travel");

class HostQueues {
 public:
  HostQueues() = default;
  HostQueues(const HostQueues&) = delete;
  HostQueues& operator=(const HostQueues&) = delete;
  ~HostQueues();

  // Makes the file, which the host uses if this is its first PE, and name(), which is empty if failure() is not.
  void make(int pes_on_host);
  // Opens the file of the host's first PE. `names` of all PEs, indexed by PE. Peers may send from now on.
  void open(std::span<const HostQueuesName> names, int pe);
  const HostQueuesName& name() const { return name_; }
  // Why there are no queues; ok if there are, or if none are needed.
  const base::Status& failure() const { return failure_; }

  using Sent = HostQueueSender::Sent;
  // kNo when the message must go another way. kToSleeper when it is in the queue, and the receiver could not be woken:
  // the caller must do it in another way.
  Sent send(int pe, AmId id, std::span<const std::byte> header, std::span<const std::byte> payload) {
    if (senders_.empty()) return Sent::kNo;
    HostQueueSender& sender = senders_[static_cast<std::size_t>(pe)];
    if (!sender) return Sent::kNo;
    const Sent sent = sender.send(id, header, payload);
    if (sent == Sent::kToSleeper && wake(sender.queue())) [[unlikely]]
      return Sent::kYes;
    return sent;
  }
  bool has_sent_to(int pe) const {
    return !senders_.empty() && senders_[static_cast<std::size_t>(pe)].has_sent();
  }
  bool has_message() const { return receiver_.has_message(); }
  // Delivers what is here, at most kMostAtOnce messages. `deliver` may close the queues.
  template <class Deliver>
  void progress(Deliver deliver) {
    for (int messages = 0; messages < kMostAtOnce && receiver_.receive(deliver); ++messages) {
    }
  }

  // Before the PE sleeps. False if a message is there already. Else the descriptor becomes readable when one comes.
  bool before_sleep() { return !receiver_ || receiver_.before_sleep(); }
  void after_sleep();
  int descriptor() const { return receiver_ ? socket_ : -1; }

  // Nothing is received or sent after this.
  void close();

 private:
  static constexpr int kMostAtOnce = 32;

  base::Status open_socket();
  base::Status make_file(std::size_t pes_on_host);
  base::Status open_file(const base::SharedMappingName& name, std::size_t pes_on_host);
  base::Status receive_from(HostQueue& queue);
  HostQueue& queue(std::size_t rank) const;
  bool wake(const HostQueue& queue) const;
  void release();

  HostQueuesName name_;
  base::SharedMapping made_;  // the others open it if this is the host's first PE
  base::SharedMapping file_;  // of the host's first PE
  int socket_ = -1;
  std::vector<HostQueueSender> senders_;  // by PE
  HostQueueReceiver receiver_;
  base::Status failure_;
};

}  // namespace weft::machine
