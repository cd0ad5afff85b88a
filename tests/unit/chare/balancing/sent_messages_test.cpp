#include "weft/chare/sent_messages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace weft::chare {
namespace {

constexpr std::uint64_t kCollection = 7;

SentMessages of_element(std::uint64_t index) { return SentMessages({kCollection, index}); }

TEST(SentMessages, AddUpForEachReceiver) {
  SentMessages messages = of_element(5);
  EXPECT_TRUE(messages.sorted().empty());
  for (int round = 0; round < 3; ++round) {
    for (const std::uint64_t to : {9, 4, 4, 1}) messages.add({kCollection, to}, to);
  }
  EXPECT_EQ(messages.sorted(), (std::vector<SentTo>{{1, 3, 3}, {4, 6, 24}, {9, 3, 27}}));
  messages.clear();
  EXPECT_TRUE(messages.sorted().empty());
  messages.add({kCollection, 4}, 1);
  EXPECT_EQ(messages.sorted(), (std::vector<SentTo>{{4, 1, 1}}));
}

TEST(SentMessages, InAnyOrderOfReceivers) {
  constexpr unsigned kSeed = 1;
  RecordProperty("seed", kSeed);
  std::mt19937_64 random(kSeed);
  SentMessages messages = of_element(100);
  std::vector<SentTo> expected;
  for (std::uint64_t i = 0; i < 40; ++i) expected.push_back({i, 0, 0});
  for (int i = 0; i < 4000; ++i) {
    SentTo& to = expected[random() % expected.size()];
    const std::uint64_t bytes = random() % 100;
    messages.add({kCollection, to.index}, bytes);
    ++to.messages;
    to.bytes += bytes;
  }
  EXPECT_EQ(messages.sorted(), expected);
}

TEST(SentMessages, ToItselfOrOutOfTheCollectionDoNotCount) {
  SentMessages messages = of_element(5);
  messages.add({kCollection, 5}, 1);
  messages.add({kCollection + 1, 4}, 1);
  EXPECT_TRUE(messages.sorted().empty());
}

// A thousand receivers of one byte each, between messages to ten that get more.
TEST(SentMessages, AFullTableKeepsTheReceiversOfManyBytes) {
  SentMessages messages = of_element(0);
  for (std::uint64_t i = 100; i < 1100; ++i) {
    messages.add({kCollection, i}, 1);
    messages.add({kCollection, 1 + i % 10}, 1000);
    EXPECT_LE(messages.sorted().size(), SentMessages::kMostReceivers);
  }
  const std::vector<SentTo> sent = messages.sorted();
  ASSERT_GE(sent.size(), SentMessages::kMostReceivers / 2);
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(sent[i], (SentTo{i + 1, 100, 100'000}));
}

TEST(SentMessages, CountsEndAtTheirLimits) {
  SentMessages messages = of_element(0);
  messages.restore({{1, SentMessages::kMostMessages - 1, SentMessages::kMostBytes - 10}});
  messages.add({kCollection, 1}, 9);
  EXPECT_EQ(messages.sorted(),
            (std::vector<SentTo>{{1, SentMessages::kMostMessages, SentMessages::kMostBytes - 1}}));
  messages.add({kCollection, 1}, ~std::uint64_t{0});
  EXPECT_EQ(messages.sorted(),
            (std::vector<SentTo>{{1, SentMessages::kMostMessages, SentMessages::kMostBytes}}));
}

TEST(SentMessages, WhatCannotBeIsNotValid) {
  const auto are_valid = [](const std::vector<SentTo>& sent) {
    return SentMessages::are_valid(sent, 2, 100);
  };
  EXPECT_TRUE(are_valid({}));
  EXPECT_TRUE(are_valid({{0, 1, 0}, {1, SentMessages::kMostMessages, SentMessages::kMostBytes}, {99, 1, 1}}));
  EXPECT_FALSE(are_valid({{100, 1, 1}}));
  EXPECT_FALSE(are_valid({{2, 1, 1}}));
  EXPECT_FALSE(are_valid({{1, 1, 1}, {1, 1, 1}}));
  EXPECT_FALSE(are_valid({{3, 1, 1}, {1, 1, 1}}));
  EXPECT_FALSE(are_valid({{1, 0, 1}}));
  EXPECT_FALSE(are_valid({{1, SentMessages::kMostMessages + 1, 1}}));
  EXPECT_FALSE(are_valid({{1, 1, SentMessages::kMostBytes + 1}}));
  std::vector<SentTo> many;
  for (std::uint64_t i = 10; i < 10 + SentMessages::kMostReceivers; ++i) many.push_back({i, 1, 1});
  EXPECT_TRUE(are_valid(many));
  many.push_back({99, 1, 1});
  EXPECT_FALSE(are_valid(many));
}

}  // namespace
}  // namespace weft::chare
