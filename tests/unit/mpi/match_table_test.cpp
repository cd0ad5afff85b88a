#include "models/mpi/p2p/matching/match_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>
#include <random>
#include <vector>

namespace weft::mpi {
namespace {

bool fits(const MatchKey& wanted, const MatchKey& message) {
  return wanted.context == message.context && (wanted.source == kAny || wanted.source == message.source) &&
         (wanted.tag == kAny || wanted.tag == message.tag);
}

MatchKey random_key(std::mt19937& random, int range, bool wildcards) {
  MatchKey key{random() % 2, static_cast<std::int32_t>(random() % range),
               static_cast<std::int32_t>(random() % range)};
  if (wildcards && random() % 4 == 0) key.source = kAny;
  if (wildcards && random() % 4 == 0) key.tag = kAny;
  return key;
}

TEST(MatchTable, AMessageGoesToTheEarliestPostedReceive) {
  PostedQueue queue;
  PostedEntry any{{7, kAny, kAny}, {}, 0};
  PostedEntry exact{{7, 1, 2}, {}, 0};
  queue.post(any);
  queue.post(exact);
  EXPECT_EQ(queue.take({8, 1, 2}), nullptr);  // another context
  EXPECT_EQ(queue.take({7, 1, 2}), &any);
  EXPECT_EQ(queue.take({7, 1, 3}), nullptr);
  EXPECT_EQ(queue.take({7, 1, 2}), &exact);
  EXPECT_EQ(queue.size(), 0U);
}

// Receives of one key are beside the table until another key comes.
TEST(MatchTable, AWindowOfOneKeyStaysInOrderWhenAnotherKeyComes) {
  PostedQueue queue;
  PostedEntry window[4] = {{{7, 1, 2}, {}, 0}, {{7, 1, 2}, {}, 0}, {{7, 1, 2}, {}, 0}, {{7, 1, 2}, {}, 0}};
  for (int round = 0; round < 2; ++round) {
    for (PostedEntry& entry : window) queue.post(entry);
    queue.remove(window[1]);
    EXPECT_EQ(queue.take({7, 1, 2}), &window[0]);
    PostedEntry any{{7, kAny, 2}, {}, 0};
    queue.post(any);
    EXPECT_EQ(queue.size(), 3U);
    EXPECT_EQ(queue.find({7, 1, 2}), &window[2]);
    EXPECT_EQ(queue.take({7, 3, 2}), &any);
    queue.remove(window[2]);
    EXPECT_EQ(queue.any(), &window[3]);
    EXPECT_EQ(queue.take({7, 1, 2}), &window[3]);
    EXPECT_EQ(queue.size(), 0U);
    EXPECT_EQ(queue.any(), nullptr);
  }
}

TEST(MatchTable, AReceiveTakesTheEarliestMessage) {
  UnexpectedQueue queue;
  ArrivedEntry first{{7, 1, 2}, {}};
  ArrivedEntry second{{7, 3, 4}, {}};
  queue.add(first);
  queue.add(second);
  EXPECT_EQ(queue.find({7, kAny, kAny}), &first);
  EXPECT_EQ(queue.find({7, 3, kAny}), &second);
  EXPECT_EQ(queue.find({7, kAny, 4}), &second);
  EXPECT_EQ(queue.find({6, kAny, kAny}), nullptr);
  queue.remove(first);
  EXPECT_EQ(queue.find({7, kAny, kAny}), &second);
  EXPECT_EQ(queue.size(), 1U);
}

// Messages are put into the queues of a wildcard when a receive asks for it first, and when they come from then on.
TEST(MatchTable, AWildcardFindsMessagesFromBeforeAndAfterItsFirstUse) {
  UnexpectedQueue queue;
  ArrivedEntry entries[] = {{{7, 1, 2}, {}}, {{7, 3, 2}, {}}, {{7, 3, 4}, {}}, {{7, 5, 2}, {}}};
  queue.add(entries[0]);
  queue.add(entries[1]);
  queue.add(entries[2]);
  queue.remove(entries[0]);
  EXPECT_EQ(queue.find({7, kAny, 2}), &entries[1]);
  queue.add(entries[3]);
  queue.remove(entries[1]);
  EXPECT_EQ(queue.find({7, kAny, 2}), &entries[3]);
  EXPECT_EQ(queue.find({7, 3, kAny}), &entries[2]);
  EXPECT_EQ(queue.oldest(), &entries[2]);
  queue.remove(entries[3]);
  EXPECT_EQ(queue.find({7, kAny, 2}), nullptr);
  queue.remove(entries[2]);
  EXPECT_EQ(queue.find({7, 3, kAny}), nullptr);
  EXPECT_EQ(queue.oldest(), nullptr);
}

// The property: the queues decide as a list in order does.
TEST(MatchTable, PostedReceivesMatchAsANaiveListDoes) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (const int range : {1, 3, 40}) {
    PostedQueue queue;
    std::deque<std::unique_ptr<PostedEntry>> naive;
    for (int step = 0; step < 20'000; ++step) {
      const unsigned choice = random() % 10;
      if (choice < 5) {
        naive.push_back(std::make_unique<PostedEntry>(PostedEntry{random_key(random, range, true), {}, 0}));
        queue.post(*naive.back());
      } else if (choice < 9) {
        const MatchKey message = random_key(random, range, false);
        const auto expected =
            std::find_if(naive.begin(), naive.end(), [&](auto& entry) { return fits(entry->key, message); });
        ASSERT_EQ(queue.take(message), expected == naive.end() ? nullptr : expected->get());
        if (expected != naive.end()) naive.erase(expected);
      } else if (!naive.empty()) {
        const auto cancelled = naive.begin() + static_cast<std::ptrdiff_t>(random() % naive.size());
        queue.remove(**cancelled);
        naive.erase(cancelled);
      }
      ASSERT_EQ(queue.size(), naive.size());
    }
  }
}

TEST(MatchTable, UnexpectedMessagesMatchAsANaiveListDoes) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (const int range : {1, 3, 40}) {
    UnexpectedQueue queue;
    std::deque<std::unique_ptr<ArrivedEntry>> naive;
    for (int step = 0; step < 20'000; ++step) {
      if (random() % 2 == 0) {
        naive.push_back(std::make_unique<ArrivedEntry>(ArrivedEntry{random_key(random, range, false), {}}));
        queue.add(*naive.back());
        continue;
      }
      const MatchKey wanted = random_key(random, range, true);
      const auto expected =
          std::find_if(naive.begin(), naive.end(), [&](auto& entry) { return fits(wanted, entry->key); });
      ArrivedEntry* const found = queue.find(wanted);
      ASSERT_EQ(found, expected == naive.end() ? nullptr : expected->get());
      if (found == nullptr) continue;
      queue.remove(*found);
      naive.erase(expected);
      ASSERT_EQ(queue.size(), naive.size());
    }
  }
}

// A walk of a list would take 10,000 x 10,000 steps here, and the test would time out.
TEST(MatchTable, TenThousandEntriesAreFoundAtOnce) {
  constexpr std::int32_t kEntries = 10'000;
  std::vector<PostedEntry> entries(kEntries);
  PostedQueue queue;
  for (int round = 0; round < 20; ++round) {
    for (std::int32_t i = 0; i < kEntries; ++i) {
      auto& entry = entries[static_cast<std::size_t>(i)];
      entry.key = {1, i % 7, i};
      queue.post(entry);
    }
    for (std::int32_t i = kEntries; i-- > 0;) {
      ASSERT_EQ(queue.take({1, i % 7, i}), &entries[static_cast<std::size_t>(i)]);
    }
  }
}

}  // namespace
}  // namespace weft::mpi
