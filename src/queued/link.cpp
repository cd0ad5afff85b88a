#include "queued/link.h"

#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "base/value_or_throw.h"
#include "memory/memory.h"
#include "queued/peer_memory.h"

namespace weft::queued {

using base::Error;
using base::StatusCode;
using memory::DeviceStep;

// An end's words, in memory of its device. Each is of one landing.
struct Link::Words {
  using List = std::uint32_t[kMaxLandings];
  // --- Of messages that arrive here
  List arrived;   // messages that the peer has written
  List received;  // the count of receives
  // --- Of messages to the peer
  List freed;  // messages that the peer has done with
  List sent;   // the count of sends
  List begun;  // the count of sends that have waited for their place, if that is a step of its own
};

struct Link::Held {
  rma::Segment words;
  std::vector<rma::Segment> landings;
  Words* own = nullptr;  // the device's address, as are the others
  std::shared_ptr<void> keeper;
  Words* peers = nullptr;
  std::vector<std::byte*> peer_landings;
  std::vector<std::shared_ptr<void>> peer_keepers;
};

Link::Link(rma::GlobalMemory& memory, memory::Place device, std::vector<memory::Buffer> landings,
           std::function<std::string()> name)
    : memory_(memory),
      device_(device),
      landings_(std::move(landings)),
      name_(std::move(name)),
      watch_(memory.runtime(), "a transfer that a stream orders") {
  if (device_.is_host() || memory_.runtime().memory().backend(device_.kind) == nullptr) {
    refuse(StatusCode::kInvalidArgument,
           base::format("{} is no device of this process, and streams of devices order its transfers",
                        memory::place_name(device_)));
  }
  // With one landing, two ends that both send before they receive would wait for each other in the second round.
  if (landings_.size() == 1 || landings_.size() > kMaxLandings) {
    refuse(StatusCode::kInvalidArgument,
           base::format("it has {} landing{}: give it 2 to {}, or none if it only sends", landings_.size(),
                        landings_.size() == 1 ? "" : "s", kMaxLandings));
  }
  for (const memory::Buffer& landing : landings_) {
    if (landing.size_bytes == 0 || landing.size_bytes != landings_.front().size_bytes) {
      refuse(StatusCode::kInvalidArgument,
             base::format("its landings have {} and {} bytes; all have the size of a message, which is not 0",
                          landings_.front().size_bytes, landing.size_bytes));
    }
    if (landing.place != device_) {
      refuse(StatusCode::kInvalidArgument,
             base::format("a landing is on {}, and its device is {}", memory::place_name(landing.place),
                          memory::place_name(device_)));
    }
  }
}

Link::~Link() = default;

void Link::refuse(StatusCode code, const std::string& why) const {
  throw Error(code, base::format("{}: {}", name_(), why));
}

void Link::expect_open() const {
  if (!is_open_) refuse(StatusCode::kClosed, "it is not connected; await connect() before");
}

memory::KindBackend& Link::kind() const { return *memory_.runtime().memory().backend(device_.kind); }

runtime::Task<Grant> Link::grant() {
  auto held = std::make_shared<Held>();
  held->words = co_await make_words(memory_, sizeof(Words), device_);
  held->own = static_cast<Words*>(held->words.buffer().data);
  Grant grant;
  grant.words = held->words.address();
  grant.num_landings = landings_.size();
  for (std::size_t i = 0; i < landings_.size(); ++i) {
    grant.size_bytes = landings_[i].size_bytes;
    held->landings.push_back(memory_.make_segment_at(landings_[i].data, landings_[i].size_bytes));
    grant.landings[i] = held->landings.back().address();
  }
  held_ = std::move(held);
  in_ = {};
  out_ = {};
  co_return grant;
}

runtime::Task<> Link::accept(int pe, const Grant& grant) {
  bool is_sound = grant.num_landings != 1 && grant.num_landings <= kMaxLandings &&
                  (grant.num_landings == 0 || grant.size_bytes > 0) && grant.words.pe() == pe;
  for (std::size_t i = 0; is_sound && i < grant.num_landings; ++i) is_sound = grant.landings[i].pe() == pe;
  if (!is_sound) base::refuse_claim(base::format("{}: PE {} grants places that are none", name_(), pe));
  PeerMemory peer(memory_, device_, name_);
  held_->peers = static_cast<Words*>(co_await peer.reach(grant.words, sizeof(Words), alignof(Words)));
  for (std::size_t i = 0; i < grant.num_landings; ++i) {
    void* const landing = co_await peer.reach(grant.landings[i], grant.size_bytes, 1);
    held_->peer_landings.push_back(static_cast<std::byte*>(landing));
  }
  held_->peer_keepers = peer.take_keepers();
  num_peer_landings_ = grant.num_landings;
  message_bytes_ = grant.size_bytes;
  is_open_ = true;
}

// Counts and landings belong to one stream at a time.
void Link::order(Direction& direction, memory::StreamHandle stream) {
  if (direction.is_used && direction.stream != stream && !watch_.is_idle()) {
    if (kind().is_capturing(stream, device_.device) ||
        kind().is_capturing(direction.stream, device_.device)) {
      refuse(StatusCode::kInvalidArgument,
             "it goes on on another stream, and one of the two is being captured: await over() before");
    }
    const memory::EventHandle event = base::value_or_throw(kind().record(direction.stream, device_.device));
    const base::Status status = kind().stream_wait(stream, device_.device, event);
    kind().release_event(event);
    base::check(status);
  }
  direction.stream = stream;
  direction.is_used = true;
}

void Link::send(const memory::ConstBuffer& message, memory::StreamHandle stream) {
  expect_open();
  if (num_peer_landings_ == 0)
    refuse(StatusCode::kInvalidArgument, "the peer has no landing, so it only sends");
  if (message.size_bytes != message_bytes_) {
    refuse(StatusCode::kInvalidArgument, base::format("a message of {} bytes does not fit: landings have {}",
                                                      message.size_bytes, message_bytes_));
  }
  if (message.place != device_) {
    refuse(StatusCode::kInvalidArgument,
           base::format("a message is on {}, and the stream on {}", memory::place_name(message.place),
                        memory::place_name(device_)));
  }
  order(out_, stream);
  const std::size_t at = out_.next % num_peer_landings_;
  DeviceStep step;
  step.before.add({&held_->own->freed[at], 0});
  step.signals.add({&held_->peers->arrived[at], 1});
  step.count = &held_->own->sent[at];
  if (message.size_bytes <= memory::kStepCopyLimitBytes) {
    step.to = held_->peer_landings[at];
    step.from = static_cast<const std::byte*>(message.data);
    step.size_bytes = message.size_bytes;
    base::check(kind().queue_step(step, device_, stream));
  } else {
    DeviceStep wait;
    wait.before = step.before;  // the last step has it too: if the wait is ended, there is no signal
    wait.count = &held_->own->begun[at];
    base::check(kind().queue_step(wait, device_, stream));
    watch_.note(device_, stream, held_);
    is_open_ = false;  // unless all three are queued
    base::check(kind().copy_async(held_->peer_landings[at], device_, message.data, device_,
                                  message.size_bytes, stream));
    base::check(kind().queue_step(step, device_, stream));
    is_open_ = true;
  }
  ++out_.next;
  watch_.note(device_, stream, held_);
}

std::size_t Link::receive(memory::StreamHandle stream) {
  expect_open();
  if (landings_.empty()) refuse(StatusCode::kInvalidArgument, "it has no landing, so it only sends");
  order(in_, stream);
  const std::size_t at = in_.next % landings_.size();
  const std::size_t before = (at + landings_.size() - 1) % landings_.size();
  DeviceStep step;
  step.count = &held_->own->received[at];
  step.signals.add({&held_->peers->freed[before], 0, &held_->own->received[before]});
  step.after.add({&held_->own->arrived[at], 1});
  base::check(kind().queue_step(step, device_, stream));
  ++in_.next;
  watch_.note(device_, stream, held_);
  return at;
}

void Link::reset() {
  is_open_ = false;
  held_ = nullptr;
}

runtime::Task<> Link::close() {
  if (held_ == nullptr) co_return;
  is_open_ = false;
  co_await watch_.over();
  const std::shared_ptr<Held> held = std::exchange(held_, nullptr);
  held->peer_keepers.clear();
  runtime::Future<> words = std::move(held->words).release();
  std::vector<runtime::Future<>> landings;
  for (rma::Segment& landing : held->landings) landings.push_back(std::move(landing).release());
  co_await words;
  for (const runtime::Future<>& landing : landings) co_await landing;
}

}  // namespace weft::queued
