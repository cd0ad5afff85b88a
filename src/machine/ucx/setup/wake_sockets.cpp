#include "machine/ucx/setup/wake_sockets.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace weft::machine::ucx {
namespace {

int option_of(int socket, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(socket, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

// Whether the system has chosen the socket's name, as for those of UCX: a null byte and five digits (unix(7), "Autobind").
bool has_chosen_name(int socket) {
  sockaddr_un address{};
  socklen_t size = sizeof address;
  return ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
         size == sizeof(sa_family_t) + 6 && address.sun_path[0] == '\0';
}

// Whether a datagram is at the head of the queue, and it is another user's.
bool is_of_other(int socket, uid_t user) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control;
  msghdr message{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (::recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT) < 0) return false;
  for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(one), sizeof sender);
    return sender.uid != user;
  }
  return false;  // the system does not tell
}

}  // namespace

std::vector<int> local_datagram_sockets() {
  std::vector<int> sockets;
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return sockets;
  while (const dirent* const entry = ::readdir(folder)) {
    const auto descriptor = static_cast<int>(std::strtol(entry->d_name, nullptr, 10));  // 0 for "." and ".."
    if (descriptor > 0 && option_of(descriptor, SO_DOMAIN) == AF_UNIX &&
        option_of(descriptor, SO_TYPE) == SOCK_DGRAM && has_chosen_name(descriptor))
      sockets.push_back(descriptor);
  }
  ::closedir(folder);
  return sockets;
}

void ask_for_senders(std::span<const int> sockets) {
  const int on = 1;
  for (const int socket : sockets)
    static_cast<void>(::setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
}

bool drop_datagrams_of_others(std::span<const int> sockets, uid_t user) {
  // As many as a queue holds by default. What is left is found before the next sleep.
  constexpr int kMost = 16;
  bool any = false;
  for (const int socket : sockets) {
    if (option_of(socket, SO_PASSCRED) != 1)
      continue;  // UCX has closed its socket, and the number is another file's
    for (int i = 0; i < kMost && is_of_other(socket, user); ++i) {
      any = true;
      static_cast<void>(::recv(socket, nullptr, 0, MSG_DONTWAIT));
    }
  }
  return any;
}

}  // namespace weft::machine::ucx
