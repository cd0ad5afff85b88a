#include "models/mpi/losses/troubles.h"

#include <gtest/gtest.h>

#include <memory>

#include "weft/mpi/mpi-ext.h"
#include "weft/mpi/mpi.h"

#include "models/mpi/objects/contexts.h"

namespace weft::mpi {
namespace {

constexpr std::uint64_t kBase = 77;
const std::uint64_t kMessagesOf = context_of(kBase, ContextUse::kMessages);
const std::uint64_t kCollectivesOf = context_of(kBase, ContextUse::kCollectives);

// A communicator of the ranks 2, 4 and 6 has lost rank 4.
Troubles with_loss() {
  Troubles troubles;
  EXPECT_FALSE(troubles.any());
  EXPECT_TRUE(troubles.lose(4));
  EXPECT_FALSE(troubles.lose(4));
  Troubles::Record& record = troubles.record(kBase);
  record.peers = std::make_shared<const Members>(Members{2, 4, 6});
  record.lost.push_back(4);
  return troubles;
}

TEST(Troubles, MessagesFailThatNeedTheLostRank) {
  const Troubles troubles = with_loss();
  EXPECT_EQ(troubles.fate_of_send(kMessagesOf, 4), MPIX_ERR_PROC_FAILED);
  EXPECT_EQ(troubles.fate_of_send(kMessagesOf, 6), MPI_SUCCESS);
  EXPECT_EQ(troubles.fate_of_receive(kMessagesOf, 1, -1), MPIX_ERR_PROC_FAILED);
  EXPECT_EQ(troubles.fate_of_receive(kMessagesOf, 2, -1), MPI_SUCCESS);
  EXPECT_EQ(troubles.fate_of_receive(kMessagesOf, 99, -1), MPI_SUCCESS);
  EXPECT_FALSE(troubles.drops(kMessagesOf));
  // Of communicators without a record the number of the source in MPI_COMM_WORLD tells.
  EXPECT_EQ(troubles.fate_of_receive(context_of(5, ContextUse::kMessages), 0, 4), MPIX_ERR_PROC_FAILED);
  EXPECT_EQ(troubles.fate_of_receive(context_of(5, ContextUse::kMessages), 0, 2), MPI_SUCCESS);
}

TEST(Troubles, ReceivesOfAnySourceWaitForAnAcknowledgement) {
  Troubles troubles = with_loss();
  EXPECT_EQ(troubles.fate_of_receive(kMessagesOf, -1, -1), MPIX_ERR_PROC_FAILED_PENDING);
  troubles.record(kBase).num_acknowledged = 1;
  EXPECT_EQ(troubles.fate_of_receive(kMessagesOf, -1, -1), MPI_SUCCESS);
}

TEST(Troubles, CollectivesEnd) {
  const Troubles troubles = with_loss();
  EXPECT_EQ(troubles.fate_of_receive(kCollectivesOf, 2, 6), MPIX_ERR_PROC_FAILED);
  EXPECT_EQ(troubles.fate_of_send(kCollectivesOf, 6), MPIX_ERR_PROC_FAILED);
  EXPECT_TRUE(troubles.drops(kCollectivesOf));
  EXPECT_EQ(troubles.fate_of_collectives(kBase + 1), MPI_SUCCESS);
}

TEST(Troubles, ARevocationEndsEverything) {
  Troubles troubles = with_loss();
  troubles.record(kBase).is_revoked = true;
  EXPECT_EQ(troubles.fate_of_send(kMessagesOf, 4), MPIX_ERR_REVOKED);
  EXPECT_EQ(troubles.fate_of_receive(kMessagesOf, 1, 4), MPIX_ERR_REVOKED);
  EXPECT_EQ(troubles.fate_of_receive(kMessagesOf, -1, -1), MPIX_ERR_REVOKED);
  EXPECT_EQ(troubles.fate_of_collectives(kBase), MPIX_ERR_REVOKED);
  EXPECT_TRUE(troubles.drops(kMessagesOf));
}

}  // namespace
}  // namespace weft::mpi
