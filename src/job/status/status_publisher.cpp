#include "job/status/status_publisher.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <utility>

#include "job/status/page_update.h"
#include "machine/machine.h"
#include "memory/memory.h"

namespace weft::job {

namespace {

std::int64_t nanoseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

std::int64_t nanoseconds(std::chrono::steady_clock::time_point time) {
  return nanoseconds(time.time_since_epoch());
}

void set_text(std::span<char> place, std::string_view text) {
  const auto rest = std::ranges::copy(text.substr(0, place.size() - 1), place.begin()).out;
  std::fill(rest, place.end(), '\0');
}

std::int32_t launcher_pid() {
  const char* const text = std::getenv("WEFT_LAUNCHER_PID");
  std::int32_t pid = 0;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), pid);
  return pid;
}

}  // namespace

std::unique_ptr<StatusPublisher> StatusPublisher::make(runtime::Runtime& runtime, const std::string& job) {
  base::Result<base::SharedFile> file = base::SharedFile::create("weft-status", sizeof(StatusPage));
  if (!file.ok()) return nullptr;
  const base::Result<void*> memory = file->map(0, sizeof(StatusPage));
  if (!memory.ok()) return nullptr;
  return std::unique_ptr<StatusPublisher>(
      new StatusPublisher(runtime, job, std::move(*file), memory.value()));
}

StatusPublisher::StatusPublisher(runtime::Runtime& runtime, const std::string& job, base::SharedFile file,
                                 void* memory)
    : runtime_(runtime), file_(std::move(file)), page_(new (memory) StatusPage{}) {
  page_->version = kStatusVersion;
  page_->size_bytes = sizeof(StatusPage);
  page_->pid = getpid();
  page_->pe = runtime.pe();
  page_->num_pes = runtime.num_pes();
  page_->launcher_pid = launcher_pid();
  set_text(page_->job, job);
  page_->began_ns = nanoseconds(std::chrono::steady_clock::now());
  runtime_.turn_meter().set_listener(this);
  page_->magic = kStatusMagic;
}

StatusPublisher::~StatusPublisher() {
  runtime_.turn_meter().set_listener(nullptr);
  munmap(page_, sizeof(StatusPage));
}

void StatusPublisher::set_times(const runtime::TurnMeter::Times& times) {
  page_->now_ns = nanoseconds(times.now);
  page_->idle_ns = nanoseconds(times.idle);
  page_->idle_since_ns = nanoseconds(times.idle_since);
  page_->communication_ns = nanoseconds(times.communication);
}

void StatusPublisher::times_changed(const runtime::TurnMeter::Times& times) {
  const PageUpdate update(page_->sequence);
  set_times(times);
}

void StatusPublisher::publish(const runtime::TurnMeter::Times& times) {
  const auto uses = runtime_.machine().transport_use();
  const PageUpdate update(page_->sequence);
  set_times(times);
  page_->published_ns = nanoseconds(times.now);
  page_->sent = runtime_.sent();
  page_->handled = runtime_.processed();
  page_->queued = runtime_.num_queued(kMostQueued);
  page_->pool_bytes = runtime_.pool().kept_bytes();
  page_->num_steps = runtime_.turn_meter().num_steps();
  page_->step_load_ns = static_cast<std::uint64_t>(runtime_.turn_meter().step_load_s() * 1e9);
  page_->num_rows = std::min(uses.size(), kMostStatusRows);
  for (std::size_t i = 0; i < page_->num_rows; ++i) {
    const machine::TransportUse& use = uses[i];
    StatusPage::Row& row = page_->rows[i];
    set_text(row.type, machine::transfer_type_name(use.type));
    set_text(row.path, machine::transfer_path_name(use.path));
    set_text(row.kind, memory::kind_name(use.kind));
    row.messages = use.messages;
    row.bytes = use.bytes;
  }
}

}  // namespace weft::job
