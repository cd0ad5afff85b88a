// The sockets by which UCX wakes this process for messages in shared memory: datagram sockets in the abstract namespace, which
// have no permissions. Datagrams of other users are found by their credentials and dropped.
//
// UCX reads one datagram for each sleep, and does not ask who sent it.
//
// Threads: one at a time.
#pragma once

#include <sys/types.h>

#include <span>
#include <vector>

namespace weft::machine::ucx {

// The descriptors of the bound datagram sockets of the local host that this process has.
std::vector<int> local_datagram_sockets();

// From now on the system tells who sends to them.
void ask_for_senders(std::span<const int> sockets);

// Drops the datagrams of other users than `user` at the head of each queue. Returns whether there were any.
bool drop_datagrams_of_others(std::span<const int> sockets, uid_t user);

}  // namespace weft::machine::ucx
