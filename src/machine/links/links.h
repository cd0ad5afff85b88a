// Links: messages between processes of different jobs on one host.
//
// A link is a Unix stream socket from one process to another, and carries messages in that direction only. The sender connects when it
// first sends. The receiver listens at an abstract address, which is made of its name; both check that the other belongs to the same
// user. A thread reads all links to this process and writes what the sockets have not taken at once, so a process that computes does
// not block its peers.
//
// Messages of one sender arrive in the order in which they were sent. There is no flow control: the receiver keeps what it has read.
#pragma once

#include <poll.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "weft/base/status.h"

#include "machine/links/incoming_link.h"
#include "machine/links/outgoing_link.h"
#include "machine/links/owned_fd.h"
#include "machine/links/process_name.h"

namespace weft::machine {

// Closes the sockets of all links in a process that has been forked, so that the end of its parent is seen at their other ends.
void close_links_after_fork();

class Links {
 public:
  // Called on the thread of the links.
  class Receiver {
   public:
    // A whole message has come. `type` and `bytes` are claims of the sender.
    virtual void arrived(const ProcessName& from, std::uint32_t type, std::vector<std::byte> bytes) = 0;
    // No message will come from the process. `is_closed`: it has called close(); else it has ended without. Called at most once for each.
    virtual void gone(const ProcessName& from, bool is_closed) = 0;
    // The links can do no more, because this process has no memory left.
    virtual void failed(const std::string& reason) = 0;

   protected:
    ~Receiver() = default;
  };

  // `revision`: of the messages; a link from a process with another one is refused. Fails if the address is taken, or if the system has
  // no descriptor or thread left. `receiver` outlives the links.
  static base::Result<std::unique_ptr<Links>> open(const ProcessName& own, std::uint32_t revision,
                                                   Receiver& receiver);
  // As close(), without waiting.
  ~Links();
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  // Sends the parts as one message; they are free when it returns. Does not wait for the receiver. kUnreachable if no process with that
  // name listens, kClosed if it has ended. Any thread.
  base::Status send(const ProcessName& to, std::uint32_t type,
                    std::initializer_list<std::span<const std::byte>> parts);
  // Waits until all messages are written, and tells the peers that this process leaves. Waits no longer if no peer takes bytes for
  // `limit_ms`. Ends the thread.
  void close(int limit_ms);

 private:
  Links(const ProcessName& own, std::uint32_t revision, Receiver& receiver)
      : own_(own), revision_(revision), receiver_(receiver) {}

  base::Status listen();
  base::Result<OutgoingLink*> link_to(const ProcessName& to);
  void say_goodbye();
  std::size_t unwritten_bytes() const;
  void wake() const;
  void run();
  void run_rounds();
  // What poll() is to watch, in the order in which the thread uses it.
  std::vector<pollfd> watched();
  void accept_all();
  // Returns whether the link stays.
  bool read(IncomingLink& link);
  // Writes what waits, and finds out which receivers have gone.
  void tend_outgoing();
  void judge_suspects();
  bool has_open_link_from(const ProcessName& name) const;
  // Whether a suspect is judged in this round or in one of the next.
  bool has_due_suspect() const;

  const ProcessName own_;
  const std::uint32_t revision_;
  Receiver& receiver_;
  OwnedFd listener_;
  OwnedFd wake_fd_;
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable written_;
  std::map<ProcessName, OutgoingLink> outgoing_;
  std::set<ProcessName> senders_;  // that have a link to this process
  bool stops_ = false;

  // --- Of the thread
  std::vector<IncomingLink> incoming_;
  bool has_descriptors_ = true;          // a connection could be accepted when one was last there
  std::set<ProcessName> left_;           // have said that they leave, or have been judged
  std::map<ProcessName, int> suspects_;  // a link of theirs has closed; in how many rounds they are judged
};

}  // namespace weft::machine
