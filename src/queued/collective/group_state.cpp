#include "queued/collective/group_state.h"

#include <exception>
#include <utility>

#include "weft/base/error.h"

#include "memory/memory.h"

namespace weft::queued {

using memory::StreamHandle;

GroupState::GroupState(runtime::Runtime& runtime, GroupMember member, std::size_t place_bytes)
    : runtime_(runtime),
      member_(std::move(member)),
      layout_(place_bytes),
      kind_(*runtime.memory().backend(member_.device.kind)),
      reached_(member_.pes.size()),
      watch_(member_.watch != nullptr ? member_.watch
                                      : std::make_shared<StreamWatch>(runtime, "a group of device arrays")) {}

void GroupState::open(rma::GlobalMemory& global) {
  rooms_ = global.make_segment(layout_.room_bytes(), member_.device);
}

void GroupState::set_member(int rank, rma::GlobalMemory::HeldMemory rooms,
                            rma::GlobalMemory::HeldMemory words) {
  reached_[static_cast<std::size_t>(rank)] = {std::move(rooms), std::move(words)};
}

// --- Steps

memory::DeviceStep GroupState::publish(Lane lane, const void* from, std::size_t size_bytes) const {
  memory::DeviceStep step;
  step.count = word(rank(), GroupLayout::count_word(lane));
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    step.signals.add({word(peer, GroupLayout::arrived_word(lane, rank())), 1});
    step.after.add({word(rank(), GroupLayout::arrived_word(lane, peer)), 1});
  }
  if (lane == Lane::kLarge) return step;
  step.num_places = 2;
  step.place_bytes = layout_.ring_bytes();
  if (size_bytes == 0) return step;
  step.rings = memory::kRingOfTargets;
  step.to = ring(rank(), lane);
  step.from = static_cast<const std::byte*>(from);
  step.size_bytes = size_bytes;
  return step;
}

memory::DeviceStep GroupState::read(int from_rank, std::size_t offset, void* to,
                                    std::size_t size_bytes) const {
  memory::DeviceStep step;
  step.count = word(rank(), GroupLayout::reader_word(from_rank));
  if (size_bytes == 0) return step;
  step.rings = memory::kRingOfSources;
  step.num_places = 2;
  step.place_bytes = layout_.ring_bytes();
  step.from = ring(from_rank, Lane::kGathering) + offset;
  step.to = static_cast<std::byte*>(to);
  step.size_bytes = size_bytes;
  return step;
}

void GroupState::queue(std::span<const memory::DeviceStep> steps, StreamHandle stream) {
  const base::Status status = kind_.queue_steps(steps, member_.device, stream);
  if (status.ok() || steps.size() > 1) ++num_queued_;
  base::check(status);
}

void GroupState::reduce(const memory::DeviceReduction& reduction, StreamHandle stream) {
  base::check(kind_.queue_reduction(reduction, member_.device, stream));
  ++num_queued_;
}

void GroupState::copy(std::span<const memory::MessageEnd> copies, StreamHandle stream) {
  base::check(kind_.queue_messages(copies, member_.device, stream));
  ++num_queued_;
}

void GroupCopies::add(std::byte* to, const std::byte* from, std::size_t size_bytes) {
  if (to == from || size_bytes == 0) return;
  if (count_ == copies_.size()) flush();
  copies_[count_++] = memory::copy_end(to, from, size_bytes);
}

void GroupCopies::flush() {
  if (count_ > 0) group_.copy({copies_.data(), std::exchange(count_, 0)}, stream_);
}

memory::DeviceStep GroupState::copy_step(void* to, const void* from, std::size_t size_bytes) {
  memory::DeviceStep step;
  step.to = static_cast<std::byte*>(to);
  step.from = static_cast<const std::byte*>(from);
  step.size_bytes = size_bytes;
  return step;
}

// --- Life

void GroupState::expect_open() const {
  if (is_open_) return;
  throw base::Error(base::StatusCode::kClosed,
                    "the group of device arrays has been closed, or its job has ended");
}

void GroupState::note(StreamHandle stream, std::shared_ptr<void> keeper) {
  watch_->note(member_.device, stream, shared_from_this());
  if (keeper != nullptr) watch_->note(member_.device, stream, std::move(keeper));
}

runtime::Future<> GroupState::over() {
  expect_open();
  return watch_->over();
}

runtime::Task<> GroupState::run_close(std::shared_ptr<GroupState> state, runtime::Future<> closed) {
  std::exception_ptr failure;
  try {
    co_await state->watch_->over();
  } catch (...) {
    failure = std::current_exception();
  }
  state->reached_.clear();
  const runtime::Future<> rooms = std::move(state->rooms_).release();
  const runtime::Future<> words = std::move(state->words_).release();
  co_await rooms;
  co_await words;
  failure ? closed.set_error(failure) : closed.set();
}

runtime::Future<> GroupState::close() {
  expect_open();
  is_open_ = false;
  runtime::Future<> closed(runtime_);
  runtime_.spawn(run_close(shared_from_this(), closed), "the end of a group of device arrays");
  return closed;
}

void GroupState::job_has_ended() {
  is_open_ = false;
  watch_.reset();
  reached_.clear();
  rooms_ = {};
  words_ = {};
}

}  // namespace weft::queued
