#include "memory/copy/word_waits.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <utility>

#include "base/format.h"
#include "memory/kinds/device_step.h"

namespace weft::memory {

using base::Completion;
using base::Result;
using base::Status;
using base::StatusCode;

namespace {

constexpr std::size_t kWordBytes = sizeof(std::uint32_t);

bool is_reached(const void* word, std::uint32_t value) {
  auto* const plain = const_cast<std::uint32_t*>(static_cast<const std::uint32_t*>(word));
  return has_reached(std::atomic_ref(*plain).load(std::memory_order_acquire), value);
}

Status closed_before(std::uint32_t value) {
  return {StatusCode::kClosed, base::format("the job ended before the word had reached {}", value)};
}

}  // namespace

WordWaits::~WordWaits() { close(); }

Status WordWaits::wait(const std::uint32_t* word, Place place, std::uint32_t value, Completion* completion) {
  assert(reinterpret_cast<std::uintptr_t>(word) % kWordBytes == 0);
  if (is_draining_ || closed_) return closed_before(value);
  const Wait wait{word, value, completion};
  if (place.is_host()) {
    if (is_reached(word, value)) return {};
    on_host_.push_back(wait);
    ++num_pending_;
    return Status::pending();
  }
  Result<Device*> device = device_at(place);
  if (!device.ok()) return device.status();
  (*device)->waiting.push_back(wait);
  ++num_on_devices_;
  ++num_pending_;
  return Status::pending();
}

Result<WordWaits::Device*> WordWaits::device_at(Place place) {
  const auto found = std::ranges::find(devices_, place, &Device::place);
  if (found != devices_.end()) return &*found;
  Result<Device> made = make_device(place);
  if (!made.ok()) return made.status();
  return &devices_.emplace_back(std::move(*made));
}

Result<WordWaits::Device> WordWaits::make_device(Place place) const {
  KindBackend& kind = kind_of(place);
  Device device;
  device.place = place;
  Result<StreamHandle> stream = kind.create_stream(place.device);
  if (!stream.ok()) return stream.status();
  device.stream = *stream;
  Result<void*> landings = kind.allocate_host(kMostCopies * kWordBytes, place.device);
  if (!landings.ok()) {
    static_cast<void>(kind.destroy_stream(device.stream));
    return landings.status();
  }
  device.landings = static_cast<std::byte*>(*landings);
  return device;
}

void WordWaits::poll_host() {
  const auto reached =
      std::ranges::partition(on_host_, [](const Wait& wait) { return !is_reached(wait.word, wait.value); });
  for (const Wait& wait : reached) done_.push_back({wait.completion, Status()});
  on_host_.erase(reached.begin(), reached.end());
}

void WordWaits::poll(Device& device) {
  if (device.event != nullptr) {
    const Status status = kind_of(device.place).query(device.event);
    if (status.is_pending()) return;
    kind_of(device.place).release_event(std::exchange(device.event, nullptr));
    look(device, status);
  }
  if (!is_draining_ && !device.waiting.empty()) begin_copies(device);
}

void WordWaits::look(Device& device, const Status& status) {
  for (std::size_t i = 0; i < device.copied.size(); ++i) {
    const Wait& wait = device.copied[i];
    if (status.failed() || is_reached(device.landings + i * kWordBytes, wait.value)) {
      end_on_device(wait, status);
    } else {
      device.waiting.push_back(wait);
    }
  }
  device.copied.clear();
}

void WordWaits::begin_copies(Device& device) {
  KindBackend& kind = kind_of(device.place);
  while (!device.waiting.empty() && device.copied.size() < kMostCopies) {
    const Wait wait = device.waiting.front();
    device.waiting.pop_front();
    std::byte* const landing = device.landings + device.copied.size() * kWordBytes;
    Status status = kind.copy_async(landing, {}, wait.word, device.place, kWordBytes, device.stream);
    if (status.failed()) {
      end_on_device(wait, std::move(status));
    } else {
      device.copied.push_back(wait);
    }
  }
  if (device.copied.empty()) return;
  Result<EventHandle> event = kind.record(device.stream, device.place.device);
  if (event.ok()) {
    device.event = *event;
  } else {
    look(device, event.status());
  }
}

void WordWaits::end_on_device(const Wait& wait, Status status) {
  --num_on_devices_;
  done_.push_back({wait.completion, std::move(status)});
}

bool WordWaits::progress() {
  if (!on_host_.empty()) poll_host();
  if (num_on_devices_ > 0) {
    // A query may run a kernel of an emulated device, and the kernel may begin a wait.
    for (Device& device : devices_) poll(device);
  }
  return deliver();
}

bool WordWaits::deliver() {
  if (done_.empty()) return false;
  // A completion function may begin a wait.
  std::swap(done_, delivering_);
  num_pending_ -= delivering_.size();
  for (Done& done : delivering_) done.completion->function(done.completion, std::move(done.status), 0);
  delivering_.clear();
  return true;
}

bool WordWaits::is_drained() {
  is_draining_ = true;
  for (Device& device : devices_) poll(device);
  return std::ranges::all_of(devices_, [](const Device& device) { return device.event == nullptr; });
}

void WordWaits::close() {
  if (closed_) return;
  closed_ = true;
  for (const Wait& wait : std::exchange(on_host_, {}))
    done_.push_back({wait.completion, closed_before(wait.value)});
  for (Device& device : devices_) {
    KindBackend& kind = kind_of(device.place);
    if (device.event != nullptr) kind.release_event(std::exchange(device.event, nullptr));
    for (const Wait& wait : std::exchange(device.copied, {})) end_on_device(wait, closed_before(wait.value));
    for (const Wait& wait : std::exchange(device.waiting, {})) end_on_device(wait, closed_before(wait.value));
    kind.deallocate_host(device.landings);
    static_cast<void>(kind.destroy_stream(device.stream));
  }
  devices_.clear();
  while (deliver()) {
  }
}

}  // namespace weft::memory
