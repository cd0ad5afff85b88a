#include "machine/bootstrap/hosts/host_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "base/format.h"
#include "machine/bootstrap/last_words.h"
#include "machine/bootstrap/launcher/blocked_signals.h"

namespace weft::machine {
namespace {

base::Status no_resource(int pe, std::string_view what, int error) {
  return {base::StatusCode::kInternal,
          base::format(
              "PE {} cannot watch the other hosts: {}: {} (errno {}). Check `ulimit -n` and `ulimit -u`.", pe,
              what, std::strerror(error), error)};
}

bool is_readable(short events) { return (events & (POLLIN | POLLHUP | POLLERR)) != 0; }

std::string printable(std::string_view text) {
  std::string shown(text);
  std::ranges::replace_if(shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  return shown;
}

base::Status lost(std::string sentence) { return {base::StatusCode::kPeerFailed, std::move(sentence)}; }

}  // namespace

base::Result<std::unique_ptr<HostWatch>> HostWatch::start(int pe, HostLinks links,
                                                          std::function<void(const std::string&)> on_loss) {
  std::unique_ptr<HostWatch> self(new HostWatch(pe, std::move(links), std::move(on_loss)));
  if (self->links_.links().empty()) return self;
  self->stop_fd_ = eventfd(0, EFD_CLOEXEC);
  if (self->stop_fd_ < 0) return no_resource(pe, "no event descriptor", errno);
  const bootstrap::BlockedSignals blocked;
  try {
    self->thread_ = std::thread([watch = self.get()] { watch->watch(); });
  } catch (const std::system_error& error) {
    return no_resource(pe, "no thread", error.code().value());
  }
  return self;
}

HostWatch::HostWatch(int pe, HostLinks links, std::function<void(const std::string&)> on_loss)
    : pe_(pe), links_(std::move(links)), on_loss_(std::move(on_loss)) {}

HostWatch::~HostWatch() {
  if (thread_.joinable()) {
    stop();
    thread_.join();
  }
  if (stop_fd_ >= 0) close(stop_fd_);
}

void HostWatch::finish() {
  has_finished_ = true;
  if (stop_fd_ >= 0) stop();
}

void HostWatch::stop() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_fd_, &one, sizeof one);
}

bool HostWatch::stops_within(int timeout_ms) const {
  pollfd stop{stop_fd_, POLLIN, 0};
  return poll(&stop, 1, timeout_ms) > 0;
}

void HostWatch::watch() {
  watch_until_stopped();
  if (has_finished_) links_.say_goodbye(kPartingMs);
}

void HostWatch::watch_until_stopped() {
  base::Status status;
  while (status.ok()) {
    std::vector<pollfd> fds = {{stop_fd_, POLLIN, 0}};
    // poll() leaves out a negative descriptor.
    for (const HostLink& link : links_.links()) fds.push_back({link.fd, POLLIN, 0});
    if (poll(fds.data(), fds.size(), -1) < 0) continue;
    if (is_readable(fds[0].revents)) return;
    status = check();
  }
  const std::string reason(status.message());
  links_.say_loss(reason);  // the peers need not find out by themselves
  on_loss_(reason);
  if (stops_within(kGraceMs)) return;
  bootstrap::print_last_words(base::format("weft: PE {} ends: {}", pe_, reason));
  std::_Exit(1);
}

base::Status HostWatch::check() {
  for (std::size_t i = 0; i < links_.links().size(); ++i) {
    if (base::Status status = check_link(i); !status.ok()) return status;
  }
  return {};
}

base::Status HostWatch::check_link(std::size_t which) {
  const HostLink link = links_.links()[which];
  if (link.fd < 0) return {};
  std::array<char, 1 + HostLinks::kMaxReasonBytes> words{};
  const ssize_t got = recv(link.fd, words.data(), words.size(), MSG_DONTWAIT);
  const int error = errno;
  if (got < 0 && (error == EAGAIN || error == EINTR)) return {};
  if (got > 0) {
    links_.close_done_link(which);
    if (words[0] == HostLinks::kGoodbye) return {};
    if (words[0] == HostLinks::kLoss && got > 1)
      return lost(printable({words.data() + 1, static_cast<std::size_t>(got) - 1}));
  }
  links_.close_link(which);
  const HostTable& table = links_.table();
  if (got >= 0 || error == ECONNRESET || error == EPIPE) {
    if (stops_within(kGraceMs)) return {};
    return lost(base::format("{} has lost {}: it ended before the job did", table.pe_text(pe_),
                             table.pe_text(link.pe)));
  }
  return lost(
      base::format("{} has lost {}: no answer for {} s ({})", table.pe_text(pe_), table.host_text(link.pe),
                   HostLinks::kIdleS + HostLinks::kProbes * HostLinks::kIntervalS, std::strerror(error)));
}

}  // namespace weft::machine
