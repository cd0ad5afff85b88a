// The queues of all PEs of a host, in one file that its first PE has made, and the sockets by which sleepers are woken.
//
// PEs tell each other what they need in their introductions. A PE that cannot open the file keeps its queue closed, and
// then its messages take the transport.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/status.h"

#include "base/shared_mapping.h"
#include "machine/host_queue/host_queue.h"
#include "machine/host_queue/waiting_messages.h"

namespace weft::machine {

// The name of a PE's queues, which it sends to all other PEs as its bytes. All zeros: this PE takes part in no queue.
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
  // kNo when the message must go another way. kFull when it must wait: see wait_for_room(). kToSleeper when it is in the queue, and
  // the receiver could not be woken: the caller must do it in another way.
  Sent send(int pe, AmId id, std::span<const std::byte> header, std::span<const std::byte> payload) {
    if (senders_ == nullptr) return Sent::kNo;
    HostQueueSender& sender = senders_[pe];
    const Sent sent = sender.send(id, header, payload);
    if (sent == Sent::kToSleeper) [[unlikely]]
      return wake(sender.head()) ? Sent::kYes : Sent::kToSleeper;
    return sent;
  }
  // After kFull: the message, and all later ones to that PE, are sent by send_waiting(). See WaitingMessages::add().
  [[gnu::cold, gnu::noinline]] void wait_for_room(int pe, AmId id, std::span<const std::byte> header,
                                                  std::span<const std::byte> payload,
                                                  base::Completion* completion);
  // After kFull, in a start call: sends what waits for the PE and has no completion. Returns whether nothing waits for it any more: then
  // send() may find room.
  [[gnu::cold, gnu::noinline]] bool send_copies(int pe, const std::function<void(int pe)>& woken);
  bool has_waiting() const { return !waiting_.is_empty(); }
  // Calls woken(pe) for each sleeper that it could not wake. Returns whether a message was sent.
  bool send_waiting(const std::function<void(int pe)>& woken);
  // Messages to that PE take the other way from now on. Those that wait are dropped.
  std::vector<base::Completion*> lose(int pe);
  // Messages that wait are dropped.
  std::vector<base::Completion*> take_waiting() { return waiting_.take_completions(); }
  bool has_sent_to(int pe) const { return senders_ != nullptr && senders_[pe].has_sent(); }
  // Each progress() of the machine asks, whether there are queues or not.
  bool has_message() { return receiver_.has_message(); }
  // Delivers messages that are here, at most kMostAtOnce, until deliver() returns true. `deliver` may close the queues.
  // REQUIRES: has_message() has just returned true.
  template <class Deliver>
  void progress(Deliver deliver) {
    if (!receiver_.receive(kMostAtOnce, deliver)) [[unlikely]]
      report_broken();
  }

  // Before the PE sleeps. False if a message is there already. Else the descriptor becomes readable when one comes.
  bool before_sleep() { return !receiver_ || receiver_.before_sleep(); }
  void after_sleep();
  int descriptor() const { return receiver_ ? socket_ : -1; }

  // Nothing is received after this.
  void close_receiver();
  // Nothing is sent after this. REQUIRES: no message waits.
  void close();

 private:
  static constexpr int kMostAtOnce = 32;

  [[gnu::cold, gnu::noinline]] static void report_broken();

  base::Status open_socket();
  base::Status make_file(std::size_t pes_on_host);
  base::Status open_file(const base::SharedMappingName& name, std::size_t pes_on_host);
  base::Status name_socket_in(QueueHead& head) const;
  // send() for a message that waits, to a PE whose sender is held.
  bool send_held(int pe, AmId id, std::span<const std::byte> header, std::span<const std::byte> payload,
                 const std::function<void(int pe)>& woken);
  [[gnu::cold, gnu::noinline]] bool wake(const QueueHead& head) const;
  void release();

  HostQueuesName name_;
  base::SharedMapping made_;  // the others open it if this is the host's first PE
  base::SharedMapping file_;  // of the host's first PE
  int socket_ = -1;
  std::unique_ptr<HostQueueSender[]> senders_;  // by PE; null if there are no queues
  WaitingMessages waiting_;
  HostQueueReceiver receiver_;
  base::Status failure_;
};

}  // namespace weft::machine
