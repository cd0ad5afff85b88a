#include "runtime/attachments.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "machine/tag.h"
#include "runtime/attached.h"
#include "runtime/handlers.h"
#include "tests/support/device_memory.h"
#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

using memory::Buffer;
using memory::Kind;
using memory::Place;
using weft::testing::TestMemory;

constexpr HandlerId kHandler = kFirstPythonHandler;
using Bytes = std::vector<std::uint8_t>;

// What the messages that arrive on one PE bring, and who chooses where they land.
struct Inbox {
  explicit Inbox(Runtime& runtime_in) : runtime(runtime_in) {
    runtime.set_handler(
        kHandler,
        [](void* context, MessagePtr message) { self(context).messages.push_back(std::move(message)); },
        this);
  }
  void post_with(std::function<bool(Message&, std::span<Landing>)> function) {
    poster = std::move(function);
    runtime.set_poster(kHandler, [](void* context, Message& message, std::span<Landing> landings) {
      ++self(context).posted;
      return self(context).poster(message, landings);
    });
  }
  static Inbox& self(void* context) { return *static_cast<Inbox*>(context); }
  Bytes bytes(std::size_t message, std::size_t attachment) const {
    return weft::testing::contents(runtime.memory(), buffer(message, attachment));
  }
  const Buffer& buffer(std::size_t message, std::size_t attachment) const {
    return messages.at(message)->attachments()[attachment].buffer();
  }

  Runtime& runtime;
  std::function<bool(Message&, std::span<Landing>)> poster;
  int posted = 0;
  std::vector<MessagePtr> messages;
};

struct Job {
  Job(std::string_view machine, MessagingPath path) : job(3, machine, options(path)) {
    for (int pe = 0; pe < 3; ++pe) inboxes.push_back(std::make_unique<Inbox>(job.runtime(pe)));
  }
  static RuntimeOptions options(MessagingPath path) {
    RuntimeOptions made;
    made.messaging_path = path;
    return made;
  }

  Inbox& inbox(int pe) { return *inboxes[static_cast<std::size_t>(pe)]; }
  MessagePtr message() { return Message::pack(job.runtime(0), kHandler, std::uint64_t{7}); }
  // Sends PE 0's memory; its release is counted in `released`.
  Operation send(int pe, std::span<TestMemory> given) {
    MessagePtr made = message();
    for (TestMemory& one : given) made->attach(attachment(one));
    Operation sent(made->report_sending());
    job.runtime(0).send(pe, std::move(made));
    return sent;
  }
  Attachment attachment(TestMemory& given) {
    auto release = [](void* owner, const Buffer&) { ++*static_cast<int*>(owner); };
    return Attachment(given.buffer(), release, &released);
  }
  void expect_arrival(int pe, std::size_t count = 1) {
    EXPECT_EQ(job.run_until([&] { return inbox(pe).messages.size() == count; }), "");
  }
  void expect_end(const Operation& operation) {
    EXPECT_EQ(job.run_until([&] { return operation.is_done(); }), "");
  }
  Status outcome(Operation operation) {
    expect_end(operation);
    OperationState* state = std::move(operation).release();
    Status status = state->status();
    state->observe();
    state->drop_handle();
    return status;
  }
  void turns(int count) {
    for (int i = 0; i < count; ++i) {
      for (int pe = 0; pe < job.num_pes(); ++pe) job.runtime(pe).step();
    }
  }

  int released = 0;
  weft::testing::InProcessJob job;
  std::vector<std::unique_ptr<Inbox>> inboxes;
};

struct Way {
  const char* machine;
  MessagingPath path;
  Kind kind;
};

void PrintTo(const Way& way, std::ostream* out) {
  *out << way.machine << (way.path == MessagingPath::kActive ? "_active_" : "_tagged_")
       << memory::kind_name(way.kind);
}

std::string name_of(const ::testing::TestParamInfo<Way>& info) {
  return ::testing::PrintToString(info.param);
}

// Everything that must hold on both machines, both wire paths, for memory of each kind.
struct AttachmentsTest : ::testing::TestWithParam<Way>, Job {
  AttachmentsTest() : Job(GetParam().machine, GetParam().path) {}
  TestMemory given(std::size_t size_bytes, std::uint8_t first = 1) {
    return TestMemory(job.memory(0), place(), size_bytes, first);
  }
  std::vector<TestMemory> one(std::size_t size_bytes) {
    std::vector<TestMemory> made;
    made.push_back(given(size_bytes));
    return made;
  }
  Place place() const { return {GetParam().kind, 0}; }
};

INSTANTIATE_TEST_SUITE_P(Ways, AttachmentsTest,
                         ::testing::Values(Way{"loopback", MessagingPath::kTagged, Kind::kHost},
                                           Way{"loopback", MessagingPath::kActive, Kind::kHost},
                                           Way{"loopback", MessagingPath::kTagged, Kind::kEmulated},
                                           Way{"loopback", MessagingPath::kActive, Kind::kEmulated},
                                           Way{"ucx", MessagingPath::kTagged, Kind::kHost},
                                           Way{"ucx", MessagingPath::kActive, Kind::kHost},
                                           Way{"ucx", MessagingPath::kTagged, Kind::kEmulated},
                                           Way{"ucx", MessagingPath::kActive, Kind::kEmulated}),
                         name_of);

TEST_P(AttachmentsTest, SeveralArriveWithTheirMessageAndAreGivenBackOnce) {
  std::vector<TestMemory> sent;
  for (std::size_t size : {1, 0, 4096, 1'000'003})
    sent.push_back(given(size, static_cast<std::uint8_t>(size)));
  Operation operation = send(1, sent);
  expect_arrival(1);
  std::uint64_t payload = 0;
  inbox(1).messages[0]->unpacker() | payload;
  EXPECT_EQ(payload, 7u);
  ASSERT_EQ(inbox(1).messages[0]->attachments().size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(inbox(1).bytes(0, i), sent[i].filled()) << i;
  EXPECT_EQ(inbox(1).buffer(0, 3).place, place()) << "what the runtime allocates is of the sender's kind";
  expect_end(operation);
  EXPECT_EQ(job.run_until([&] { return released == 4; }), "");
}

TEST_P(AttachmentsTest, OneOfAnySizeArrives) {
  for (std::size_t size : {0, 8, 5000, 300'000}) {
    std::vector<TestMemory> sent = one(size);
    EXPECT_TRUE(outcome(send(1, sent)).ok());
    expect_arrival(1);
    EXPECT_EQ(inbox(1).bytes(0, 0), sent[0].filled()) << size;
    EXPECT_EQ(inbox(1).buffer(0, 0).place, size == 0 ? inbox(1).buffer(0, 0).place : place());
    inbox(1).messages.clear();
  }
}

TEST_P(AttachmentsTest, LandWhereThePosterSays) {
  for (std::size_t size : {64, 100'000}) {
    for (Kind kind : {Kind::kHost, Kind::kEmulated}) {
      TestMemory into(job.memory(1), Place{kind, 0}, size);
      inbox(1).post_with([&](Message& message, std::span<Landing> landings) {
        std::uint64_t payload = 0;
        message.unpacker() | payload;
        EXPECT_EQ(payload, 7u);
        EXPECT_EQ(landings.size(), 1u);
        EXPECT_EQ(landings[0].size_bytes, size);
        EXPECT_EQ(landings[0].place, place());
        landings[0].into = Attachment(into.buffer());
        return true;
      });
      std::vector<TestMemory> sent = one(size);
      EXPECT_TRUE(outcome(send(1, sent)).ok());
      expect_arrival(1);
      EXPECT_EQ(inbox(1).buffer(0, 0).data, into.buffer().data);
      EXPECT_EQ(into.now(), sent[0].filled());
      inbox(1).messages.clear();
    }
  }
}

TEST_P(AttachmentsTest, LargerRoomIsFilledAtItsBeginningAndSmallerRoomTakesTheLeadingPart) {
  for (std::size_t size : {1000, 200'000}) {
    for (std::size_t capacity : {size * 2, size / 2, std::size_t{0}}) {
      TestMemory into(job.memory(1), place(), capacity, 100);
      inbox(1).post_with([&](Message&, std::span<Landing> landings) {
        landings[0].into = Attachment(into.buffer());
        return true;
      });
      std::vector<TestMemory> sent = one(size);
      EXPECT_TRUE(outcome(send(1, sent)).ok());
      expect_arrival(1);
      std::size_t landed = std::min(size, capacity);
      EXPECT_EQ(inbox(1).buffer(0, 0).size_bytes, landed);
      Bytes expected = into.filled();
      std::copy_n(sent[0].filled().begin(), landed, expected.begin());
      EXPECT_EQ(into.now(), expected);
      inbox(1).messages.clear();
    }
  }
}

TEST_P(AttachmentsTest, ToTheOwnPeAreCopiedToWhereThePosterSays) {
  for (bool chooses : {false, true}) {
    TestMemory into(job.memory(0), Place{Kind::kEmulated, 1}, 100'000);
    inbox(0).post_with([&](Message&, std::span<Landing> landings) {
      if (chooses) landings[0].into = Attachment(into.buffer());
      return true;
    });
    released = 0;
    std::vector<TestMemory> sent = one(70'000);
    Operation operation = send(0, sent);
    EXPECT_FALSE(operation.is_done());
    expect_arrival(0);
    EXPECT_EQ(inbox(0).bytes(0, 0), sent[0].filled());
    EXPECT_EQ(inbox(0).buffer(0, 0).place, chooses ? (Place{Kind::kEmulated, 1}) : place());
    EXPECT_NE(inbox(0).buffer(0, 0).data, sent[0].buffer().data) << "the receiver's own";
    expect_end(operation);
    EXPECT_EQ(released, 1);
    inbox(0).messages.clear();
  }
}

TEST_P(AttachmentsTest, GoOnWithAForwardedMessageToWhereThePosterThereSays) {
  TestMemory into(job.memory(2), Place{}, 70'000);
  inbox(2).post_with([&](Message&, std::span<Landing> landings) {
    EXPECT_EQ(landings[0].place, place());
    landings[0].into = Attachment(into.buffer());
    return true;
  });
  std::vector<TestMemory> sent = one(70'000);
  EXPECT_TRUE(outcome(send(1, sent)).ok());
  expect_arrival(1);
  MessagePtr on_its_way = std::move(inbox(1).messages[0]);
  inbox(1).messages.clear();
  const void* where = on_its_way->attachments()[0].buffer().data;
  job.runtime(1).send(1, std::move(on_its_way));  // kept for a while where it is
  expect_arrival(1);
  EXPECT_EQ(inbox(1).buffer(0, 0).data, where) << "what has landed is not copied again";
  job.runtime(1).send(2, std::move(inbox(1).messages[0]));
  expect_arrival(2);
  EXPECT_EQ(into.now(), sent[0].filled());
}

TEST_P(AttachmentsTest, APosterThatComesLaterMovesWhatHasLanded) {
  std::vector<TestMemory> sent = one(3000);
  EXPECT_TRUE(outcome(send(1, sent)).ok());
  expect_arrival(1);
  TestMemory into(job.memory(1), place(), 3000);
  inbox(1).post_with([&](Message&, std::span<Landing> landings) {
    landings[0].into = Attachment(into.buffer());
    return true;
  });
  MessagePtr waited = std::move(inbox(1).messages[0]);
  inbox(1).messages.clear();
  job.runtime(1).send(1, std::move(waited));
  expect_arrival(1);
  EXPECT_EQ(into.now(), sent[0].filled());
}

TEST_P(AttachmentsTest, AMessageThatIsNotWantedComesFree) {
  inbox(1).post_with([](Message&, std::span<Landing>) { return false; });
  std::vector<TestMemory> sent = one(200'000);
  EXPECT_TRUE(outcome(send(1, sent)).ok());
  EXPECT_EQ(job.run_until([&] { return job.runtime(1).processed() == 1; }), "");
  EXPECT_EQ(inbox(1).posted, 1);
  EXPECT_TRUE(inbox(1).messages.empty());
}

TEST_P(AttachmentsTest, APosterThatThrowsEndsTheJob) {
  inbox(1).post_with([](Message&, std::span<Landing>) -> bool { throw std::runtime_error("no such place"); });
  std::vector<TestMemory> sent = one(200'000);
  send(1, sent).detach();
  std::string failure = job.run_until([] { return false; });
  EXPECT_NE(failure.find("no such place"), std::string::npos) << failure;
  EXPECT_NE(failure.find("message from PE 0"), std::string::npos) << failure;
}

TEST_P(AttachmentsTest, ManyMessagesKeepTheirsApart) {
  std::vector<std::vector<TestMemory>> all(50);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = 0; k <= i % 4; ++k)
      all[i].push_back(given(1000 + i, static_cast<std::uint8_t>(i * 4 + k)));
    send(2, all[i]).detach();
  }
  expect_arrival(2, all.size());
  for (std::size_t m = 0; m < all.size(); ++m) {
    std::size_t which = inbox(2).bytes(m, 0).size() - 1000;  // their order is not promised
    ASSERT_EQ(inbox(2).messages[m]->attachments().size(), all[which].size());
    for (std::size_t k = 0; k < all[which].size(); ++k)
      EXPECT_EQ(inbox(2).bytes(m, k), all[which][k].filled());
  }
}

TEST_P(AttachmentsTest, CounterWraps) {
  std::vector<TestMemory> sent;
  for (std::uint8_t i = 0; i < 4; ++i) sent.push_back(given(500, i));
  Attachments from(job.runtime(0), GetParam().path);
  from.set_next_counter(machine::kDeviceCounterMask - 1);
  MessagePtr outgoing = message();
  for (TestMemory& one : sent) outgoing->attach(attachment(one));
  from.send(1, std::move(outgoing));
  expect_arrival(1);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(inbox(1).bytes(0, i), sent[i].filled());
}

TEST_P(AttachmentsTest, AreGivenBackWhenTheRuntimeClosesFirst) {
  std::vector<TestMemory> sent = one(1'000'000);
  std::vector<TestMemory> own = one(1'000'000);
  Operation remote = send(1, sent);
  Operation local = send(0, own);
  turns(1);
  job.runtime(1).close();
  job.runtime(0).close();
  EXPECT_EQ(released, 2);
  EXPECT_TRUE(remote.is_done());
  EXPECT_TRUE(local.is_done());
}

// Only device memory has streams, copies that fail and allocations that run out.
struct DeviceAttachmentsTest : AttachmentsTest {
  // A stream of PE `pe` that stays busy until `done` says otherwise.
  memory::StreamHandle busy_stream(int pe, const bool& done) {
    auto& device = weft::testing::emulated(job.memory(pe));
    memory::StreamHandle stream = device.create_stream(0).value();
    EXPECT_TRUE(device.launch(stream, 0, [&done] { return done ? Status() : Status::pending(); }).ok());
    return stream;
  }
  void fail_next_copy(int pe) {
    memory::EmulatedFaults faults;
    faults.fail_copy = 1;
    weft::testing::emulated(job.memory(pe)).set_faults(faults);
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, DeviceAttachmentsTest,
                         ::testing::Values(Way{"loopback", MessagingPath::kTagged, Kind::kEmulated},
                                           Way{"loopback", MessagingPath::kActive, Kind::kEmulated},
                                           Way{"ucx", MessagingPath::kTagged, Kind::kEmulated},
                                           Way{"ucx", MessagingPath::kActive, Kind::kEmulated}),
                         name_of);

TEST_P(DeviceAttachmentsTest, ASendWaitsForItsStreamAndNobodyElseDoes) {
  for (int to : {1, 0}) {
    bool done = false;
    std::vector<TestMemory> slow = one(50'000);
    std::vector<TestMemory> quick = one(60'000);
    slow[0].buffer().stream = busy_stream(0, done);
    Operation waiting = send(to, slow);
    EXPECT_TRUE(outcome(send(to, quick)).ok());
    expect_arrival(to);
    EXPECT_EQ(inbox(to).bytes(0, 0).size(), 60'000u);
    turns(100);
    EXPECT_FALSE(waiting.is_done());
    done = true;
    expect_end(waiting);
    expect_arrival(to, 2);
    EXPECT_EQ(inbox(to).bytes(1, 0), slow[0].filled());
    inbox(to).messages.clear();
  }
}

TEST_P(DeviceAttachmentsTest, ALandingWaitsForItsStream) {
  for (std::size_t capacity : {50'000, 20'000}) {
    bool done = false;
    TestMemory into(job.memory(1), place(), capacity);
    into.buffer().stream = busy_stream(1, done);
    inbox(1).post_with([&](Message&, std::span<Landing> landings) {
      landings[0].into = Attachment(into.buffer());
      return true;
    });
    std::vector<TestMemory> sent = one(50'000);
    Operation operation = send(1, sent);
    turns(100);
    EXPECT_EQ(into.now(), into.filled()) << "a kernel still uses it";
    done = true;
    expect_arrival(1);
    EXPECT_EQ(into.now(),
              Bytes(sent[0].filled().begin(), sent[0].filled().begin() + static_cast<int>(capacity)));
    expect_end(operation);
    inbox(1).messages.clear();
  }
}

TEST_P(DeviceAttachmentsTest, ACopyThatFailsAtTheSenderIsToldToItAndTheReceiverDropsTheMessage) {
  for (int to : {1, 0}) {
    std::uint64_t processed = job.runtime(0).processed() + job.runtime(to).processed();
    std::vector<TestMemory> sent;
    sent.push_back(given(5000));
    if (to == 1 && GetParam().path == MessagingPath::kTagged) sent.push_back(given(6000));
    fail_next_copy(0);
    Status status = outcome(send(to, sent));
    EXPECT_TRUE(status.failed());
    EXPECT_EQ(
        job.run_until([&] { return job.runtime(0).processed() + job.runtime(to).processed() > processed; }),
        "");
    EXPECT_TRUE(inbox(to).messages.empty());
    std::vector<TestMemory> next = one(5000);  // the pair goes on
    EXPECT_TRUE(outcome(send(to, next)).ok());
    expect_arrival(to);
    inbox(to).messages.clear();
  }
}

TEST_P(DeviceAttachmentsTest, ACopyThatFailsUnseenEndsTheJob) {
  std::vector<TestMemory> sent = one(5000);
  fail_next_copy(0);
  send(1, sent).detach();
  EXPECT_NE(job.run_until([] { return false; }), "");
}

TEST_P(DeviceAttachmentsTest, ALandingCopyThatFailsEndsTheJob) {
  std::vector<TestMemory> sent = one(5000);
  fail_next_copy(1);
  Operation operation = send(1, sent);
  std::string failure = job.run_until([] { return false; });
  EXPECT_NE(failure.find("a buffer of 5000 bytes that came with a message from PE 0 could not be received"),
            std::string::npos)
      << failure;
}

TEST_P(DeviceAttachmentsTest, AFreedBufferUnderAPendingSendIsAFailureAndNoCrash) {
  for (int to : {1, 0}) {
    bool done = false;
    std::vector<TestMemory> sent = one(5000);
    sent[0].buffer().stream = busy_stream(0, done);
    Operation operation = send(to, sent);
    turns(3);
    sent[0].free();
    done = true;
    EXPECT_TRUE(outcome(std::move(operation)).failed());
    EXPECT_TRUE(inbox(to).messages.empty());
  }
}

TEST_P(DeviceAttachmentsTest, WithoutMemoryToLandInTheJobEndsWithASentence) {
  memory::EmulatedFaults faults;
  faults.device_bytes = 1000;
  weft::testing::emulated(job.memory(1)).set_faults(faults);
  std::vector<TestMemory> sent = one(5000);
  Operation operation = send(1, sent);
  std::string failure = job.run_until([] { return false; });
  EXPECT_NE(failure.find("there is no emulated:0 memory for a buffer of 5000 bytes"), std::string::npos)
      << failure;
}

TEST_P(DeviceAttachmentsTest, LandedMemoryIsReusedOnceItsStreamIsDone) {
  std::vector<TestMemory> sent = one(5000);
  EXPECT_TRUE(outcome(send(1, sent)).ok());
  expect_arrival(1);
  const void* first = inbox(1).buffer(0, 0).data;
  bool done = false;
  inbox(1).messages[0]->attachments()[0].use_on(busy_stream(1, done));
  inbox(1).messages.clear();
  EXPECT_TRUE(outcome(send(1, sent)).ok());
  expect_arrival(1);
  EXPECT_NE(inbox(1).buffer(0, 0).data, first) << "a kernel still uses it";
  done = true;
  turns(100);
  std::vector<TestMemory> similar = one(5001);
  EXPECT_TRUE(outcome(send(1, similar)).ok());
  expect_arrival(1, 2);
  EXPECT_EQ(inbox(1).buffer(1, 0).data, first);
}

// What a peer could send that no runtime would.
struct DamagedAttachmentsTest : ::testing::Test, Job {
  DamagedAttachmentsTest() : Job("loopback", MessagingPath::kTagged) {}
  Status read(const std::vector<std::byte>& header) {
    MessagePtr incoming = Message::pack(job.runtime(1), kHandler, std::uint64_t{7});
    return Attachments(job.runtime(1), MessagingPath::kTagged).expect(*incoming, header);
  }
  Status read(const Attachments::Announcement& announced) {
    auto bytes = std::as_bytes(std::span(&announced, 1));
    return read(std::vector<std::byte>(bytes.begin(), bytes.end()));
  }
  // Sends bytes as an active message of the runtime's; what PE 1 says to it.
  std::string deliver(machine::AmId id, std::span<const std::byte> header,
                      std::span<const std::byte> payload) {
    base::Completion completion([](base::Completion*, Status, std::size_t) {});
    static_cast<void>(job.runtime(0).machine().am_send(
        1, id, header, memory::ConstBuffer(payload.data(), payload.size()), &completion));
    for (int i = 0; i < 200 && job.runtime(1).failure().empty(); ++i) turns(1);
    return job.runtime(1).failure();
  }
};

TEST_F(DamagedAttachmentsTest, NonsenseHeadersAreRefused) {
  EXPECT_EQ(read(std::vector<std::byte>(15)).code(), StatusCode::kCorrupt);
  EXPECT_EQ(
      read(std::vector<std::byte>(sizeof(Attachments::Announcement) * (Message::kMaxAttachments + 1))).code(),
      StatusCode::kCorrupt);
  EXPECT_TRUE(read(Attachments::Announcement{2, 5, 100, Kind::kEmulated}).ok());
  EXPECT_EQ(read(Attachments::Announcement{3, 5, 100, Kind::kHost}).code(), StatusCode::kCorrupt);
  EXPECT_EQ(read(Attachments::Announcement{0, machine::kDeviceCounterMask + 1, 100, Kind::kHost}).code(),
            StatusCode::kCorrupt);
  EXPECT_EQ(read(Attachments::Announcement{0, 5, 100, static_cast<Kind>(memory::kNumKinds)}).code(),
            StatusCode::kCorrupt);
  EXPECT_EQ(read(Attachments::Announcement{0, 5, ~std::uint64_t{0}, Kind::kHost}).code(),
            StatusCode::kCorrupt);
}

TEST_F(DamagedAttachmentsTest, AnAnnouncedSizeThatNobodyHasEndsTheJob) {
  for (Kind kind : {Kind::kHost, Kind::kEmulated}) {
    Job fresh("loopback", MessagingPath::kTagged);
    Attachments::Announcement announced{0, 5, std::uint64_t{1} << 60, kind};
    MessagePtr incoming = Message::pack(fresh.job.runtime(1), kHandler, std::uint64_t{7});
    Attachments to(fresh.job.runtime(1), MessagingPath::kTagged);
    ASSERT_TRUE(to.expect(*incoming, std::as_bytes(std::span(&announced, 1))).ok());
    to.arrived(std::move(incoming));
    std::string failure = fresh.job.runtime(1).failure();
    EXPECT_NE(failure.find("no"), std::string::npos);
    EXPECT_NE(failure.find("memory for a buffer of 1152921504606846976 bytes"), std::string::npos) << failure;
  }
}

TEST_F(DamagedAttachmentsTest, ABroadcastThatAnnouncesBuffersIsRefused) {
  MessagePtr outgoing = message();
  outgoing->envelope().flags = kBroadcastFlag;
  Attachments::Announcement announced{0, 5, 100, Kind::kHost};
  EXPECT_NE(
      deliver(kMessageAm, std::as_bytes(std::span(&announced, 1)), {outgoing->wire(), outgoing->wire_bytes()})
          .find("broadcast"),
      std::string::npos);
}

TEST_F(DamagedAttachmentsTest, AMessageThatIsShorterThanItsEnvelopeIsRefused) {
  std::vector<std::byte> header(sizeof(Attachments::Announcement) + sizeof(Envelope) - 1);
  std::vector<std::byte> payload(8);
  EXPECT_NE(deliver(kBufferMessageAm, header, payload).find("shorter than its envelope"), std::string::npos);
}

TEST_F(DamagedAttachmentsTest, APayloadOfAnotherSizeThanAnnouncedIsRefused) {
  std::vector<std::byte> header(sizeof(Attachments::Announcement) + sizeof(Envelope));
  std::vector<std::byte> payload(8);
  EXPECT_NE(deliver(kBufferMessageAm, header, payload).find("announces 0 bytes and carries 8"),
            std::string::npos);
}

TEST_F(DamagedAttachmentsTest, RandomHeadersNeverCrash) {
  const unsigned seed = std::random_device{}();
  RecordProperty("seed", static_cast<int>(seed));
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  for (int i = 0; i < 300; ++i) {
    Job fresh("loopback", MessagingPath::kTagged);
    std::vector<std::byte> header(random() % 100);
    for (std::byte& byte : header) byte = static_cast<std::byte>(random() % 3 == 0 ? random() : 0);
    std::vector<std::byte> payload(random() % 64);
    for (std::byte& byte : payload) byte = static_cast<std::byte>(random() % 3 == 0 ? random() : 0);
    base::Completion completion([](base::Completion*, Status, std::size_t) {});
    static_cast<void>(fresh.job.runtime(0).machine().am_send(
        1, random() % 2 == 0 ? kMessageAm : kBufferMessageAm, header,
        memory::ConstBuffer(payload.data(), payload.size()), &completion));
    fresh.turns(5);
  }
}

TEST_F(DamagedAttachmentsTest, TooManyBuffersAreTheCallersError) {
  TestMemory given(job.memory(0), {}, 8);
  MessagePtr outgoing = message();
  for (std::size_t i = 0; i < Message::kMaxAttachments; ++i) outgoing->attach(Attachment(given.buffer()));
  EXPECT_THROW(outgoing->attach(Attachment(given.buffer())), Error);
  job.runtime(0).send(1, std::move(outgoing));
  expect_arrival(1);
  EXPECT_EQ(inbox(1).messages[0]->attachments().size(), Message::kMaxAttachments);
}

TEST_F(DamagedAttachmentsTest, ABroadcastCannotCarryBuffers) {
  TestMemory given(job.memory(0), {}, 8);
  MessagePtr outgoing = message();
  outgoing->attach(Attachment(given.buffer()));
  EXPECT_THROW(job.runtime(0).broadcast(std::move(outgoing)), Error);
}

}  // namespace
}  // namespace weft::runtime
