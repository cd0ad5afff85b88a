// Messages through a ring of places, for all kinds: with emulated devices, with the stand-in driver, and on GPUs.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "memory/memory.h"
#include "tests/unit/memory/outcome.h"

namespace weft::memory {

// One direction, as queued::Pipe has it.
class MessageRing {
 public:
  static constexpr std::uint32_t kPlaces = 4;
  static constexpr std::size_t kMostBytes = 40000;
  // Messages 5 and later have numbers that begin with 0 again.
  static constexpr std::uint32_t kFirst = 0xfffffffb;
  static constexpr std::array<std::size_t, 20> kSizes{8,
                                                      0,
                                                      kMostLabelledPacketBytes,
                                                      kMostBytes,
                                                      1,
                                                      kMostLabelledPacketBytes + 1,
                                                      24577,
                                                      3,
                                                      9,
                                                      1000,
                                                      16,
                                                      0,
                                                      kMostLabelledPacketBytes - 5,
                                                      8,
                                                      8,
                                                      kMostBytes - 1,
                                                      8200,
                                                      8,
                                                      4,
                                                      2};

  using Until = std::function<void(const std::function<bool()>&)>;
  MessageRing(Memory& memory, Place from, Place to, Until until) : memory_(memory), until_(std::move(until)) {
    std::uint32_t value = 1;
    for (const std::size_t size : kSizes) {
      begins_.push_back(sent_.size());
      for (std::size_t i = 0; i < size + 8 - size % 8; ++i)
        sent_.push_back(static_cast<unsigned char>((value = value * 1664525 + 1013904223) >> 24));
    }
    sender_ = make(sizeof(SenderWords), from);
    receiver_ = make(sizeof(ReceiverWords), to);
    source_ = make(sent_.size(), from);
    result_ = make(sent_.size(), to);
    places_ = make(kPlaces * sizeof(PlaceOfMessage), to);
    SenderWords sender{{kFirst, 0}, {}};
    ReceiverWords receiver{{kFirst, 0}, {}, {}};
    std::ranges::fill(sender.freed, kFirst);
    for (auto& words : receiver.arrived) std::ranges::fill(words, kFirst);
    const std::vector<unsigned char> zeros(std::max(places_.size_bytes, sent_.size()));
    move(sender_, {&sender, sizeof sender});
    move(receiver_, {&receiver, sizeof receiver});
    move(places_, {zeros.data(), places_.size_bytes});
    move(result_, {zeros.data(), sent_.size()});
    move(source_, {sent_.data(), sent_.size()});
  }
  ~MessageRing() {
    for (const Buffer& buffer : {sender_, receiver_, source_, result_, places_})
      EXPECT_TRUE(memory_.deallocate(buffer).ok());
  }
  MessageRing(const MessageRing&) = delete;
  MessageRing& operator=(const MessageRing&) = delete;

  MessageEnd send(std::size_t message) const {
    MessageEnd end = common(message);
    end.side = is_small(message) ? MessageSide::kSendPackets : MessageSide::kSend;
    end.to = is_small(message) ? places()->packets : places()->data;
    end.from = static_cast<std::byte*>(source_.data) + begins_[message];
    end.count = &sender()->count;
    end.waits = sender()->freed;
    end.signals = receiver()->arrived[0];
    return end;
  }
  MessageEnd take(std::size_t message) const {
    MessageEnd end = common(message);
    end.side = is_small(message) ? MessageSide::kTakePackets : MessageSide::kTake;
    end.from = is_small(message) ? places()->packets : places()->data;
    end.to = static_cast<std::byte*>(result_.data) + begins_[message];
    end.count = &receiver()->count;
    end.waits = receiver()->arrived[0];
    end.signals = sender()->freed;
    end.taken = receiver()->taken;
    return end;
  }
  std::vector<unsigned char> result() const {
    std::vector<unsigned char> got(sent_.size());
    move({got.data(), got.size(), {}, nullptr}, result_);
    return got;
  }
  // REQUIRES: the streams are done. Bytes behind messages stay 0.
  void expect_all() const {
    std::vector<unsigned char> expected(sent_.size());
    for (std::size_t i = 0; i < kSizes.size(); ++i)
      std::copy_n(sent_.begin() + static_cast<std::ptrdiff_t>(begins_[i]), kSizes[i],
                  expected.begin() + static_cast<std::ptrdiff_t>(begins_[i]));
    EXPECT_TRUE(result() == expected);
    ReceiverWords words;
    move({&words, sizeof words, {}, nullptr}, receiver_);
    EXPECT_EQ(words.count.number, kFirst + static_cast<std::uint32_t>(kSizes.size()));
    EXPECT_EQ(words.count.begun, 0U);
    for (const std::uint32_t parts : words.taken) EXPECT_EQ(parts, 0U);
  }

 private:
  struct SenderWords {
    MessageCount count;
    std::uint32_t freed[kPlaces];
  };
  struct ReceiverWords {
    MessageCount count;
    std::uint32_t taken[kPlaces];
    std::uint32_t arrived[kPlaces][kMaxMessageParts];
  };
  struct PlaceOfMessage {
    std::byte label[kPacketPairBytes];
    std::byte packets[packet_bytes(kMostLabelledPacketBytes)];
    std::byte data[kMostBytes];
  };

  static bool is_small(std::size_t message) { return kSizes[message] <= kMostLabelledPacketBytes; }
  MessageEnd common(std::size_t message) const {
    MessageEnd end = copy_end(nullptr, nullptr, kSizes[message]);
    end.num_places = kPlaces;
    end.place_bytes = sizeof(PlaceOfMessage);
    end.label = (message + 5) << 32 | kSizes[message];
    end.labels = places()->label;
    return end;
  }
  SenderWords* sender() const { return static_cast<SenderWords*>(sender_.data); }
  ReceiverWords* receiver() const { return static_cast<ReceiverWords*>(receiver_.data); }
  PlaceOfMessage* places() const { return static_cast<PlaceOfMessage*>(places_.data); }
  Buffer make(std::size_t size_bytes, Place place) { return memory_.allocate(size_bytes, place).value(); }
  void move(const Buffer& to, const ConstBuffer& from) const {
    Outcome outcome;
    ASSERT_FALSE(memory_.copy(to, from, &outcome).failed());
    until_([&] { return outcome.calls == 1; });
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.to_string();
  }

  Memory& memory_;
  Until until_;
  std::vector<std::size_t> begins_;
  std::vector<unsigned char> sent_;
  Buffer sender_;
  Buffer receiver_;
  Buffer source_;
  Buffer result_;
  Buffer places_;
};

// How many messages each launch has, in turn. A launch has up to as many as there are places.
using Groups = std::vector<std::size_t>;

// The ends of each launch.
inline std::vector<std::vector<MessageEnd>> ring_launches(
    const Groups& groups, const std::function<void(std::size_t, std::vector<MessageEnd>&)>& add) {
  std::vector<std::vector<MessageEnd>> launches;
  std::size_t message = 0;
  for (std::size_t group = 0; message < MessageRing::kSizes.size(); ++group) {
    const std::size_t end = std::min(message + groups[group % groups.size()], MessageRing::kSizes.size());
    launches.emplace_back();
    for (; message < end; ++message) add(message, launches.back());
  }
  return launches;
}

class RingStreams {
 public:
  RingStreams(Memory& memory, Place left, Place right, MessageRing::Until until)
      : memory_(memory), until_(std::move(until)), places_{left, right} {
    for (std::size_t i = 0; i < 2; ++i) streams_[i] = kind().create_stream(places_[i].device).value();
  }
  ~RingStreams() {
    for (const StreamHandle stream : streams_) EXPECT_TRUE(kind().destroy_stream(stream).ok());
  }
  RingStreams(const RingStreams&) = delete;
  RingStreams& operator=(const RingStreams&) = delete;

  // Those that send first.
  void queue(std::size_t side, const std::vector<std::vector<MessageEnd>>& launches) {
    for (std::vector<MessageEnd> ends : launches) {
      std::ranges::stable_partition(ends, [](const MessageEnd& end) { return is_send(end.side); });
      ASSERT_TRUE(kind().queue_messages(ends, places_[side], streams_[side]).ok());
    }
  }
  std::array<base::Status, 2> wait() {
    std::array<Outcome, 2> outcomes;
    for (std::size_t i = 0; i < 2; ++i)
      static_cast<void>(memory_.when_queued_done(places_[i], streams_[i], &outcomes[i]));
    until_([&] { return outcomes[0].calls + outcomes[1].calls == 2; });
    return {outcomes[0].status, outcomes[1].status};
  }

 private:
  KindBackend& kind() { return *memory_.backend(places_[0].kind); }

  Memory& memory_;
  MessageRing::Until until_;
  std::array<Place, 2> places_;
  std::array<StreamHandle, 2> streams_{};
};

// One direction, in launches of other sizes at both ends; and both directions side by side.
inline void expect_rings(Memory& memory, Place left, Place right, const MessageRing::Until& until) {
  RingStreams streams(memory, left, right, until);
  const MessageRing there(memory, left, right, until);
  streams.queue(0, ring_launches({4, 1, 3}, [&](std::size_t message, std::vector<MessageEnd>& ends) {
                  ends.push_back(there.send(message));
                }));
  streams.queue(1, ring_launches({1, 2, 4}, [&](std::size_t message, std::vector<MessageEnd>& ends) {
                  ends.push_back(there.take(message));
                }));
  for (const base::Status& status : streams.wait()) EXPECT_TRUE(status.ok()) << status.to_string();
  there.expect_all();

  const MessageRing out(memory, left, right, until);
  const MessageRing back(memory, right, left, until);
  const std::array<const MessageRing*, 2> rings{&out, &back};
  for (std::size_t side = 0; side < 2; ++side) {
    streams.queue(side, ring_launches({4, 2, 1}, [&](std::size_t message, std::vector<MessageEnd>& ends) {
                    ends.push_back(rings[side]->send(message));
                    ends.push_back(rings[1 - side]->take(message));
                  }));
  }
  for (const base::Status& status : streams.wait()) EXPECT_TRUE(status.ok()) << status.to_string();
  out.expect_all();
  back.expect_all();
}

// Waits in a launch of their own, for the place and for the label.
inline void expect_awaited_ring(Memory& memory, Place left, Place right, const MessageRing::Until& until) {
  RingStreams streams(memory, left, right, until);
  const MessageRing ring(memory, left, right, until);
  const auto with_waits = [&](auto end_of, MessageSide side) {
    std::vector<std::vector<MessageEnd>> launches;
    for (std::size_t message = 0; message < MessageRing::kSizes.size(); message += 2) {
      launches.insert(launches.end(), {{}, {}});
      for (std::uint32_t i = 0; i < 2; ++i) {
        const MessageEnd end = end_of(message + i);
        MessageEnd wait = end;
        wait.side = side;
        wait.parts = 1;
        wait.offset = i;
        launches[launches.size() - 2].push_back(wait);
        launches.back().push_back(end);
      }
    }
    return launches;
  };
  streams.queue(0, with_waits([&](std::size_t i) { return ring.send(i); }, MessageSide::kAwaitPlace));
  streams.queue(1, with_waits([&](std::size_t i) { return ring.take(i); }, MessageSide::kAwaitMessage));
  for (const base::Status& status : streams.wait()) EXPECT_TRUE(status.ok()) << status.to_string();
  ring.expect_all();
}

// The failure of a take that names another label or size than the send: of packets, of parts, of both, and if it waits before.
struct WrongTake {
  std::size_t sent;
  std::size_t taken;
  MessageSide wait;  // kTake: none
};
inline constexpr WrongTake kWrongTakes[] = {{0, 14, MessageSide::kTake},
                                            {0, 3, MessageSide::kTake},
                                            {3, 0, MessageSide::kTake},
                                            {6, 15, MessageSide::kAwaitMessage}};

// Empty: it has not failed. REQUIRES: the message is number 0 of the ring.
inline std::string failure_of(const WrongTake& wrong, Memory& memory, Place left, Place right,
                              const MessageRing::Until& until, const MessageRing& ring) {
  RingStreams streams(memory, left, right, until);
  MessageEnd end = ring.take(wrong.taken);
  if (wrong.wait != MessageSide::kTake) {
    end.side = wrong.wait;
    end.parts = 1;
  }
  streams.queue(0, {{ring.send(wrong.sent)}});
  streams.queue(1, {{end}});
  return streams.wait()[1].to_string();
}

}  // namespace weft::memory
