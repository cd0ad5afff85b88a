// Making a group of device arrays: what members tell one another, and failures, which all members get.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "queued/collective/make_group.h"
#include "tests/support/errors.h"
#include "tests/unit/pgas/team_job.h"
#include "tests/unit/queued/group_cases.h"

namespace weft::queued {
namespace {

using base::StatusCode;
using pgas::World;
using test_support::says;
using testing::emulated_device;
using testing::TeamJob;

// Changes the records of one all-gather as they arrive at a rank.
using Forge = std::function<void(int at_rank, int gather, std::vector<MemberRecord>& records)>;

Task<> gather_and_forge(World& world, MemberRecord mine, int number, const Forge& forge,
                        Future<std::vector<MemberRecord>> result) {
  std::vector<MemberRecord> records = co_await world.allgather(mine);
  forge(world.rank(), number, records);
  result.set(std::move(records));
}

// The error of each rank; "" for none. `num_segments` gets what is left.
std::vector<std::string> errors_of(
    int size, const Forge& forge, const std::function<void(TeamJob&)>& prepare = {},
    const std::function<void(World&, GroupMember&, DeviceGroupOptions&)>& change = {}) {
  TeamJob job(size);
  if (prepare) prepare(job);
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  EXPECT_EQ(job.run_on_all([&](World& world) -> Task<> {
    int number = 0;
    const GatherRecords gather = [&world, &number, &forge](const MemberRecord& mine) {
      Future<std::vector<MemberRecord>> result(world.runtime());
      world.runtime().spawn(gather_and_forge(world, mine, number++, forge, result), "a gather");
      return result;
    };
    GroupMember member{world.members(), world.rank(), emulated_device(world.runtime())};
    DeviceGroupOptions options{512};
    if (change) change(world, member, options);
    errors[static_cast<std::size_t>(world.rank())] = co_await test_support::error_of(
        make_device_group(world.runtime(), std::move(member), options, gather));
    co_await world.barrier();
    co_await world.runtime().quiescence();
  }),
            "");
  for (int pe = 0; pe < size; ++pe) EXPECT_EQ(job.runtime(pe).model<pgas::Pgas>().num_segments(), 0U);
  return errors;
}

void expect_all_say(const std::vector<std::string>& errors, const std::vector<std::string>& parts) {
  for (const std::string& error : errors) {
    for (const std::string& part : parts) EXPECT_TRUE(says(error, part));
  }
}

constexpr auto kNoForgery = [](int, int, std::vector<MemberRecord>&) {};

TEST(DeviceGroupClaims, WithoutForgeryThereIsNone) { expect_all_say(errors_of(3, kNoForgery), {""}); }

// Rank 1 gets what rank 2 cannot have sent.
std::vector<std::string> errors_of_claim(const std::function<void(std::vector<MemberRecord>&)>& change) {
  return errors_of(3, [&](int at_rank, int gather, std::vector<MemberRecord>& records) {
    if (at_rank == 1 && gather == 0) change(records);
  });
}

TEST(DeviceGroupClaims, AddressesAreThoseOfTheMember) {
  expect_all_say(errors_of_claim([](auto& records) { records[2].rooms = records[0].rooms; }),
                 {"rank 1 (PE 1)", "PE 2 sent byte 0 of segment"});
  expect_all_say(errors_of_claim([](auto& records) { records[2].words = {}; }),
                 {"PE 2 sent the null pointer as memory of its part"});
  expect_all_say(errors_of_claim([](auto& records) { records[2].words = records[2].words.moved_by(4); }),
                 {"PE 2 sent byte 4 of segment"});
}

TEST(DeviceGroupClaims, SizesAreChecked) {
  expect_all_say(errors_of_claim([](auto& records) { records[2].place_bytes = 1U << 30; }),
                 {"rank 2 has places of 1073741824 bytes", "this rank has 512 behind byte 0"});
  expect_all_say(errors_of_claim([](auto& records) { std::swap(records[2].rooms, records[2].words); }),
                 {"does not have", "bytes behind it"});
}

TEST(DeviceGroupClaims, SegmentsThatAreNone) {
  expect_all_say(errors_of_claim([](auto& records) {
                   records[2].words = rma::GlobalAddress(2, 77, memory::Kind::kEmulated, 0);
                 }),
                 {"rank 1 (PE 1)", "its PE has never had such a segment"});
  expect_all_say(errors_of_claim([](auto& records) {
                   records[2].words = rma::GlobalAddress(2, 1, memory::Kind::kHost, 0);
                 }),
                 {"rank 1 (PE 1)", "on all ranks"});
  expect_all_say(errors_of_claim([](auto& records) {
                   records[2].rooms = rma::GlobalAddress(2, 1, static_cast<memory::Kind>(200), 0);
                 }),
                 {"rank 1 (PE 1)", "(no memory kind)"});
}

TEST(DeviceGroupClaims, ASentenceOfAPeerIsText) {
  const std::vector<std::string> errors =
      errors_of(2, [](int, int gather, std::vector<MemberRecord>& records) {
        if (gather != 1) return;
        records[1].failure = 12345;
        std::ranges::fill(records[1].reason, 'x');
        records[1].reason[0] = '\x1b';
      });
  expect_all_say(errors, {"rank 1 (PE 1): ?xxx"});
  for (const std::string& error : errors) EXPECT_LT(error.size(), 400U);
}

TEST(DeviceGroupClaims, OptionsAreTheSameOnAll) {
  expect_all_say(errors_of(3, kNoForgery, {},
                           [](World& world, GroupMember&, DeviceGroupOptions& options) {
                             if (world.rank() == 1) options.place_bytes = 1024;
                           }),
                 {"on all ranks"});
  for (const std::size_t place_bytes : {std::size_t{0}, std::size_t{1} << 31}) {
    expect_all_say(errors_of(2, kNoForgery, {},
                             [&](World& world, GroupMember&, DeviceGroupOptions& options) {
                               if (world.rank() == 1) options.place_bytes = place_bytes;
                             }),
                   {"rank 1 (PE 1): a place of"});
  }
}

TEST(DeviceGroupClaims, ADeviceThatCannotBeUsed) {
  const auto error_with = [](memory::Place device) {
    return errors_of(2, kNoForgery, {}, [&](World& world, GroupMember& member, DeviceGroupOptions&) {
      if (world.rank() == 1) member.device = device;
    });
  };
  expect_all_say(error_with({}), {"rank 1 (PE 1)", "a device that this process can use, not host"});
  expect_all_say(error_with({memory::Kind::kEmulated, 1}), {"rank 1 (PE 1)", "this PE's own device is"});
  expect_all_say(error_with({memory::Kind::kEmulated, 77}), {"rank 1 (PE 1)", "this PE's own device is"});
}

TEST(DeviceGroupClaims, APeerThatIsNotReached) {
  const auto prepare = [](TeamJob& job) { job.runtime(1).model<pgas::Pgas>().set_mapping(false); };
  expect_all_say(errors_of(2, kNoForgery, prepare),
                 {"rank 1 (PE 1): emulated:", "does not reach the memory of rank 0 (PE 0)"});
}

TEST(DeviceGroupClaims, MemoryThatThereIsNot) {
  expect_all_say(errors_of(2, kNoForgery, {},
                           [](World& world, GroupMember&, DeviceGroupOptions& options) {
                             options.place_bytes = std::size_t{1} << 20;
                             if (world.rank() == 0) return;
                             memory::EmulatedFaults faults;
                             faults.device_bytes = 4096;
                             testing::emulated(world.runtime().memory()).set_faults(faults);
                           }),
                 {"rank 1 (PE 1)", "is full"});
}

TEST(DeviceGroupClaims, TooManyMembers) {
  expect_all_say(errors_of(17, kNoForgery), {"at most 16 members, and this one has 17"});
}

}  // namespace
}  // namespace weft::queued
