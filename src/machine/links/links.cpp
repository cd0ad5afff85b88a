#include "machine/links/links.h"

#include <dirent.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/format.h"
#include "machine/bootstrap/launcher/blocked_signals.h"
#include "machine/links/link_socket.h"

namespace weft::machine {

namespace {

// A process that leaves says so before its links close. A link from it that is not accepted yet is in this many rounds: its connection is
// accepted, its greeting is read, its message is read. While a link from it is open, it is not judged.
constexpr int kRoundsToJudge = 4;
// How long a process without free descriptors waits before it tries again to accept a connection.
constexpr int kNoDescriptorsMs = 20;
// Of one link in one round, so that the others have their turn.
constexpr int kMessagesInRound = 64;

constexpr std::string_view kAddressPrefix = "weft-link-";

bool is_link_address(int (*name_of)(int, sockaddr*, socklen_t*), int fd) {
  sockaddr_un address{};
  socklen_t size = sizeof address;
  return name_of(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 && address.sun_family == AF_UNIX &&
         size > offsetof(sockaddr_un, sun_path) + kAddressPrefix.size() &&
         std::memcmp(address.sun_path + 1, kAddressPrefix.data(), kAddressPrefix.size()) == 0;
}

base::Status no_resource(std::string_view what, int error) {
  return {
      base::StatusCode::kInternal,
      base::format("no messages to and from other jobs: {}: {} (errno {}); check `ulimit -n` and `ulimit -u`",
                   what, std::strerror(error), error)};
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

}  // namespace

std::string link_address(const ProcessName& name) {
  return base::format("{}{:016x}{:016x}-{}", kAddressPrefix, name.job[0], name.job[1], name.rank);
}

// The descriptors are those that the system tells: a thread of the parent may have been changing the links.
void close_links_after_fork() {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  while (const dirent* const entry = readdir(folder)) {
    const int fd = static_cast<int>(std::strtol(entry->d_name, nullptr, 10));
    if (is_link_address(&getsockname, fd) || is_link_address(&getpeername, fd)) ::close(fd);
  }
  closedir(folder);
}

base::Result<std::unique_ptr<Links>> Links::open(const ProcessName& own, std::uint32_t revision,
                                                 Receiver& receiver) {
  std::unique_ptr<Links> self(new Links(own, revision, receiver));
  if (base::Status status = self->listen(); status.failed()) return status;
  self->wake_fd_ = OwnedFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!self->wake_fd_.is_open()) return no_resource("no event descriptor", errno);
  const bootstrap::BlockedSignals blocked;
  try {
    self->thread_ = std::thread([links = self.get()] { links->run(); });
  } catch (const std::system_error& error) {
    return no_resource("no thread", error.code().value());
  }
  return self;
}

Links::~Links() { close(0); }

base::Status Links::listen() {
  listener_ = OwnedFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_.is_open()) return no_resource("no socket", errno);
  const LinkSocketAddress address(own_);
  if (bind(listener_.get(), address.get(), address.size()) != 0 || ::listen(listener_.get(), SOMAXCONN) != 0)
    return no_resource("no address for its socket", errno);
  return {};
}

void Links::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_fd_.get(), &one, sizeof one);
}

// --- Sending

base::Result<OutgoingLink*> Links::link_to(const ProcessName& to) {
  if (const auto known = outgoing_.find(to); known != outgoing_.end()) return &known->second;
  base::Result<OutgoingLink> made = OutgoingLink::connect(to);
  if (!made.ok()) return made.status();
  OutgoingLink& link = outgoing_.emplace(to, std::move(made).value()).first->second;
  LinkHello hello;
  hello.revision = revision_;
  hello.from = own_;
  hello.to = to;
  link.send({bytes_of(hello)});
  wake();  // the thread watches the link from now on
  return &link;
}

base::Status Links::send(const ProcessName& to, std::uint32_t type,
                         std::initializer_list<std::span<const std::byte>> parts) {
  const std::lock_guard lock(mutex_);
  base::Result<OutgoingLink*> found = link_to(to);
  if (!found.ok()) return found.status();
  OutgoingLink& link = **found;
  LinkHeader header{.type = type};
  for (const auto& part : parts) header.size_bytes += part.size();
  const auto part = [&](std::size_t i) {
    return i < parts.size() ? parts.begin()[i] : std::span<const std::byte>();
  };
  const bool had_waiting = link.has_waiting();
  link.send({bytes_of(header), part(0), part(1), part(2), part(3)});
  if (link.has_waiting() && !had_waiting) wake();
  if (!link.is_broken()) return {};
  return {base::StatusCode::kClosed, base::format("rank {} of another job has ended", to.rank)};
}

void Links::say_goodbye() {
  for (const ProcessName& sender : senders_)
    if (!sender.is_launcher()) static_cast<void>(link_to(sender));
  const LinkHeader goodbye{.type = LinkHeader::kGoodbye};
  for (auto& [name, link] : outgoing_) link.send({bytes_of(goodbye)});
}

std::size_t Links::unwritten_bytes() const {
  return std::accumulate(
      outgoing_.begin(), outgoing_.end(), std::size_t{0},
      [](std::size_t sum, const auto& entry) { return sum + entry.second.unwritten_bytes(); });
}

void Links::close(int limit_ms) {
  if (!thread_.joinable()) return;
  {
    std::unique_lock lock(mutex_);
    say_goodbye();
    wake();
    std::size_t before = std::numeric_limits<std::size_t>::max();
    for (std::size_t left = unwritten_bytes(); left > 0 && left < before; left = unwritten_bytes()) {
      before = left;
      written_.wait_for(lock, std::chrono::milliseconds(limit_ms), [this] { return unwritten_bytes() == 0; });
    }
    stops_ = true;
  }
  wake();
  thread_.join();
  outgoing_.clear();
  incoming_.clear();
  listener_ = {};
}

// --- The thread

void Links::run() {
  try {
    run_rounds();
  } catch (const std::bad_alloc&) {
    receiver_.failed("this process has no memory left for messages of connected jobs");
  }
}

std::vector<pollfd> Links::watched() {
  std::vector<pollfd> watched{{wake_fd_.get(), POLLIN, 0}};
  if (has_descriptors_) watched.push_back({listener_.get(), POLLIN, 0});
  const std::lock_guard lock(mutex_);
  if (stops_) return {};
  for (const IncomingLink& link : incoming_) watched.push_back({link.fd(), POLLIN, 0});
  for (const auto& [name, link] : outgoing_)
    if (!link.is_broken())
      watched.push_back({link.fd(), static_cast<short>(link.has_waiting() ? POLLOUT : 0), 0});
  return watched;
}

void Links::run_rounds() {
  while (true) {
    std::vector<pollfd> all = watched();
    if (all.empty()) return;
    const int limit_ms = has_due_suspect() ? 0 : has_descriptors_ ? -1 : kNoDescriptorsMs;
    if (poll(all.data(), all.size(), limit_ms) < 0 && errno != EINTR)
      return receiver_.failed(
          base::format("no messages of connected jobs can be awaited: {}", std::strerror(errno)));
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t drained = ::read(wake_fd_.get(), &count, sizeof count);
    std::erase_if(incoming_, [this](IncomingLink& link) { return !read(link); });
    accept_all();
    tend_outgoing();
    judge_suspects();
  }
}

void Links::accept_all() {
  while (true) {
    const int fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    has_descriptors_ = fd >= 0 || (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM);
    if (fd < 0) return;
    IncomingLink link(fd);
    if (is_own_user(fd)) incoming_.push_back(std::move(link));
  }
}

bool Links::read(IncomingLink& link) {
  for (int i = 0; i < kMessagesInRound; ++i) {
    switch (link.read()) {
      case IncomingLink::Read::kNothing:
        return true;
      case IncomingLink::Read::kEnd:
        if (link.has_greeted()) suspects_.emplace(link.hello().from, kRoundsToJudge);
        return false;
      case IncomingLink::Read::kHello: {
        if (link.hello().revision != revision_ || link.hello().to != own_) return false;
        const std::lock_guard lock(mutex_);
        senders_.insert(link.hello().from);
        break;
      }
      case IncomingLink::Read::kMessage:
        if (link.type() == LinkHeader::kGoodbye) {
          if (left_.insert(link.hello().from).second) receiver_.gone(link.hello().from, true);
        } else {
          receiver_.arrived(link.hello().from, link.type(), link.take_bytes());
        }
    }
  }
  return true;
}

void Links::tend_outgoing() {
  const std::lock_guard lock(mutex_);
  bool has_waiting = false;
  for (auto& [name, link] : outgoing_) {
    if (!link.is_broken()) {
      link.flush();
      // The receiver sends nothing on this socket, so it is readable only if it has closed.
      pollfd state{link.fd(), POLLIN, 0};
      if (poll(&state, 1, 0) > 0 && (state.revents & (POLLIN | POLLHUP | POLLERR)) != 0) link.set_broken();
    }
    if (link.is_broken() && !left_.contains(name)) suspects_.emplace(name, kRoundsToJudge);
    has_waiting = has_waiting || link.has_waiting();
  }
  if (!has_waiting) written_.notify_all();
}

bool Links::has_open_link_from(const ProcessName& name) const {
  return std::ranges::any_of(
      incoming_, [&](const IncomingLink& link) { return link.has_greeted() && link.hello().from == name; });
}

bool Links::has_due_suspect() const {
  return std::ranges::any_of(suspects_,
                             [this](const auto& suspect) { return !has_open_link_from(suspect.first); });
}

void Links::judge_suspects() {
  for (auto suspect = suspects_.begin(); suspect != suspects_.end();) {
    auto& [name, rounds] = *suspect;
    if (has_open_link_from(name) || --rounds > 0) {
      ++suspect;
      continue;
    }
    if (left_.insert(name).second && !name.is_launcher()) receiver_.gone(name, false);
    suspect = suspects_.erase(suspect);
  }
}

}  // namespace weft::machine
