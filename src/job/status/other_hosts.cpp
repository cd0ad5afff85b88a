#include "job/status/other_hosts.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <new>
#include <span>
#include <system_error>
#include <utility>

#include "base/format.h"
#include "base/refuse_claim.h"
#include "job/status/page_update.h"
#include "machine/bootstrap/launcher/blocked_signals.h"

namespace weft::job {

namespace {

// What is in front of the page in an answer: a part of OthersSlot.
constexpr std::size_t kFrontBytes = offsetof(OthersSlot, page) - offsetof(OthersSlot, read_ns);
// An answer has the rows of the page that are used.
constexpr std::size_t kLeastBytes = kFrontBytes + offsetof(StatusPage, rows);
constexpr std::size_t kMostBytes = kFrontBytes + sizeof(StatusPage);

std::int64_t now_ns() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  file >> total >> resident;
  return file ? resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

std::byte* sent_part(OthersSlot& slot) {
  return reinterpret_cast<std::byte*>(&slot) + offsetof(OthersSlot, read_ns);
}

std::size_t file_bytes(int num_pes) {
  return sizeof(OthersHead) + static_cast<std::size_t>(num_pes) * sizeof(OthersSlot);
}

}  // namespace

OtherHosts::OtherHosts(runtime::Runtime& runtime, const runtime::ModelRange& range)
    : runtime_(runtime),
      ask_handler_(range.first_handler),
      answer_handler_(static_cast<runtime::HandlerId>(range.first_handler + 1)) {
  std::array<char, sizeof(OthersSlot::host)> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) host_name_ = name.data();
  runtime_.set_urgent_handler(
      ask_handler_,
      [](void* self, runtime::MessagePtr message) {
        static_cast<OtherHosts*>(self)->answer(static_cast<int>(message->envelope().source_pe));
      },
      this);
  runtime_.set_urgent_handler(
      answer_handler_,
      [](void* self, runtime::MessagePtr message) { static_cast<OtherHosts*>(self)->take(*message); }, this);
}

OtherHosts::~OtherHosts() {
  close();
  for (const int end : pipe_) {
    if (end >= 0) ::close(end);
  }
  if (memory_ != nullptr) munmap(memory_, file_bytes(runtime_.num_pes()));
}

void OtherHosts::close() {
  if (!thread_.joinable()) return;
  ends_ = true;
  // If the pipe is full, the thread does not sleep.
  [[maybe_unused]] const ssize_t written = ::write(pipe_[1], "", 1);
  thread_.join();
  runtime_.set_urgent_function(nullptr);
}

void OtherHosts::begin(const StatusPublisher& publisher, std::vector<int> hosts) {
  publisher_ = &publisher;
  const auto own = static_cast<std::size_t>(runtime_.pe());
  const bool is_leader = std::ranges::find(hosts, hosts[own]) - hosts.begin() == runtime_.pe();
  if (!is_leader) return;
  hosts_ = std::move(hosts);
  if (pipe2(pipe_.data(), O_CLOEXEC) != 0 || fcntl(pipe_[1], F_SETFL, O_NONBLOCK) != 0 || !make_file())
    return;
  runtime_.set_urgent_function([this] { ask(); });
  const machine::bootstrap::BlockedSignals blocked;
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error&) {
    file_ = {};  // readers find none
  }
}

bool OtherHosts::make_file() {
  base::Result<base::SharedFile> file =
      base::SharedFile::create("weft-others", file_bytes(runtime_.num_pes()));
  if (!file.ok()) return false;
  const base::Result<void*> memory = file->map(0, file_bytes(runtime_.num_pes()));
  if (!memory.ok()) return false;
  file_ = std::move(*file);
  memory_ = static_cast<std::byte*>(memory.value());
  auto* const head = new (memory_) OthersHead{};
  head->version = kStatusVersion;
  head->slot_bytes = sizeof(OthersSlot);
  head->num_pes = runtime_.num_pes();
  head->ask_fd = pipe_[1];
  head->magic = kOthersMagic;
  return true;
}

void OtherHosts::serve() {
  std::array<char, 64> bytes{};
  while (!ends_) {
    const ssize_t got = ::read(pipe_[0], bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || ends_) return;
    runtime_.ask_urgently();
  }
}

void OtherHosts::ask() {
  const int own_host = hosts_[static_cast<std::size_t>(runtime_.pe())];
  for (int pe = 0; pe < runtime_.num_pes(); ++pe) {
    if (hosts_[static_cast<std::size_t>(pe)] != own_host)
      send(pe, runtime::Message::create(runtime_, ask_handler_, 0));
  }
}

void OtherHosts::send(int pe, runtime::MessagePtr message) {
  if (runtime_.ending()) return;
  message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
  runtime_.send(pe, std::move(message));
}

void OtherHosts::answer(int pe) {
  if (publisher_ == nullptr || runtime_.ending()) return;
  const StatusPage& page = publisher_->page();
  const std::size_t page_bytes = offsetof(StatusPage, rows) + page.num_rows * sizeof(StatusPage::Row);
  runtime::MessagePtr message = runtime::Message::create(runtime_, answer_handler_, kFrontBytes + page_bytes);
  OthersSlot front{};
  front.read_ns = now_ns();
  front.resident_bytes = resident_bytes();
  std::ranges::copy(host_name_, front.host.begin());
  std::memcpy(message->payload(), sent_part(front), kFrontBytes);
  std::memcpy(message->payload() + kFrontBytes, static_cast<const void*>(&page), page_bytes);
  send(pe, std::move(message));
}

OthersSlot* OtherHosts::slot(int pe) const { return reinterpret_cast<OthersSlot*>(memory_ + file_bytes(pe)); }

// What the page says is checked by its readers.
void OtherHosts::take(runtime::Message& message) {
  const std::size_t size = message.payload_bytes();
  const int pe = static_cast<int>(message.envelope().source_pe);
  if (size < kLeastBytes || size > kMostBytes)
    base::refuse_claim(base::format("a status page from PE {} has {} bytes", pe, size));
  if (memory_ == nullptr) return;  // this PE has asked for none
  OthersSlot& place = *slot(pe);
  const PageUpdate update(place.sequence);
  place.answered_ns = now_ns();
  std::memset(sent_part(place), 0, kMostBytes);
  std::memcpy(sent_part(place), message.payload(), size);
}

}  // namespace weft::job
