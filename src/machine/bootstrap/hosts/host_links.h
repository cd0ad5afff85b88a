// Idle TCP connections between the hosts of a job, by which the kernel tells that a host is lost.
//
// The hosts form a ring, and each PE connects to one PE of the next host; from each PE the links lead to all others. Nothing travels on a link, so TCP's keepalive
// probes test it, which the peer's kernel answers: a peer may compute for hours and is not taken for dead. The connections
// of the transport cannot serve: data in flight is retransmitted for a quarter of an hour before TCP gives up, and TCP's
// user timeout ends a connection to a receiver that is busy.
//
// The listener is open during the start only. A connection must show the job's secret.
#pragma once

#include <string>
#include <vector>

#include "machine/bootstrap/bootstrap.h"
#include "machine/bootstrap/hosts/host_link.h"
#include "machine/bootstrap/hosts/host_table.h"

namespace weft::machine {

class HostLinks {
 public:
  HostLinks() = default;
  // Collective over the bootstrap. Waits for the other PEs, kMeetingMs at most. Links that cannot be made are named in
  // obstacles(); that is no error.
  static base::Result<HostLinks> make(Bootstrap& bootstrap);
  // The links of PE `pe`. `listener` is a listening socket, whose port the table names; -1 if there is none. Owns it.
  static HostLinks meet(HostTable table, int pe, int listener, int limit_ms);

  ~HostLinks();
  HostLinks(HostLinks&& other) noexcept;
  HostLinks& operator=(HostLinks&& other) noexcept;

  const HostTable& table() const { return table_; }
  const std::vector<HostLink>& links() const { return links_; }
  const std::vector<std::string>& obstacles() const { return obstacles_; }
  void close_link(std::size_t which);
  // As close_link(), after the peer's last word: no message is under way, so the port is free at once.
  void close_done_link(std::size_t which);
  // Tells the peers that this PE has finished, and closes its links. Without it they take the end of a link for a death.
  // Waits for the goodbyes of the PEs that have connected to this one, for that long at most.
  void say_goodbye(int limit_ms);
  // Tells the peers what this PE has lost.
  void say_loss(const std::string& reason);

  static constexpr int kMeetingMs = 10000;
  // The first byte of the only message on a link. After kLoss comes the reason.
  static constexpr char kGoodbye = 'g';
  static constexpr char kLoss = 'l';
  static constexpr std::size_t kMaxReasonBytes = 500;
  // A host is lost if it has not answered for kIdleS + kProbes * kIntervalS.
  static constexpr int kIdleS = 4;
  static constexpr int kIntervalS = 1;
  static constexpr int kProbes = 4;

 private:
  HostTable table_;
  std::vector<HostLink> links_;
  std::vector<std::string> obstacles_;
};

}  // namespace weft::machine
