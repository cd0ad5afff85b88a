// Shared by the tests of attachments: a job whose PEs keep what arrives, and the ways it is run in.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/message/handlers.h"
#include "runtime/message/outgoing.h"
#include "tests/support/device_memory.h"
#include "tests/support/in_process_job.h"
#include "tests/support/payload_ways.h"

namespace weft::runtime {

using memory::Buffer;
using memory::Kind;
using memory::Place;
using weft::testing::kDeviceWays;
using weft::testing::kEveryWay;
using weft::testing::name_of;
using weft::testing::TestMemory;
using weft::testing::Way;

inline constexpr HandlerId kHandler = kNumHandlers - 1;
using Bytes = std::vector<std::uint8_t>;

// The contents of the messages that arrive on one PE, and the function that chooses where they land.
struct Inbox {
  explicit Inbox(Runtime& runtime_in) : runtime(runtime_in) {
    runtime.set_handler(
        kHandler,
        [](void* context, MessagePtr message) { self(context).messages.push_back(std::move(message)); },
        this);
  }
  // `function` may take the message away to defer it; otherwise it says whether the message is wanted.
  void post_with(std::function<bool(MessagePtr&, std::span<ReceiveBuffer>)> function) {
    poster = std::move(function);
    runtime.set_poster(
        kHandler,
        [](void* context, MessagePtr& message, std::span<ReceiveBuffer> receive_buffers) {
          ++self(context).posted;
          const bool wanted = self(context).poster(message, receive_buffers);
          if (message == nullptr) return Posting::kDefer;
          return wanted ? Posting::kHandle : Posting::kDrop;
        },
        [](void* context, Message&) { ++self(context).dropped; });
  }
  static Inbox& self(void* context) { return *static_cast<Inbox*>(context); }
  Bytes bytes(std::size_t message, std::size_t attachment) const {
    return weft::testing::contents(runtime.memory(), buffer(message, attachment));
  }
  const Buffer& buffer(std::size_t message, std::size_t attachment) const {
    return messages.at(message)->attachments()[attachment].buffer();
  }

  Runtime& runtime;
  std::function<bool(MessagePtr&, std::span<ReceiveBuffer>)> poster;
  int posted = 0;
  int dropped = 0;
  std::vector<MessagePtr> messages;
};

// A job whose messages carry buffers.
struct AttachmentsJob {
  AttachmentsJob(std::string_view machine, MessagingPath path, int num_pes = 3)
      : job(num_pes, machine, options(path)) {
    for (int pe = 0; pe < num_pes; ++pe) inboxes.push_back(std::make_unique<Inbox>(job.runtime(pe)));
  }
  static RuntimeOptions options(MessagingPath path) {
    RuntimeOptions made;
    made.messaging_path = path;
    return made;
  }

  Inbox& inbox(int pe) { return *inboxes[static_cast<std::size_t>(pe)]; }
  MessagePtr message(int from = 0) { return Message::pack(job.runtime(from), kHandler, std::uint64_t{7}); }
  // Sends PE 0's memory; its release is counted in `released`.
  Operation send(int pe, std::span<TestMemory> given) {
    MessagePtr made = message();
    for (TestMemory& one : given) made->attach(attachment(one));
    Operation sent(report_sending(job.runtime(0), *made));
    job.runtime(0).send(pe, std::move(made));
    return sent;
  }
  Operation broadcast(int from, std::span<TestMemory> given) {
    MessagePtr made = message(from);
    for (TestMemory& one : given) made->attach(attachment(one));
    Operation sent(report_sending(job.runtime(from), *made));
    job.runtime(from).broadcast(std::move(made));
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

// Everything that must hold on both machines, both wire paths, for memory of each kind.
struct AttachmentsTest : ::testing::TestWithParam<Way>, AttachmentsJob {
  AttachmentsTest() : AttachmentsJob(GetParam().machine, GetParam().path) {}
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

}  // namespace weft::runtime
