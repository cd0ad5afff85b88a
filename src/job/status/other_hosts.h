// The status pages of PEs on other hosts, for `weft top`: the first PE of each host, its leader, asks for them when a reader wants them.
//
// The leader has a shared file ("/memfd:weft-others") with a slot for each PE, and a pipe, whose number is in the file. A reader writes
// a byte to the pipe (through /proc) and reads the slots. The leader asks the PEs of the other hosts by an urgent message, which they
// answer also while a call of theirs waits. A PE that computes does not answer: its slot keeps what it said last.
// A leader that computes does not ask.
// While nobody asks, a thread of the leader sleeps, and the PEs do nothing. python/weft/_top/hosts.py knows the layout.
//
// Threads: the PE's, besides that thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "weft/runtime/message.h"
#include "weft/runtime/model.h"
#include "weft/runtime/runtime.h"

#include "base/shared_file.h"
#include "job/status/status_page.h"
#include "job/status/status_publisher.h"

namespace weft::job {

inline constexpr std::array<char, 8> kOthersMagic = {'w', 'e', 'f', 't', '-', 'o', 'h', '\0'};

struct OthersHead {
  std::array<char, 8> magic;
  std::uint32_t version;  // kStatusVersion
  std::uint32_t slot_bytes;
  std::int32_t num_pes;
  std::int32_t ask_fd;  // of the leader: the end of the pipe that is written to
};

// Valid if `sequence` is even and not 0, and the same before and after the slot is read.
struct OthersSlot {
  std::atomic<std::uint64_t> sequence;
  std::int64_t answered_ns;  // CLOCK_MONOTONIC of this host
  // What the PE has sent, from here on. Its times are of CLOCK_MONOTONIC on its host.
  std::int64_t read_ns;
  std::uint64_t resident_bytes;
  std::array<char, 64> host;
  std::array<std::byte, sizeof(StatusPage)> page;
};
static_assert(sizeof(OthersHead) == 24 && offsetof(OthersSlot, read_ns) == 16 &&
                  offsetof(OthersSlot, page) == 96 && sizeof(OthersSlot) == 4464,
              "Python reads them by offsets");

class OtherHosts final : public runtime::Model {
 public:
  static constexpr runtime::ModelNeeds kNeeds{.name = "status", .num_handlers = 2, .uses_tags = false};

  OtherHosts(runtime::Runtime& runtime, const runtime::ModelRange& range);
  ~OtherHosts() override;
  void close() override;

  // `publisher` has the page of this PE and must live until the job has ended. `hosts`: a number for the host of each PE. If the system
  // has no file, pipe or thread left, `weft top` does not see the other hosts from here.
  void begin(const StatusPublisher& publisher, std::vector<int> hosts);
  runtime::HandlerId first_handler() const { return ask_handler_; }
  // Of the leader after begin(); else empty.
  const base::SharedFile& file() const { return file_; }

 private:
  bool make_file();
  void serve();
  void ask();
  void answer(int pe);
  void take(runtime::Message& message);
  OthersSlot* slot(int pe) const;
  void send(int pe, runtime::MessagePtr message);

  runtime::Runtime& runtime_;
  const runtime::HandlerId ask_handler_;
  const runtime::HandlerId answer_handler_;
  const StatusPublisher* publisher_ = nullptr;
  std::string host_name_;
  // --- Of the leader
  std::vector<int> hosts_;
  base::SharedFile file_;
  std::byte* memory_ = nullptr;
  std::array<int, 2> pipe_{-1, -1};
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace weft::job
