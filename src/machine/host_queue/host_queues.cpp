#include "machine/host_queue/host_queues.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/format.h"
#include "base/host_number.h"

namespace weft::machine {

using base::Result;
using base::SharedMapping;
using base::Status;
using base::StatusCode;

namespace {

// A page for the file's random number, then the queues.
constexpr std::size_t kHeadBytes = 4096;
static_assert(kHeadBytes >= SharedMapping::kNonceBytes && kHeadBytes % alignof(QueueHead) == 0);
// Datagrams that are read after a sleep.
constexpr int kMostWakes = 16;

std::size_t file_bytes(std::size_t pes_on_host) {
  return kHeadBytes + pes_on_host * HostQueue::size_bytes(pes_on_host);
}

Status system_failed(const char* call) {
  return {StatusCode::kInternal, base::format("queues between the PEs of this host: {} failed with '{}'",
                                              call, std::strerror(errno))};
}

using WakeWord = decltype(QueueHead::wake_word);

// The bytes at `offset`, as the program of a filter loads them.
std::uint32_t filter_word(const WakeWord& word, std::size_t offset) {
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, word.data() + offset, sizeof bytes);
  return ntohl(bytes);
}

// The system drops all other datagrams. Any user may send some to the socket, which has no permissions, and each would end the
// sleep of this PE. Without the filter, on systems that have none, they do.
void accept_only(int socket, const WakeWord& word) {
  std::array<sock_filter, 6> program = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, filter_word(word, 0), 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, filter_word(word, 4), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, sizeof(WakeWord)),
      BPF_STMT(BPF_RET | BPF_K, 0),
  }};
  const sock_fprog filter{.len = program.size(), .filter = program.data()};
  static_cast<void>(::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter));
}

}  // namespace

HostQueues::~HostQueues() {
  close();
  release();
}

void HostQueues::release() {
  file_ = {};
  made_ = {};
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

void HostQueues::make(int pes_on_host) {
  if (pes_on_host < 2) return;
  if (static_cast<std::size_t>(pes_on_host) > kMostQueuePes) {
    failure_ = {
        StatusCode::kUnsupported,
        base::format("queues between the PEs of this host: there are {} PEs, and at most {} have some",
                     pes_on_host, kMostQueuePes)};
    return;
  }
  failure_ = take_part_in_fences();
  if (failure_.ok()) failure_ = open_socket();
  if (failure_.ok()) failure_ = make_file(static_cast<std::size_t>(pes_on_host));
  if (failure_.failed()) release();
}

Status HostQueues::make_file(std::size_t pes_on_host) {
  HostQueuesName name;
  name.host = base::host_number();
  if (name.host == 0) {
    return {StatusCode::kUnsupported,
            "queues between the PEs of this host: /proc does not name its namespaces"};
  }
  Result<SharedMapping> file = SharedMapping::create("weft-queues", file_bytes(pes_on_host));
  if (!file.ok()) return file.status();
  made_ = std::move(*file);
  name.file = made_.name();
  name_ = name;
  return {};
}

Status HostQueues::open_socket() {
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) return system_failed("socket");
  // With the family alone the system chooses a name that is free.
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address.sun_family) != 0) {
    return system_failed("bind");
  }
  return {};
}

void HostQueues::open(std::span<const HostQueuesName> names, int pe) {
  if (name_.host == 0) return;
  std::vector<std::size_t> here;
  for (std::size_t other = 0; other < names.size(); ++other) {
    if (names[other].host == name_.host) here.push_back(other);
  }
  if (here.size() < 2) return;
  failure_ = open_file(names[here.front()].file, here.size());
  if (failure_.failed()) return release();
  const auto queue_of = [&](std::size_t rank) {
    return HostQueue(file_.data() + kHeadBytes + rank * HostQueue::size_bytes(here.size()), here.size());
  };
  const auto own =
      static_cast<std::size_t>(std::ranges::find(here, static_cast<std::size_t>(pe)) - here.begin());
  failure_ = name_socket_in(queue_of(own).head());
  if (failure_.failed()) return release();
  senders_ = std::make_unique<HostQueueSender[]>(names.size());
  for (std::size_t rank = 0; rank < here.size(); ++rank) {
    if (rank != own) senders_[here[rank]] = HostQueueSender(queue_of(rank), own);
  }
  receiver_ = HostQueueReceiver(queue_of(own), own, here.size());
  receiver_.open();
  if (own != 0) made_ = {};
}

Status HostQueues::name_socket_in(QueueHead& head) const {
  sockaddr_un address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      size != offsetof(sockaddr_un, sun_path) + head.socket_name.size()) {
    return system_failed("getsockname");
  }
  std::copy_n(address.sun_path, head.socket_name.size(), head.socket_name.begin());
  if (::getrandom(head.wake_word.data(), head.wake_word.size(), 0) != sizeof(WakeWord))
    return system_failed("getrandom");
  accept_only(socket_, head.wake_word);
  return {};
}

Status HostQueues::open_file(const base::SharedMappingName& name, std::size_t pes_on_host) {
  Result<SharedMapping> file = SharedMapping::open(name, file_bytes(pes_on_host));
  if (!file.ok()) {
    return {file.status().code(),
            base::format("the file of the queues of this host's {} PEs cannot be opened: {}", pes_on_host,
                         file.status().message())};
  }
  file_ = std::move(*file);
  return {};
}

bool HostQueues::wake(const QueueHead& head) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(head.socket_name, address.sun_path);
  // Fails when this socket has many datagrams under way that their receivers have not read.
  return ::sendto(socket_, head.wake_word.data(), head.wake_word.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(&address),
                  static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + head.socket_name.size())) >= 0;
}

void HostQueues::after_sleep() {
  if (!receiver_) return;
  receiver_.after_sleep();
  // Several may have come. What is left wakes this PE once more.
  char byte = 0;
  for (int i = 0; i < kMostWakes && ::recv(socket_, &byte, sizeof byte, MSG_DONTWAIT) >= 0; ++i) {
  }
}

void HostQueues::wait_for_room(int pe, AmId id, std::span<const std::byte> header,
                               std::span<const std::byte> payload, base::Completion* completion) {
  waiting_.add(pe, id, header, payload, completion);
  senders_[pe].hold();
}

bool HostQueues::send_held(int pe, AmId id, std::span<const std::byte> header,
                           std::span<const std::byte> payload, const std::function<void(int pe)>& woken) {
  HostQueueSender& sender = senders_[pe];
  sender.release();
  const Sent sent = send(pe, id, header, payload);
  sender.hold();
  if (sent == Sent::kToSleeper) woken(pe);
  return sent == Sent::kYes || sent == Sent::kToSleeper;
}

bool HostQueues::send_waiting(const std::function<void(int pe)>& woken) {
  return waiting_.send(
      [&](int pe, AmId id, std::span<const std::byte> header, std::span<const std::byte> payload) {
        return send_held(pe, id, header, payload, woken);
      },
      [&](int pe) { senders_[pe].release(); });
}

bool HostQueues::send_copies(int pe, const std::function<void(int pe)>& woken) {
  const bool is_over = waiting_.send_copies(
      pe, [&](int, AmId id, std::span<const std::byte> header, std::span<const std::byte> payload) {
        return send_held(pe, id, header, payload, woken);
      });
  if (is_over) senders_[pe].release();
  return is_over;
}

std::vector<base::Completion*> HostQueues::lose(int pe) {
  if (senders_ != nullptr) senders_[pe] = HostQueueSender();
  return waiting_.take_completions(pe);
}

void HostQueues::close_receiver() {
  if (receiver_) receiver_.close();
}

void HostQueues::close() {
  close_receiver();
  senders_.reset();
}

void HostQueues::report_broken() {
  std::fputs(
      "weft: a PE of this host has written a message that cannot be; its further small messages are not "
      "read\n",
      stderr);
}

}  // namespace weft::machine
