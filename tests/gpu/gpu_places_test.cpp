// Steps that use places in turn, and words with the numbers of other counts, on a real device: queued each for itself, and in
// graphs that are launched many times.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "memory/kinds/software/software_reduction.h"
#include "tests/gpu/gpu_steps.h"

namespace weft::memory {
namespace {

using base::Status;

constexpr std::uint32_t kRounds = 100;

// Two ends of a transfer are on one GPU or on two. Their counts pass 2^32 on the way.
struct Case {
  Place left;
  Place right;
  bool is_in_graphs;
};

class GpuPlacesTest : public GpuStepTest {
 protected:
  // What one end queues in each round.
  struct End {
    Place place;
    std::function<void(StreamHandle stream)> queue_round;
    StreamHandle stream = nullptr;
  };

  std::vector<Case> cases() {
    std::vector<Case> all{{kGpu0, kGpu0, false}, {kGpu0, kGpu0, true}};
    if (has_two_gpus()) all.insert(all.end(), {{kGpu0, kGpu1, false}, {kGpu1, kGpu0, true}});
    return all;
  }
  // Memory of words with these values.
  Buffer make_words(Place place, std::vector<std::uint32_t> values) {
    const Buffer buffer = make(values.size() * sizeof(std::uint32_t), place);
    move(buffer, host_buffer(values));
    return buffer;
  }
  void queue(const DeviceStep& step, Place place, StreamHandle stream) {
    const Status queued = cuda().queue_step(step, place, stream);
    EXPECT_TRUE(queued.ok()) << queued.to_string();
  }
  void run_rounds(std::vector<End> ends, bool is_in_graphs) {
    for (End& end : ends) {
      end.stream = cuda().create_stream(end.place.device).value();
      ASSERT_TRUE(cuda().prepare_reductions(end.place.device, ElementType::kInt32, Combination::kSum).ok());
    }
    Graphs graphs;
    std::vector<void*> captured;
    if (is_in_graphs) {
      ASSERT_TRUE(graphs.are_there());
      for (const End& end : ends) {
        with_current(end, [&] {
          captured.push_back(graphs.capture(end.stream, [&end] { end.queue_round(end.stream); }));
        });
      }
    }
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      for (std::size_t i = 0; i < ends.size(); ++i) {
        if (is_in_graphs)
          with_current(ends[i], [&] { EXPECT_EQ(graphs.launch(captured[i], ends[i].stream), 0); });
        else
          ends[i].queue_round(ends[i].stream);
      }
    }
    std::vector<Outcome> done(ends.size());
    for (std::size_t i = 0; i < ends.size(); ++i)
      ASSERT_TRUE(memory.when_queued_done(ends[i].place, ends[i].stream, &done[i]).is_pending());
    for (Outcome& outcome : done) finish(outcome);
    for (void* const executable : captured) graphs.destroy(executable);
    for (const End& end : ends) EXPECT_TRUE(cuda().destroy_stream(end.stream).ok());
  }
  void with_current(const End& end, const std::function<void()>& body) {
    const Status status = cuda().with_current(end.place.device, body);
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
};

// Data through a ring of places.
struct Ring {
  static constexpr std::uint32_t kPlaces = 4;
  // Words of the sender and of the receiver.
  enum : std::size_t { kSent, kFreed };
  enum : std::size_t { kArrived, kReceived };

  Buffer sender;
  Buffer receiver;
  Buffer places;
  std::size_t place_bytes;

  DeviceStep step(std::size_t size_bytes) const {
    DeviceStep step;
    step.size_bytes = size_bytes;
    step.num_places = kPlaces;
    step.place_bytes = place_bytes;
    return step;
  }
  std::byte* first_place() const { return static_cast<std::byte*>(places.data); }
  static std::uint32_t* word(const Buffer& buffer, std::size_t number) {
    return static_cast<std::uint32_t*>(buffer.data) + number;
  }
  DeviceStep send(const std::byte* from, std::size_t size_bytes) const {
    DeviceStep sent = step(size_bytes);
    sent.count = word(sender, kSent);
    sent.before.add({word(sender, kFreed), 1 - kPlaces});
    sent.rings = kRingOfTargets;
    sent.to = first_place();
    sent.from = from;
    sent.signals.add({word(receiver, kArrived), 1});
    return sent;
  }
  DeviceStep receive(std::byte* to, std::size_t size_bytes) const {
    DeviceStep received = step(size_bytes);
    received.count = word(receiver, kReceived);
    received.before.add({word(receiver, kArrived), 1});
    received.rings = kRingOfSources;
    received.from = first_place();
    received.to = to;
    received.signals.add({word(sender, kFreed), 1});
    return received;
  }
};

// In each round one message with data and one without.
TEST_F(GpuPlacesTest, MessagesThroughARing) {
  enum : std::size_t { kNext = 2, kOne };   // the sender's
  enum : std::size_t { kGot = 2, kTotal };  // the receiver's
  constexpr std::uint32_t kFirst = std::uint32_t{0} - kRounds;
  for (const Case& where : cases()) {
    Ring ring{make_words(where.left, {kFirst, kFirst, 0, 1}),
              make_words(where.right, {kFirst, kFirst, 0, 0}),
              {},
              32};
    ring.places = make(Ring::kPlaces * ring.place_bytes, where.right);
    const auto send = [&](StreamHandle stream) {
      DeviceStep step = ring.send(bytes(ring.sender, kNext), sizeof(std::uint32_t));
      step.reduction = sum(ring.sender, kNext, kOne);
      queue(step, where.left, stream);
      queue(ring.send(nullptr, 0), where.left, stream);
    };
    const auto receive = [&](StreamHandle stream) {
      DeviceStep step = ring.receive(bytes(ring.receiver, kGot), sizeof(std::uint32_t));
      step.reduction = sum(ring.receiver, kTotal, kGot);
      queue(step, where.right, stream);
      queue(ring.receive(nullptr, 0), where.right, stream);
    };
    run_rounds({{where.left, send}, {where.right, receive}}, where.is_in_graphs);
    constexpr std::uint32_t kLast = kFirst + 2 * kRounds;
    EXPECT_EQ(read(ring.sender), (std::vector<std::uint32_t>{kLast, kLast, kRounds, 1}));
    EXPECT_EQ(read(ring.receiver),
              (std::vector<std::uint32_t>{kLast, kLast, kRounds - 1, kRounds * (kRounds - 1) / 2}));
  }
}

TEST_F(GpuPlacesTest, LargeMessagesThroughARing) {
  constexpr std::uint32_t kFirst = std::uint32_t{0} - kRounds / 2;
  for (const std::size_t size_bytes : {std::size_t{16}, std::size_t{1003}, std::size_t{64} << 10}) {
    Ring ring{make_words(kGpu0, {kFirst, kFirst}), make_words(kGpu0, {kFirst, kFirst}), {}, 0};
    ring.place_bytes = (size_bytes + 15) / 16 * 16;
    ring.places = make(Ring::kPlaces * ring.place_bytes, kGpu0);
    const auto sent = pattern(size_bytes * kRounds, 3);
    const Buffer source = make(sent.size(), kGpu0);
    const Buffer seen = make(sent.size(), kGpu0);
    move(source, ConstBuffer(sent.data(), sent.size()));
    std::size_t sent_bytes = 0;
    std::size_t seen_bytes = 0;
    const auto send = [&](StreamHandle stream) {
      queue(ring.send(bytes(source, 0) + sent_bytes, size_bytes), kGpu0, stream);
      sent_bytes += size_bytes;
    };
    const auto receive = [&](StreamHandle stream) {
      queue(ring.receive(bytes(seen, 0) + seen_bytes, size_bytes), kGpu0, stream);
      seen_bytes += size_bytes;
    };
    run_rounds({{kGpu0, send}, {kGpu0, receive}}, false);
    std::vector<unsigned char> result(sent.size());
    move(host_buffer(result), seen);
    EXPECT_TRUE(result == sent) << "messages of " << size_bytes << " bytes";
  }
}

// Each end puts its value into a place of its own, and combines the places of both once both have said so.
TEST_F(GpuPlacesTest, BothEndsCombineTheirValues) {
  enum : std::size_t { kCount, kArrived, kValue, kMore, kOut, kTotal, kPlaces, kNumWords = 8 };
  constexpr std::uint32_t kFirst = std::uint32_t{0} - kRounds / 2;
  for (const Case& where : cases()) {
    const std::vector<Place> places{where.left, where.right};
    const std::vector<Buffer> words{make_words(where.left, {kFirst, kFirst, 10, 1, 0, 0, 0, 0}),
                                    make_words(where.right, {kFirst, kFirst, 20, 2, 0, 0, 0, 0})};
    std::vector<End> ends;
    for (std::size_t i = 0; i < 2; ++i) {
      ends.push_back({places[i], [&, i](StreamHandle stream) {
                        DeviceStep step;
                        step.count = word(words[i], kCount);
                        step.to = bytes(words[i], kPlaces);
                        step.from = bytes(words[i], kValue);
                        step.size_bytes = sizeof(std::uint32_t);
                        step.signals.add({word(words[1 - i], kArrived), 1});
                        step.after.add({word(words[i], kArrived), 1});
                        step.reduction = sum(words[0], kPlaces, kPlaces);
                        step.reduction.sources.items[1] = bytes(words[1], kPlaces);
                        step.reduction.out = bytes(words[i], kOut);
                        step.rings = kRingOfTargets | kRingOfContributions;
                        step.num_places = 2;
                        step.place_bytes = sizeof(std::uint32_t);
                        queue(step, places[i], stream);
                        for (const auto& [into, more] : {std::pair{kValue, kMore}, {kTotal, kOut}}) {
                          DeviceStep add;
                          add.reduction = sum(words[i], into, more);
                          queue(add, places[i], stream);
                        }
                      }});
    }
    run_rounds(ends, where.is_in_graphs);
    for (const Buffer& buffer : words) {
      const std::vector<std::uint32_t> result = read(buffer);
      EXPECT_EQ(result[kCount], kFirst + kRounds);
      EXPECT_EQ(result[kOut], 30 + 3 * (kRounds - 1));
      EXPECT_EQ(result[kTotal], 30 * kRounds + 3 * (kRounds * (kRounds - 1) / 2));
    }
  }
}

// Vectors are used only if all places are aligned for them.
TEST_F(GpuPlacesTest, CombinesThePlacesOfItsNumber) {
  constexpr std::size_t kElements = 1000;
  constexpr std::uint32_t kPlaces = 4;
  constexpr std::uint32_t kFirst = 0xfffffffd;
  for (const ElementType type : {ElementType::kInt64, ElementType::kFloat32, ElementType::kBfloat16}) {
    for (const std::size_t gap_bytes : {std::size_t{16}, size_of(type)}) {
      const std::size_t used_bytes = kElements * size_of(type);
      const std::size_t place_bytes = used_bytes + gap_bytes;
      auto values = pattern(3 * kPlaces * place_bytes, 11);
      for (unsigned char& value : values) value &= 0x3f;  // no NaN
      const Buffer sources = make(values.size(), kGpu0);
      const Buffer out = make(kPlaces * used_bytes, kGpu0);
      const Buffer count = make_words(kGpu0, {kFirst});
      move(sources, ConstBuffer(values.data(), values.size()));
      const auto sum_of = [&](const std::byte* base, std::size_t place) {
        DeviceReduction reduction;
        for (std::size_t i = 0; i < 3; ++i) reduction.sources.add(base + (i * kPlaces + place) * place_bytes);
        reduction.num_elements = kElements;
        reduction.type = type;
        reduction.combination = Combination::kMax;
        return reduction;
      };
      ASSERT_TRUE(cuda().prepare_reductions(0, type, Combination::kMax).ok());
      for (std::size_t i = 0; i < kPlaces; ++i) {
        DeviceStep step;
        step.count = word(count, 0);
        step.reduction = sum_of(bytes(sources, 0), 0);
        step.reduction.out = bytes(out, 0) + i * used_bytes;
        step.rings = kRingOfContributions;
        step.num_places = kPlaces;
        step.place_bytes = place_bytes;
        queue(step, kGpu0, nullptr);
      }
      await(kGpu0, nullptr);
      std::vector<std::byte> result(out.size_bytes);
      move(host_buffer(result), out);
      for (std::uint32_t i = 0; i < kPlaces; ++i) {
        std::vector<std::byte> expected(used_bytes);
        DeviceReduction reduction =
            sum_of(reinterpret_cast<const std::byte*>(values.data()), (kFirst + i) % kPlaces);
        reduction.out = expected.data();
        reduce_on_cpu(reduction);
        EXPECT_EQ(std::memcmp(result.data() + i * used_bytes, expected.data(), used_bytes), 0)
            << "step " << i << ", elements of " << size_of(type) << " bytes, places of " << place_bytes;
      }
    }
  }
}

}  // namespace
}  // namespace weft::memory
