// Messages between two devices of one memory, for all kinds: with emulated devices, with the stand-in driver, and on GPUs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "memory/memory.h"
#include "tests/unit/memory/outcome.h"

namespace weft::memory {

// One direction of messages, with two landings, as queued::Link has them.
class MessageDirection {
 public:
  static constexpr std::size_t kLandings = 2;

  // Data of all rounds begins `offset` bytes behind aligned addresses. `until` makes progress until something holds.
  using Until = std::function<void(const std::function<bool()>&)>;
  MessageDirection(Memory& memory, Place from, Place to, std::size_t size_bytes, std::size_t offset,
                   std::size_t rounds, std::uint32_t first, Until until)
      : memory_(memory),
        from_(from),
        to_(to),
        size_bytes_(size_bytes),
        offset_(offset),
        until_(std::move(until)) {
    sent_.resize(size_bytes * rounds);
    std::uint32_t value = 1;
    for (unsigned char& byte : sent_)
      byte = static_cast<unsigned char>((value = value * 1664525 + 1013904223) >> 24);
    sender_ = make(sizeof(Words), from);
    receiver_ = make(sizeof(Words), to);
    source_ = make(offset + sent_.size(), from);
    result_ = make(sent_.size(), to);
    packets_ = make(kLandings * packet_bytes(size_bytes), to);
    for (Buffer& landing : landings_) landing = make(offset + size_bytes + kGuard, to);
    std::vector<std::uint32_t> numbers(sizeof(Words) / sizeof(std::uint32_t), first);
    for (std::size_t i = 0; i < kLandings; ++i) numbers[2 * i + 1] = 0;  // MessageCount::begun
    const std::vector<unsigned char> guards(offset + size_bytes + kGuard, 0xa5);
    const std::vector<unsigned char> zeros(packets_.size_bytes);
    for (const Buffer& words : {sender_, receiver_}) move(words, {numbers.data(), sizeof(Words)});
    for (const Buffer& landing : landings_) move(landing, {guards.data(), guards.size()});
    move(packets_, {zeros.data(), zeros.size()});
    move({bytes(source_) + offset, sent_.size(), from, nullptr}, {sent_.data(), sent_.size()});
  }
  ~MessageDirection() {
    for (const Buffer& buffer : {sender_, receiver_, source_, result_, packets_, landings_[0], landings_[1]})
      EXPECT_TRUE(memory_.deallocate(buffer).ok());
  }
  MessageDirection(const MessageDirection&) = delete;
  MessageDirection& operator=(const MessageDirection&) = delete;

  MessageEnd send(std::size_t round) const {
    const std::size_t at = round % kLandings;
    MessageEnd end = copy_end(landing(at), bytes(source_) + offset_ + round * size_bytes_, size_bytes_);
    end.count = &words(sender_)->counts[at];
    end.waits = &words(sender_)->freed[at];
    end.signals = words(receiver_)->arrived[at];
    if (has_packets()) {
      end.side = MessageSide::kSendPackets;
      end.to = bytes(packets_) + at * packet_bytes(size_bytes_);
    }
    return end;
  }
  MessageEnd receive(std::size_t round) const {
    const std::size_t at = round % kLandings;
    MessageEnd end = copy_end(nullptr, nullptr, size_bytes_);
    end.side = MessageSide::kReceive;
    end.count = &words(receiver_)->counts[at];
    end.waits = words(receiver_)->arrived[at];
    end.signals = &words(sender_)->freed[1 - at];
    end.freed = &words(receiver_)->counts[1 - at].number;
    if (has_packets()) {
      end.side = MessageSide::kReceivePackets;
      end.to = landing(at);
      end.from = bytes(packets_) + at * packet_bytes(size_bytes_);
    }
    return end;
  }
  // Keeps what has come, on the stream of the receive.
  base::Status keep(std::size_t round, StreamHandle stream) const {
    return memory_.backend(to_.kind)->copy_async(bytes(result_) + round * size_bytes_, to_,
                                                 landing(round % kLandings), to_, size_bytes_, stream);
  }
  // REQUIRES: the streams are done.
  void expect_all() const {
    std::vector<unsigned char> got(sent_.size());
    move({got.data(), got.size(), {}, nullptr}, result_);
    EXPECT_TRUE(got == sent_) << size_bytes_ << " bytes, offset " << offset_;
    for (const Buffer& landing : landings_) {
      std::vector<unsigned char> all(landing.size_bytes);
      move({all.data(), all.size(), {}, nullptr}, landing);
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (i < offset_ || i >= offset_ + size_bytes_) {
          EXPECT_EQ(all[i], 0xa5) << "byte " << i << " beside " << size_bytes_ << " bytes, offset "
                                  << offset_;
        }
      }
    }
  }

 private:
  static constexpr std::size_t kGuard = 64;
  struct Words {
    MessageCount counts[kLandings];  // first
    std::uint32_t arrived[kLandings][kMaxMessageParts];
    std::uint32_t freed[kLandings];
  };
  static Words* words(const Buffer& buffer) { return static_cast<Words*>(buffer.data); }
  static std::byte* bytes(const Buffer& buffer) { return static_cast<std::byte*>(buffer.data); }
  std::byte* landing(std::size_t at) const { return bytes(landings_[at]) + offset_; }
  bool has_packets() const { return size_bytes_ <= kMostPacketBytes; }
  Buffer make(std::size_t size_bytes, Place place) { return memory_.allocate(size_bytes, place).value(); }
  void move(const Buffer& to, const ConstBuffer& from) const {
    Outcome outcome;
    ASSERT_FALSE(memory_.copy(to, from, &outcome).failed());
    until_([&] { return outcome.calls == 1; });
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.to_string();
  }

  Memory& memory_;
  Place from_;
  Place to_;
  std::size_t size_bytes_;
  std::size_t offset_;
  Until until_;
  std::vector<unsigned char> sent_;
  Buffer sender_;
  Buffer receiver_;
  Buffer source_;
  Buffer result_;
  Buffer packets_;
  std::array<Buffer, kLandings> landings_;
};

// Both devices send and receive in each round, by one call or by two, and counts pass 2^32.
inline void expect_messages(Memory& memory, Place left, Place right, std::size_t size_bytes,
                            std::size_t offset, bool is_exchange, const MessageDirection::Until& until) {
  constexpr std::size_t kRounds = 6;
  constexpr std::uint32_t kFirst = 0xfffffffe;
  KindBackend& kind = *memory.backend(left.kind);
  const MessageDirection there(memory, left, right, size_bytes, offset, kRounds, kFirst, until);
  const MessageDirection back(memory, right, left, size_bytes, offset, kRounds, kFirst, until);
  const std::array<Place, 2> places{left, right};
  std::array<StreamHandle, 2> streams{};
  std::array<Outcome, 2> outcomes;
  for (std::size_t i = 0; i < 2; ++i) streams[i] = kind.create_stream(places[i].device).value();
  for (std::size_t i = 0; i < 2; ++i) {
    const MessageDirection& out = i == 0 ? there : back;
    const MessageDirection& in = i == 0 ? back : there;
    for (std::size_t round = 0; round < kRounds; ++round) {
      const std::array<MessageEnd, 2> ends{out.send(round), in.receive(round)};
      if (is_exchange) {
        ASSERT_TRUE(kind.queue_messages(ends, places[i], streams[i]).ok());
      } else {
        for (const MessageEnd& end : ends)
          ASSERT_TRUE(kind.queue_messages({&end, 1}, places[i], streams[i]).ok());
      }
      ASSERT_TRUE(in.keep(round, streams[i]).ok());
    }
  }
  for (std::size_t i = 0; i < 2; ++i)
    ASSERT_FALSE(memory.when_queued_done(places[i], streams[i], &outcomes[i]).failed());
  for (const Outcome& outcome : outcomes) {
    until([&] { return outcome.calls == 1; });
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.to_string();
  }
  there.expect_all();
  back.expect_all();
  for (const StreamHandle stream : streams) EXPECT_TRUE(kind.destroy_stream(stream).ok());
}

struct MessageCase {
  std::size_t size_bytes;
  std::size_t offset;
};
inline constexpr MessageCase kMessageCases[] = {{1, 0},
                                                {1, 5},
                                                {3, 2},
                                                {7, 0},
                                                {8, 0},
                                                {8, 4},
                                                {8, 1},
                                                {9, 0},
                                                {15, 8},
                                                {256, 0},
                                                {1000, 3},
                                                {kMostPacketBytes - 3, 0},
                                                {kMostPacketBytes, 0},
                                                {kMostPacketBytes, 4},
                                                {kMostPacketBytes + 1, 0},
                                                {kMostPacketBytes + 1, 1},
                                                {5 * kMessagePartBytes + 77, 16},
                                                {100 * kMessagePartBytes + 5, 0}};

inline void expect_all_messages(Memory& memory, Place left, Place right,
                                const MessageDirection::Until& until) {
  for (const MessageCase& one : kMessageCases) {
    for (const bool is_exchange : {false, true})
      expect_messages(memory, left, right, one.size_bytes, one.offset, is_exchange, until);
  }
}

}  // namespace weft::memory
