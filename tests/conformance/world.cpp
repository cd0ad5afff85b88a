#include "tests/conformance/world.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/format.h"
#include "machine/factory/factory.h"
#include "machine/loopback/loopback_machine.h"
#include "memory/kinds/cuda/cuda_options.h"
#include "tests/support/within_a_minute.h"

namespace weft::conformance {

using base::Status;
using memory::Buffer;
using memory::ConstBuffer;
using memory::Kind;

namespace {

memory::MemoryOptions memory_options() {
  memory::MemoryOptions options;
  if (const char* driver = std::getenv(kStandInDriver); driver != nullptr)
    options.of<memory::CudaOptions>().driver = driver;
  return options;
}

// Keeps UCX to the network while machines are made, so that PEs of one process meet as on several hosts.
class OnlyTheNetwork {
 public:
  OnlyTheNetwork() {
    if (const char* before = std::getenv("UCX_TLS"); before != nullptr) before_ = before;
    setenv("UCX_TLS", "tcp,self", 1);
  }
  OnlyTheNetwork(const OnlyTheNetwork&) = delete;
  OnlyTheNetwork& operator=(const OnlyTheNetwork&) = delete;
  ~OnlyTheNetwork() {
    if (before_) {
      setenv("UCX_TLS", before_->c_str(), 1);
    } else {
      unsetenv("UCX_TLS");
    }
  }

 private:
  std::optional<std::string> before_;
};

base::Result<std::vector<std::unique_ptr<machine::Machine>>> make_machines(
    const std::string& name, const std::vector<memory::Memory*>& memories, Networks& networks) {
  std::optional<OnlyTheNetwork> only_the_network;
  if (name.starts_with(kApart)) only_the_network.emplace();
  const auto has = [&](std::string_view what) { return name.find(what) != name.npos; };
  const auto staging = has(".staged") ? machine::StagingMode::kHost : machine::StagingMode::kDevice;
  if (!name.starts_with("loopback.")) {
    return machine::make_in_process(name.substr(0, name.find('.')), memories, staging,
                                    [&networks](int pe) { networks.enter(pe); });
  }
  machine::loopback::LoopbackOptions options;
  options.staging = staging;
  options.late_sends = has(".late");
  if (has(".addressing")) options.addressed_kinds = {Kind::kCuda};
  return machine::loopback::make_loopback(memories, options);
}

}  // namespace

std::string param_name(const ::testing::TestParamInfo<Param>& info) {
  std::string machine = std::get<0>(info.param);
  std::ranges::replace_if(machine, [](char c) { return c == '.' || c == '-'; }, '_');
  return base::format("{}_{}", machine, memory::kind_name(std::get<1>(info.param)));
}

CheckedOperation::CheckedOperation() : base::Completion(&CheckedOperation::on_complete) {}

CheckedOperation::~CheckedOperation() {
  if (state_ == State::kPending) ADD_FAILURE() << "an operation never completed";
}

CheckedOperation& CheckedOperation::start(Status status) {
  if (calls_ != 0) ADD_FAILURE() << "an operation completed inside its start call";
  was_pending_ = status.is_pending();
  state_ = was_pending_ ? State::kPending : State::kDone;
  status_ = std::move(status);
  return *this;
}

void CheckedOperation::on_complete(base::Completion* self, Status status, std::size_t size_bytes) {
  auto& operation = *static_cast<CheckedOperation*>(self);
  ++operation.calls_;
  if (operation.calls_ != 1 || operation.state_ != State::kPending) {
    ADD_FAILURE() << "an operation completed " << operation.calls_ << " times or without being pending";
  }
  if (status.is_pending()) ADD_FAILURE() << "an operation completed with the status pending";
  operation.state_ = State::kDone;
  operation.status_ = std::move(status);
  operation.size_bytes_ = size_bytes;
  if (operation.then) operation.then();
}

World::World(const std::string& machine_name, int num_pes) {
  std::vector<memory::Memory*> memories;
  for (int pe = 0; pe < num_pes; ++pe) {
    memories_.push_back(std::make_unique<memory::Memory>(memory_options()));
    memories.push_back(memories_.back().get());
  }
  auto machines = make_machines(machine_name, memories, networks_);
  if (!machines.ok()) throw std::runtime_error(machines.status().to_string());
  machines_ = std::move(machines).value();
}

World::~World() {
  for (int pe = 0; pe < num_pes(); ++pe) {
    if (machines_[static_cast<std::size_t>(pe)] != nullptr) machine(pe).close();
  }
  machines_.clear();
  for (auto& [pe, buffer] : buffers_) EXPECT_TRUE(memory(pe).deallocate(buffer).ok());
}

void World::progress() {
  for (int pe = 0; pe < num_pes(); ++pe) {
    if (machines_[static_cast<std::size_t>(pe)] != nullptr) machine(pe).progress();
  }
}

bool World::until(const std::function<bool()>& condition) {
  return testing::within_a_minute(condition, [this] { progress(); });
}

void World::on_message(int pe, machine::AmId id, Handler handler) {
  handlers_.push_back(std::move(handler));
  const Status status = machine(pe).set_am_handler(
      id, [](void* context, machine::AmArrival& arrival) { (*static_cast<Handler*>(context))(arrival); },
      &handlers_.back());
  ASSERT_TRUE(status.ok()) << status.to_string();
}

Buffer World::buffer(int pe, Kind kind, std::size_t size_bytes) {
  auto result = memory(pe).allocate(size_bytes, {kind, 0});
  if (!result.ok()) throw std::runtime_error(result.status().to_string());
  buffers_.emplace_back(pe, *result);
  return *result;
}

Buffer World::buffer(int pe, Kind kind, std::span<const std::byte> contents) {
  Buffer result = buffer(pe, kind, contents.size());
  write(pe, result, contents);
  return result;
}

void World::copy(int pe, const Buffer& to, const ConstBuffer& from) {
  CheckedOperation operation;
  operation.start(memory(pe).copy(to, from, &operation));
  for (int round = 0; !operation.done() && round < 100'000'000; ++round) memory(pe).progress();
  if (!operation.status().ok()) throw std::runtime_error(operation.status().to_string());
}

void World::write(int pe, const Buffer& buffer, std::span<const std::byte> contents) {
  if (contents.empty()) return;
  if (buffer.place.is_host()) {
    std::memcpy(buffer.data, contents.data(), contents.size());
  } else {
    copy(pe, {buffer.data, contents.size(), buffer.place, nullptr}, {contents.data(), contents.size()});
  }
}

std::vector<std::byte> World::read(int pe, const Buffer& buffer, std::size_t size_bytes) {
  std::vector<std::byte> bytes(size_bytes);
  if (size_bytes == 0) return bytes;
  if (buffer.place.is_host()) {
    std::memcpy(bytes.data(), buffer.data, size_bytes);
  } else {
    copy(pe, {bytes.data(), size_bytes, {}, nullptr}, {buffer.data, size_bytes, buffer.place});
  }
  return bytes;
}

std::vector<Kind> all_kinds() {
  std::vector<Kind> kinds;
  for (int kind = 0; kind < memory::kNumKinds; ++kind) kinds.push_back(static_cast<Kind>(kind));
  return kinds;
}

std::vector<Kind> usable_kinds() {
  memory::Memory memory(memory_options());
  std::vector<Kind> kinds;
  for (const Kind kind : all_kinds()) {
    if (memory.backend(kind) != nullptr) kinds.push_back(kind);
  }
  return kinds;
}

std::vector<Param> machines_and_kinds_of_one_host() {
  std::vector<Param> all = machines_and_kinds();
  std::erase_if(all, [](const Param& one) { return std::get<0>(one).starts_with(kApart); });
  return all;
}

std::vector<Param> machines_and_kinds() {
  const bool is_stand_in = std::getenv(kStandInDriver) != nullptr;
  std::vector<Param> result;
  for (const Kind kind : usable_kinds()) {
    const auto add = [&](const std::vector<std::string>& machines) {
      for (const std::string& machine : machines) result.emplace_back(machine, kind);
    };
    if (!is_stand_in) add(kMachines);
    if (kind == Kind::kCuda) add(is_stand_in ? kStandInMachines : kCudaMachines);
  }
  return result;
}

}  // namespace weft::conformance
