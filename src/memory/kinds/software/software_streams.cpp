#include "memory/kinds/software/software_streams.h"

#include <ctime>
#include <utility>

#include "base/format.h"

namespace weft::memory {

using base::Result;
using base::Status;
using base::StatusCode;

namespace {
// Device i's own stream has the handle kFirstHandle + i.
constexpr std::uintptr_t kFirstHandle = 0x1000;

// The processor time of the calling thread. Time in which other processes have the processor does not make a device slow.
std::chrono::nanoseconds processor_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

SoftwareStreams::SoftwareStreams(Kind kind, int num_devices)
    : kind_(kind), num_devices_(num_devices), next_handle_(kFirstHandle) {
  for (int device = 0; device < num_devices; ++device) streams_[next_handle_++].device = device;
}

Result<StreamHandle> SoftwareStreams::create(int device) {
  if (device < 0 || device >= num_devices_) {
    return Status(StatusCode::kOutOfRange,
                  base::format("{} has no device {}: there are {}", kind_name(kind_), device, num_devices_));
  }
  streams_[next_handle_].device = device;
  return reinterpret_cast<StreamHandle>(next_handle_++);
}

Status SoftwareStreams::destroy(StreamHandle stream) {
  const auto found = streams_.find(reinterpret_cast<std::uintptr_t>(stream));
  if (found == streams_.end() || found->second.destroyed) {
    return Status(
        StatusCode::kInvalidArgument,
        base::format("{} is no stream of kind {}, or was destroyed before", stream, kind_name(kind_)));
  }
  if (found->second.queue.empty()) {
    streams_.erase(found);
  } else {
    found->second.destroyed = true;
  }
  return {};
}

bool SoftwareStreams::is_idle(StreamHandle stream, int device) {
  const Result<Stream*> found = find(stream, device);
  return found.ok() && found.value()->queue.empty() && found.value()->failure.ok();
}

Result<SoftwareStreams::Stream*> SoftwareStreams::find(StreamHandle stream, int device) {
  if (device < 0 || device >= num_devices_) {
    return Status(StatusCode::kOutOfRange,
                  base::format("{} has no device {}: there are {}", kind_name(kind_), device, num_devices_));
  }
  const std::uintptr_t handle =
      stream == nullptr ? kFirstHandle + device : reinterpret_cast<std::uintptr_t>(stream);
  const auto found = streams_.find(handle);
  if (found == streams_.end() || found->second.destroyed) {
    return Status(StatusCode::kInvalidArgument,
                  base::format("{} is no stream of kind {}, or was destroyed", stream, kind_name(kind_)));
  }
  if (found->second.device != device) {
    return Status(
        StatusCode::kInvalidArgument,
        base::format("stream {} belongs to {}:{}, not to {}:{}: name a stream of the memory's device", stream,
                     kind_name(kind_), found->second.device, kind_name(kind_), device));
  }
  return &found->second;
}

Status SoftwareStreams::enqueue(StreamHandle stream, int device, Work work) {
  Result<Stream*> target = find(stream, device);
  if (!target.ok()) return target.status();
  if (target.value()->capture.has_value()) {
    target.value()->capture->push_back(std::move(work));
  } else {
    target.value()->queue.push_back({std::move(work), nullptr, nullptr});
  }
  return {};
}

Result<SoftwareStreams::Stream*> SoftwareStreams::find_uncaptured(StreamHandle stream, int device) {
  Result<Stream*> found = find(stream, device);
  if (found.ok() && (*found)->capture.has_value()) {
    return Status(StatusCode::kInvalidArgument,
                  base::format("stream {} of {}:{} is being captured: it can be asked, and wait, afterwards",
                               stream, kind_name(kind_), device));
  }
  return found;
}

Status SoftwareStreams::begin_capture(StreamHandle stream, int device) {
  Result<Stream*> target = find_uncaptured(stream, device);
  if (!target.ok()) return target.status();
  target.value()->capture.emplace();
  return {};
}

Result<SoftwareStreams::Graph> SoftwareStreams::end_capture(StreamHandle stream, int device) {
  Result<Stream*> target = find(stream, device);
  if (!target.ok()) return target.status();
  if (!target.value()->capture.has_value()) {
    return Status(StatusCode::kInvalidArgument,
                  base::format("stream {} of {}:{} is not being captured", stream, kind_name(kind_), device));
  }
  return *std::exchange(target.value()->capture, std::nullopt);
}

Status SoftwareStreams::launch(const Graph& graph, StreamHandle stream, int device) {
  Result<Stream*> target = find_uncaptured(stream, device);
  if (!target.ok()) return target.status();
  for (const Work& work : graph) target.value()->queue.push_back({work, nullptr, nullptr});
  return {};
}

bool SoftwareStreams::is_capturing(StreamHandle stream, int device) {
  const Result<Stream*> found = find(stream, device);
  return found.ok() && found.value()->capture.has_value();
}

Result<EventHandle> SoftwareStreams::record(StreamHandle stream, int device, bool is_timed) {
  Result<Stream*> target = find_uncaptured(stream, device);
  if (!target.ok()) return target.status();
  auto event = std::make_shared<Event>();
  event->is_timed = is_timed;
  target.value()->is_timed |= is_timed;
  target.value()->queue.push_back({nullptr, event, nullptr});
  return static_cast<EventHandle>(new std::shared_ptr<Event>(std::move(event)));
}

Status SoftwareStreams::wait(StreamHandle stream, int device, EventHandle event) {
  Result<Stream*> target = find_uncaptured(stream, device);
  if (!target.ok()) return target.status();
  target.value()->queue.push_back({nullptr, nullptr, *static_cast<std::shared_ptr<Event>*>(event)});
  return {};
}

Status SoftwareStreams::query(EventHandle event) {
  const Event& state = **static_cast<std::shared_ptr<Event>*>(event);
  if (!state.done) poll();
  if (!state.done) return Status::pending();
  return state.failure;
}

Status SoftwareStreams::elapsed(EventHandle begin, EventHandle end, double& seconds) {
  const Event& from = **static_cast<std::shared_ptr<Event>*>(begin);
  const Event& to = **static_cast<std::shared_ptr<Event>*>(end);
  if (!from.done || !to.done) return Status::pending();
  if (!from.failure.ok()) return from.failure;
  if (!to.failure.ok()) return to.failure;
  seconds = std::chrono::duration<double>(to.at - from.at).count();
  return {};
}

void SoftwareStreams::release(EventHandle event) { delete static_cast<std::shared_ptr<Event>*>(event); }

void SoftwareStreams::poll() {
  for (auto stream = streams_.begin(); stream != streams_.end();) {
    advance(stream->second);
    const bool over = stream->second.destroyed && stream->second.queue.empty();
    stream = over ? streams_.erase(stream) : std::next(stream);
  }
}

Status SoftwareStreams::run(Stream& stream, Work& work) {
  if (!stream.is_timed) return work();
  const std::chrono::nanoseconds began = processor_time();
  Status status = work();
  stream.clock += processor_time() - began;
  return status;
}

void SoftwareStreams::advance(Stream& stream) {
  bool worked = false;
  while (!stream.queue.empty()) {
    StreamOperation& operation = stream.queue.front();
    if (operation.waits_for != nullptr) {
      if (!operation.waits_for->done) return;
      if (stream.failure.ok()) stream.failure = operation.waits_for->failure;
    } else if (operation.signals != nullptr) {
      Event& event = *operation.signals;
      event.failure = event.is_timed ? stream.failure : std::exchange(stream.failure, Status());
      event.at = stream.clock;
      event.done = true;
    } else {
      if (worked) return;
      if (stream.failure.ok()) {
        Status status = run(stream, operation.work);
        if (status.is_pending()) {
          ++counts_.pending;
          return;
        }
        stream.failure = std::move(status);
      }
      worked = true;
    }
    stream.queue.pop_front();
    ++counts_.done;
  }
}

}  // namespace weft::memory
