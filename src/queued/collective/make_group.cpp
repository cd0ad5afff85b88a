#include "queued/collective/make_group.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "weft/base/error.h"
#include "weft/rma/global_memory.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "memory/memory.h"
#include "queued/peer_memory.h"

namespace weft::queued {

using base::Error;
using base::StatusCode;

namespace {

void store_failure(MemberRecord& record, StatusCode code, const std::string& reason) {
  record.failure = static_cast<std::uint32_t>(code);
  record.reason = {};
  std::memcpy(record.reason.data(), reason.data(), std::min(reason.size(), record.reason.size() - 1));
}

// The current exception, for the other members.
void store_current_failure(MemberRecord& record) {
  try {
    throw;
  } catch (const Error& error) {
    store_failure(record, error.code(), error.what());
  } catch (const std::exception& error) {
    store_failure(record, StatusCode::kInternal, error.what());
  }
}

// What the reader of an error sees of a peer's sentence.
std::string reason_of(const MemberRecord& record) {
  std::string reason;
  for (const char character : record.reason) {
    if (character == '\0') break;
    const bool is_text = static_cast<unsigned char>(character) >= ' ' && character != '\x7f';
    reason.push_back(is_text ? character : '?');
  }
  return reason;
}

void throw_first_failure(const GroupMember& member, const std::vector<MemberRecord>& records) {
  for (std::size_t rank = 0; rank < records.size(); ++rank) {
    if (records[rank].failure == 0) continue;
    const bool is_known = records[rank].failure <= static_cast<std::uint32_t>(StatusCode::kInternal);
    throw Error(is_known ? static_cast<StatusCode>(records[rank].failure) : StatusCode::kInternal,
                base::format("no group of device arrays: rank {} (PE {}): {}", rank, member.pes[rank],
                             reason_of(records[rank])));
  }
}

void expect_own_device(runtime::Runtime& runtime, const memory::Place& device) {
  memory::KindBackend* const kind = runtime.memory().backend(device.kind);
  if (kind == nullptr || device.is_host() || kind->num_devices() == 0) {
    throw Error(StatusCode::kUnsupported,
                base::format("a group of device arrays takes a device that this process can use, not {}",
                             memory::place_name(device)));
  }
  const memory::Place own = runtime.own_place(device.kind);
  if (device == own) return;
  throw Error(StatusCode::kInvalidArgument,
              base::format("the device is {}, and this PE's own device is {}, which maps the memory of other "
                           "PEs; run the PE with --gpus, or take the own device",
                           memory::place_name(device), memory::place_name(own)));
}

std::size_t place_bytes_of(const DeviceGroupOptions& options, const memory::Place& device) {
  const std::size_t default_bytes = std::size_t{device.kind == memory::Kind::kEmulated ? 4U : 32U} << 20;
  const std::size_t place_bytes = options.place_bytes.value_or(default_bytes);
  if (place_bytes > 0 && place_bytes <= GroupLayout::kMostPlaceBytes) return place_bytes;
  throw Error(StatusCode::kInvalidArgument, base::format("a place of {} bytes cannot be used: give 1 to {}",
                                                         place_bytes, GroupLayout::kMostPlaceBytes));
}

// Steps of the kind are tried by one that does nothing.
void expect_steps(GroupState& group) { group.queue(memory::DeviceStep(), nullptr); }

std::shared_ptr<GroupState> open_group(runtime::Runtime& runtime, const GroupMember& member,
                                       const DeviceGroupOptions& options, MemberRecord& record) {
  try {
    expect_own_device(runtime, member.device);
    const std::size_t place_bytes = place_bytes_of(options, member.device);
    auto group = std::make_shared<GroupState>(runtime, member, place_bytes);
    expect_steps(*group);
    group->open(runtime.offered<rma::GlobalMemory>());
    record.rooms = group->own_rooms();
    record.place_bytes = place_bytes;
    return group;
  } catch (...) {
    store_current_failure(record);
    return nullptr;
  }
}

// A record without a failure is what a member of this group may have sent.
void expect_record(const GroupMember& member, int rank, const MemberRecord& record, const MemberRecord& own) {
  const int pe = member.pes[static_cast<std::size_t>(rank)];
  for (const rma::GlobalAddress& address : {record.rooms, record.words}) {
    if (!address.is_null() && address.pe() == pe && address.offset_bytes() == 0) continue;
    base::refuse_claim(base::format("PE {} sent {} as memory of its part of a group of device arrays", pe,
                                    rma::describe(address)));
  }
  const bool is_same_kind =
      record.rooms.kind() == own.rooms.kind() && record.words.kind() == own.words.kind();
  if (is_same_kind && record.place_bytes == own.place_bytes) return;
  throw Error(
      StatusCode::kInvalidArgument,
      base::format("rank {} has places of {} bytes behind {}, and this rank has {} behind {}; give the "
                   "same sizes and kind of device on all ranks",
                   rank, record.place_bytes, rma::describe(record.rooms), own.place_bytes,
                   rma::describe(own.rooms)));
}

[[noreturn]] void refuse_reach(const GroupState& group, int rank) {
  throw Error(
      StatusCode::kUnsupported,
      base::format("{} does not reach the memory of rank {} (PE {}): members are PEs of one host whose "
                   "devices reach one another, and WEFT_PGAS_MAPPING is on. {}",
                   memory::place_name(group.device()), rank, group.pe_of(rank),
                   group.kind().peer_access_advice()));
}

void map_member(GroupState& group, rma::GlobalMemory& global, int rank, const MemberRecord& record) {
  auto rooms = global.hold(record.rooms, group.layout().room_bytes());
  auto words = global.hold(record.words, GroupLayout::kWordBytes);
  for (const rma::GlobalMemory::HeldMemory* const held : {&rooms, &words}) {
    if (held->keeper == nullptr || held->memory.place != group.device()) refuse_reach(group, rank);
  }
  group.set_member(rank, std::move(rooms), std::move(words));
}

runtime::Task<> add_words(rma::GlobalMemory& global, GroupState& group, MemberRecord& record) {
  try {
    group.set_own_words(co_await make_words(global, GroupLayout::kWordBytes, group.device()));
    record.words = group.own_words();
  } catch (...) {
    store_current_failure(record);
  }
}

runtime::Task<> map_members(rma::GlobalMemory& global, GroupState& group, const GroupMember& member,
                            const std::vector<MemberRecord>& records, MemberRecord& outcome) {
  const MemberRecord& own = records[static_cast<std::size_t>(group.rank())];
  try {
    for (int rank = 0; rank < group.size(); ++rank) {
      const MemberRecord& record = records[static_cast<std::size_t>(rank)];
      expect_record(member, rank, record, own);
      co_await global.learn(record.rooms);
      co_await global.learn(record.words);
      map_member(group, global, rank, record);
    }
  } catch (...) {
    store_current_failure(outcome);
  }
}

}  // namespace

runtime::Task<DeviceGroup> make_device_group(runtime::Runtime& runtime, GroupMember member,
                                             DeviceGroupOptions options, GatherRecords gather) {
  if (member.pes.size() > memory::kMaxStepPeers) {
    throw Error(StatusCode::kInvalidArgument,
                base::format("a group of device arrays has at most {} members, and this one has {}",
                             memory::kMaxStepPeers, member.pes.size()));
  }
  MemberRecord own;
  const std::shared_ptr<GroupState> group = open_group(runtime, member, options, own);
  rma::GlobalMemory& global = runtime.offered<rma::GlobalMemory>();
  if (group != nullptr) co_await add_words(global, *group, own);
  const std::vector<MemberRecord> records = co_await gather(own);
  throw_first_failure(member, records);
  MemberRecord outcome;
  co_await map_members(global, *group, member, records, outcome);
  const std::vector<MemberRecord> outcomes = co_await gather(outcome);
  throw_first_failure(member, outcomes);
  global.tell_of_end(group);
  co_return DeviceGroup(group);
}

}  // namespace weft::queued
