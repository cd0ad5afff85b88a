#include "machine/peer_memory/mapping/mailbox.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace weft::machine {
namespace {

TEST(MailboxFile, BothSidesSeeOneMemory) {
  MailboxFile own = MailboxFile::create().value();
  auto other = MailboxFile::open(own.name());
  ASSERT_TRUE(other.ok()) << other.status().to_string();
  MailboxSlot& slot = own.mailbox(kMailboxes - 1).slot(kSlots - 1);
  EXPECT_EQ(slot.word.load(), MailboxSlot::kFree);
  slot.buffer.size_bytes = 77;
  slot.word.store(MailboxSlot::posted(5));
  MailboxSlot& seen = other->mailbox(kMailboxes - 1).slot(kSlots - 1);
  EXPECT_NE(&seen, &slot);
  EXPECT_EQ(seen.word.load(), MailboxSlot::posted(5));
  EXPECT_EQ(seen.buffer.size_bytes, 77u);
  other->owner().is_asleep.store(1);
  EXPECT_EQ(own.owner().is_asleep.load(), 1u);
}

TEST(MailboxFile, MailboxesAndSlotsLieApart) {
  MailboxFile own = MailboxFile::create().value();
  own.mailbox(0).slot(kSlots - 1).outcome.store(1);
  own.mailbox(2).slot(0).word.store(1);
  for (std::uint32_t counter = 0; counter < kSlots; ++counter) {
    EXPECT_EQ(own.mailbox(1).slot(counter).word.load(), 0u);
    EXPECT_EQ(own.mailbox(1).slot(counter).outcome.load(), 0u);
  }
  // What the receiver writes and what the sender writes share no cache line.
  MailboxSlot& slot = own.mailbox(1).slot(0);
  EXPECT_GE(reinterpret_cast<std::uintptr_t>(&slot.outcome) - reinterpret_cast<std::uintptr_t>(&slot.word),
            64u);
  EXPECT_EQ(&own.mailbox(1).slot(3), &own.mailbox(1).slot(3 + kSlots));
}

TEST(MailboxFile, ItsMemoryOutlivesTheOwner) {
  auto own = std::make_unique<MailboxFile>(MailboxFile::create().value());
  const MailboxFileName name = own->name();
  auto other = MailboxFile::open(name);
  ASSERT_TRUE(other.ok());
  own->mailbox(0).slot(0).outcome.store(9);
  own.reset();
  EXPECT_EQ(other->mailbox(0).slot(0).outcome.load(), 9u);
  EXPECT_FALSE(MailboxFile::open(name).ok());
}

TEST(MailboxFile, NamesThatAreNoneAreRefused) {
  MailboxFile own = MailboxFile::create().value();
  const auto refused = [](const MailboxFileName& name) {
    auto opened = MailboxFile::open(name);
    return !opened.ok() && opened.status().code() == base::StatusCode::kNotFound;
  };
  MailboxFileName name = own.name();
  EXPECT_FALSE(refused(name));
  name.nonce ^= 1;  // the file of another job that happens to have its inode
  EXPECT_TRUE(refused(name));
  name = own.name();
  ++name.file.inode;
  EXPECT_TRUE(refused(name));
  name = own.name();
  name.file.descriptor = 1'000'000;
  EXPECT_TRUE(refused(name));
  name.file.descriptor = 0;  // a terminal, a pipe, a file
  EXPECT_TRUE(refused(name));
  name = own.name();
  name.file.pid = -1;
  EXPECT_TRUE(refused(name));
  EXPECT_TRUE(refused({}));
}

}  // namespace
}  // namespace weft::machine
