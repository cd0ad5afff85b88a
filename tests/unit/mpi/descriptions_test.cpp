// What describes a rank that moves arrives as it was packed, and damaged bytes are refused.
#include "models/mpi/moving/descriptions.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "weft/base/error.h"

namespace weft::mpi {
namespace {

RankDescription full_description() {
  RankDescription rank;
  rank.keys = {KeyDescription{1, 2, 3, 4}};
  rank.members = {{0, 3, 1}};
  rank.key_numbers = {{7, 0}};
  rank.freed_keys = {7};
  rank.next_key_number = 8;
  rank.error_codes = {{100, {5, "ours"}}};
  rank.handle_numbers = {11, 12};
  rank.last_context = 13;
  rank.fortran_info = 14;
  rank.fortran_true = {std::byte{1}};
  rank.fortran_false = {std::byte{0}, std::byte{0}};
  rank.handlers = {HandlerDescription{{20, 1}, 2, 21}};
  rank.infos = {InfoDescription{{22, 1}, {{"key", "value"}}}};
  rank.groups = {GroupDescription{{23, 2}, 0}};
  rank.operations = {OperationDescription{{24, 1}, 25, 26, true}};
  rank.changed_types = {ChangedTypeDescription{27, "double", {AttributeDescription{0, 28, 29}}}};
  rank.world.scope.name = "world";
  rank.world.call_numbers = {30, 31};
  rank.self.info = {{"a", "b"}};
  rank.no_file.handler = {1, 32};
  return rank;
}

TEST(Descriptions, ARankArrivesAsItWasPacked) {
  const RankDescription sent = full_description();
  const std::vector<std::byte> bytes = base::pack(sent);
  const auto rank = base::unpack<RankDescription>(bytes);
  EXPECT_EQ(rank.keys.at(0).extra_state, 4U);
  EXPECT_EQ(rank.members, sent.members);
  EXPECT_EQ(rank.key_numbers, sent.key_numbers);
  EXPECT_EQ(rank.freed_keys, sent.freed_keys);
  EXPECT_EQ(rank.next_key_number, 8);
  EXPECT_EQ(rank.error_codes, sent.error_codes);
  EXPECT_EQ(rank.handle_numbers, sent.handle_numbers);
  EXPECT_EQ(rank.last_context, 13U);
  EXPECT_EQ(rank.fortran_info, 14U);
  EXPECT_EQ(rank.fortran_true, sent.fortran_true);
  EXPECT_EQ(rank.fortran_false, sent.fortran_false);
  EXPECT_EQ(rank.handlers.at(0).function, 21U);
  EXPECT_EQ(rank.infos.at(0).object.address, 22U);
  EXPECT_EQ(rank.infos.at(0).pairs, sent.infos.at(0).pairs);
  EXPECT_EQ(rank.groups.at(0).object.references, 2U);
  EXPECT_EQ(rank.operations.at(0).large_function, 26U);
  EXPECT_TRUE(rank.operations.at(0).is_commutative);
  EXPECT_EQ(rank.changed_types.at(0).name, "double");
  EXPECT_EQ(rank.changed_types.at(0).attributes.at(0).value, 29U);
  EXPECT_EQ(rank.world.scope.name, "world");
  EXPECT_EQ(rank.world.call_numbers, sent.world.call_numbers);
  EXPECT_EQ(rank.self.info, sent.self.info);
  EXPECT_EQ(rank.no_file.handler.object, 32U);
  EXPECT_EQ(base::pack(rank).size(), bytes.size());
}

TEST(Descriptions, BytesThatEndTooEarlyAreRefused) {
  const std::vector<std::byte> bytes = base::pack(full_description());
  for (std::size_t size_bytes = 0; size_bytes < bytes.size(); ++size_bytes) {
    const auto part = std::span(bytes).first(size_bytes);
    EXPECT_THROW(static_cast<void>(base::unpack<RankDescription>(part)), base::Error) << size_bytes;
  }
}

}  // namespace
}  // namespace weft::mpi
