#include "memory/memory.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "base/format.h"
#include "memory/copy/copy_engine.h"
#include "memory/copy/word_waits.h"
#include "memory/kinds/kind_cache.h"
#include "memory/kinds/kind_factory.h"

namespace weft::memory {

using base::Completion;
using base::Result;
using base::Status;
using base::StatusCode;

namespace {

using Backends = std::array<std::unique_ptr<KindBackend>, kNumKinds>;

std::array<KindBackend*, kNumKinds> pointers(const Backends& backends) {
  std::array<KindBackend*, kNumKinds> result{};
  for (std::size_t i = 0; i < backends.size(); ++i) result[i] = backends[i].get();
  return result;
}

}  // namespace

struct Memory::MemoryState {
  explicit MemoryState(const MemoryOptions& options)
      : backends(make_backends(options)),
        copies(pointers(backends), options.device_timeout),
        words(pointers(backends)) {
    for (const auto& backend : backends) {
      if (backend == nullptr) continue;
      own_devices[static_cast<std::size_t>(backend->kind())] =
          static_cast<std::int16_t>(backend->device_of(options.local_rank));
      if (backend->kind() != Kind::kHost) cache.add(backend.get());
    }
  }

  // A device other than the PE's own one that a buffer is on.
  struct OtherDevice {
    Place place;
    std::size_t first_size_bytes;
  };

  Backends make_backends(const MemoryOptions& options);
  KindBackend* find(Kind kind) const { return backends[static_cast<std::size_t>(kind)].get(); }
  // Emulated devices run what this process queues, and nothing of a program's own.
  bool has_real_device() const {
    return std::ranges::any_of(backends, [](const auto& one) {
      return one != nullptr && one->kind() != Kind::kHost && one->kind() != Kind::kEmulated;
    });
  }
  const Status& why_not(Kind kind) const { return why_not_usable[static_cast<std::size_t>(kind)]; }
  Status check_place(Place place) const;
  Status check_side(const char* role, const void* data, std::size_t size_bytes, Place place,
                    StreamHandle stream) const;

  std::array<Status, kNumKinds> why_not_usable;  // by kind
  KindCache cache;                               // outlives the kinds, which report to it what they free
  Backends backends;
  CopyEngine copies;
  WordWaits words;
  std::array<std::int16_t, kNumKinds> own_devices{};  // by kind
  std::vector<OtherDevice> other_devices;
};

Backends Memory::MemoryState::make_backends(const MemoryOptions& options) {
  Backends made;
  for (int kind = 0; kind < kNumKinds; ++kind) {
    const auto i = static_cast<std::size_t>(kind);
    Result<std::unique_ptr<KindBackend>> backend = factory_of(static_cast<Kind>(kind)).make(options);
    if (backend.ok()) {
      made[i] = std::move(*backend);
    } else {
      why_not_usable[i] = backend.status();
    }
  }
  return made;
}

Status Memory::MemoryState::check_place(Place place) const {
  const KindBackend* const backend = find(place.kind);
  if (backend == nullptr) {
    return Status(StatusCode::kUnsupported,
                  base::format("this process cannot use {} memory: {}", kind_name(place.kind),
                               why_not(place.kind).message()));
  }
  if (place.device < 0 || place.device >= backend->num_devices()) {
    return Status(StatusCode::kOutOfRange,
                  base::format("there is no {}: this process has {} {} devices", place_name(place),
                               backend->num_devices(), kind_name(place.kind)));
  }
  return {};
}

Status Memory::MemoryState::check_side(const char* role, const void* data, std::size_t size_bytes,
                                       Place place, StreamHandle stream) const {
  Status status = check_place(place);
  if (status.failed()) return status;
  if (place.is_host() && stream != nullptr) {
    return Status(
        StatusCode::kInvalidArgument,
        base::format(
            "the {} of a copy of {} bytes is host memory and names stream {}: only device memory has "
            "a stream; wait for the stream first",
            role, size_bytes, stream));
  }
  if (data == nullptr && size_bytes > 0) {
    return Status(StatusCode::kInvalidArgument,
                  base::format("the {} of a copy of {} bytes is a null address on {}", role, size_bytes,
                               place_name(place)));
  }
  return {};
}

Memory::Memory(const MemoryOptions& options)
    : local_rank_(options.local_rank), state_(std::make_unique<MemoryState>(options)) {}

Memory::~Memory() { close(); }

KindBackend* Memory::backend(Kind kind) { return state_->find(kind); }

Status Memory::availability(Kind kind) const { return state_->why_not(kind); }

Status Memory::check_options() const {
  for (const Status& status : state_->why_not_usable) {
    if (status.failed() && status.code() != StatusCode::kUnsupported) return status;
  }
  return {};
}

Place Memory::default_place(Kind kind, int local_rank) const {
  const KindBackend* const backend = state_->find(kind);
  if (backend == nullptr) return {kind, 0};
  return {kind, static_cast<std::int16_t>(backend->device_of(local_rank))};
}

Result<Buffer> Memory::allocate(std::size_t size_bytes, Place place) {
  Status status = state_->check_place(place);
  if (status.failed()) return status;
  Buffer buffer;
  buffer.size_bytes = size_bytes;
  buffer.place = place;
  if (size_bytes == 0) return buffer;
  Result<void*> data = backend(place.kind)->allocate(size_bytes, place.device);
  if (!data.ok()) return data.status();
  buffer.data = *data;
  note_use(place, size_bytes);
  return buffer;
}

Status Memory::deallocate(const Buffer& buffer) {
  if (buffer.data == nullptr) return {};
  Status status = state_->check_place(buffer.place);
  if (status.failed()) return status;
  return backend(buffer.place.kind)->deallocate(buffer.data);
}

// Each channel message asks twice: host memory must not pay for what devices need.
Place Memory::place_of(const void* address) {
  if (!state_->cache.is_in_a_range(address)) [[likely]]
    return {};
  return device_place_of(address);
}

[[gnu::noinline]] Place Memory::device_place_of(const void* address) {
  if (!state_->cache.may_be_device(address)) return {};
  const Allocation allocation = state_->cache.find_of_buffer(address);
  if (!allocation.place.is_host()) note_use(allocation.place, allocation.size_bytes);
  return allocation.place;
}

Allocation Memory::allocation_of(const void* address) {
  const Allocation allocation = state_->cache.find(address);
  if (!allocation.place.is_host()) note_use(allocation.place, allocation.size_bytes);
  return allocation;
}

void Memory::use_unmap_generation(const std::atomic<std::uint64_t>* (*find)()) {
  if (state_->cache.wants_unmap_generation()) state_->cache.set_unmap_generation(find());
}

bool Memory::is_new_elsewhere(Place place) const {
  if (place.device == state_->own_devices[static_cast<std::size_t>(place.kind)]) return false;
  return std::ranges::find(state_->other_devices, place, &MemoryState::OtherDevice::place) ==
         state_->other_devices.end();
}

void Memory::note_use(Place place, std::size_t size_bytes) {
  if (is_new_elsewhere(place)) state_->other_devices.push_back({place, size_bytes});
}

std::vector<std::string> Memory::uses_of_other_devices() const {
  std::vector<std::string> sentences;
  for (const auto& [place, first_size_bytes] : state_->other_devices) {
    sentences.push_back(base::format(
        "memory on {} was used, first an allocation of {} bytes, and this PE's own device is {}: "
        "allocate there, or name another device for this PE with --gpus",
        place_name(place), first_size_bytes, place_name(default_place(place.kind))));
  }
  return sentences;
}

Status Memory::make_own_devices_current() {
  return make_current([](const KindBackend&) { return true; });
}

Status Memory::make_expected_devices_current() {
  return make_current([](const KindBackend& backend) { return backend.use_is_expected(); });
}

Status Memory::make_current(bool (*wants)(const KindBackend&)) {
  for (const auto& backend : state_->backends) {
    if (backend == nullptr || !wants(*backend)) continue;
    Status status = backend->make_current(backend->device_of(local_rank_));
    if (status.failed()) return status;
  }
  return {};
}

void Memory::set_release_listener(KindBackend::ReleaseListener listener) {
  state_->cache.set_release_listener(std::move(listener));
}

Status Memory::copy(const Buffer& destination, const ConstBuffer& source, Completion* completion) {
  if (destination.size_bytes != source.size_bytes) {
    return Status(
        StatusCode::kInvalidArgument,
        base::format("a copy needs equal sizes: the source on {} has {} bytes, the destination on {} has {}",
                     place_name(source.place), source.size_bytes, place_name(destination.place),
                     destination.size_bytes));
  }
  Status status = state_->check_side("destination", destination.data, destination.size_bytes,
                                     destination.place, destination.stream);
  if (status.failed()) return status;
  status = state_->check_side("source", source.data, source.size_bytes, source.place, source.stream);
  if (status.failed()) return status;
  return state_->copies.copy(destination, source, completion);
}

Status Memory::when_stream_done(Place place, StreamHandle stream, Completion* completion) {
  Status status = state_->check_place(place);
  if (status.failed()) return status;
  return state_->copies.when_stream_done(place, stream, completion);
}

Status Memory::when_queued_done(Place place, StreamHandle stream, Completion* completion) {
  Status status = state_->check_place(place);
  if (status.failed()) return status;
  return state_->copies.when_queued_done(place, stream, completion);
}

Status Memory::when_event_done(Place place, EventHandle event, Completion* completion) {
  Status status = state_->check_place(place);
  if (status.failed()) return status;
  return state_->copies.when_event_done(place, event, completion);
}

Status Memory::when_word_reached(const std::uint32_t* word, Place place, std::uint32_t value,
                                 Completion* completion) {
  Status status = state_->check_place(place);
  if (status.failed()) return status;
  return state_->words.wait(word, place, value, completion);
}

bool Memory::is_stream_idle(Place place, StreamHandle stream) {
  return state_->check_place(place).ok() && backend(place.kind)->is_idle(stream, place.device);
}

bool Memory::progress() {
  bool any = state_->copies.progress();
  if (state_->words.has_pending()) any |= state_->words.progress();
  return any;
}

bool Memory::has_pending() const { return state_->copies.has_pending() || state_->words.has_pending(); }

bool Memory::awaits_words_alone() const {
  return state_->words.has_pending() && !state_->copies.has_pending() && !state_->has_real_device();
}

bool Memory::wait_for_devices(const std::function<bool()>& is_over) {
  return state_->copies.wait_for_devices(is_over);
}

void Memory::abort_steps() { state_->copies.abort_steps(); }

void Memory::end_steps() { state_->copies.end_steps(); }

void Memory::close() {
  wait_for_devices([this] { return state_->words.is_drained(); });
  state_->copies.close();
  state_->words.close();
}

Status Memory::hang() const {
  if (state_->copies.has_ended_steps()) {
    return Status(
        StatusCode::kClosed,
        "a stream waits for a signal that no PE sends, so the end of the job has ended its steps: what they "
        "copy, signal or combine is missing");
  }
  if (!state_->copies.has_hung()) return {};
  return Status(
      StatusCode::kClosed,
      "a device was still at work when the end of the job stopped waiting for it, so the system frees "
      "its memory: a kernel or a copy hangs, or a stream waits for a signal that no PE sends");
}

}  // namespace weft::memory
