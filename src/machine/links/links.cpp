#include "machine/links/links.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/format.h"
#include "machine/bootstrap/launcher/blocked_signals.h"
#include "machine/links/link_socket.h"

namespace weft::machine {

namespace {

// A process that leaves says so before its links close. What has come by then is read in this many rounds: its connection is accepted,
// its greeting is read, its message is read.
constexpr int kRoundsToJudge = 4;
// Of one link in one round, so that the others have their turn.
constexpr int kMessagesInRound = 64;

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
  return base::format("weft-link-{:016x}{:016x}-{}", name.job[0], name.job[1], name.rank);
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

void Links::close(int limit_ms) {
  if (!thread_.joinable()) return;
  {
    std::unique_lock lock(mutex_);
    say_goodbye();
    wake();
    written_.wait_for(lock, std::chrono::milliseconds(limit_ms), [this] {
      return std::ranges::none_of(outgoing_, [](const auto& entry) { return entry.second.has_waiting(); });
    });
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
  std::vector<pollfd> watched;
  while (true) {
    watched.assign({{wake_fd_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}});
    {
      const std::lock_guard lock(mutex_);
      if (stops_) return;
      for (const IncomingLink& link : incoming_) watched.push_back({link.fd(), POLLIN, 0});
      for (const auto& [name, link] : outgoing_)
        if (!link.is_broken())
          watched.push_back({link.fd(), static_cast<short>(link.has_waiting() ? POLLOUT : 0), 0});
    }
    if (poll(watched.data(), watched.size(), suspects_.empty() ? -1 : 0) < 0 && errno != EINTR) return;
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
          left_.insert(link.hello().from);
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

void Links::judge_suspects() {
  for (auto suspect = suspects_.begin(); suspect != suspects_.end();) {
    auto& [name, rounds] = *suspect;
    if (--rounds > 0) {
      ++suspect;
      continue;
    }
    if (left_.insert(name).second && !name.is_launcher()) receiver_.lost(name);
    suspect = suspects_.erase(suspect);
  }
}

}  // namespace weft::machine
