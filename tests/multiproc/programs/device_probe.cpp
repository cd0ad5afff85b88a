// Two PEs that move buffers of one memory kind in every way there is and check each byte; the same program
// for `emulated` everywhere and for `cuda` where there are GPUs.
//
//     device_probe machine KIND   tagged and active messages, put and get, nothing of Weft above the machine
//     device_probe channel KIND   channels between two chares, whose ends are device or host memory
//     device_probe share KIND     each PE maps what the other exports, reads it and writes it
//     device_probe mapped KIND    a channel whose receives of device memory are posted before they are sent
//     to,
//                                 so that they are copied peer-mapped where possible; some receivers sleep
//     device_probe freed KIND     a chare frees a buffer whose send is under way
//
// The first four print "PE n moved KIND:DEVICE" on both PEs when all was right, and "mapped" the number of
// messages that PE copied to its peer: "PE n moved KIND:DEVICE, 12 of 13 into mapped memory".
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weft/weft.h"

#include "machine/bootstrap/bootstrap.h"
#include "machine/factory/factory.h"
#include "machine/machine.h"
#include "memory/memory.h"
#include "tests/support/pattern.h"

namespace {

using weft::base::Status;
using weft::memory::Buffer;
using weft::memory::ConstBuffer;
using weft::memory::Kind;
using weft::memory::Memory;
using weft::memory::Place;
using weft::test_support::pattern;

constexpr std::array<std::size_t, 6> kSizes = {1, 8, 4097, 65537, std::size_t{1} << 20, std::size_t{9} << 20};

struct Pending : weft::base::Completion {
  Pending() : Completion(&Pending::call) {}
  static void call(Completion* self, Status status_in, std::size_t) {
    auto& pending = *static_cast<Pending*>(self);
    pending.done = true;
    pending.status = std::move(status_in);
  }
  Pending& start(Status started) {
    done = !started.is_pending();
    if (done) status = std::move(started);
    return *this;
  }
  bool done = false;
  Status status;
};

// A buffer of any kind whose bytes the CPU may set and look at, outside of any traffic.
class Block {
 public:
  Block(Memory& memory, Place place, std::vector<std::byte> contents)
      : memory_(memory), host_(std::move(contents)) {
    auto buffer = memory.allocate(host_.size(), place);
    weft::base::check(buffer.status());
    buffer_ = *buffer;
    weft::base::check(copy(memory_, buffer_, {host_.data(), host_.size()}));
  }
  ~Block() {
    if (buffer_.data != nullptr) (void)memory_.deallocate(buffer_);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  const Buffer& buffer() const { return buffer_; }
  void free() {
    weft::base::check(memory_.deallocate(buffer_));
    buffer_ = {};
  }
  void expect(const std::vector<std::byte>& contents, std::string_view what) {
    weft::base::check(copy(memory_, {host_.data(), host_.size(), {}, nullptr}, buffer_));
    if (host_ == contents) return;
    throw weft::Error(weft::base::StatusCode::kCorrupt,
                      fmt::format("{} bytes of {} are wrong after {}", contents.size(),
                                  weft::memory::place_name(buffer_.place), what));
  }

  static Status copy(Memory& memory, const Buffer& to, const ConstBuffer& from) {
    Pending pending;
    pending.start(memory.copy(to, from, &pending));
    while (!pending.done) memory.progress();
    return pending.status;
  }

 private:
  Memory& memory_;
  std::vector<std::byte> host_;
  Buffer buffer_;
};

// --- the machine alone

class Pair {
 public:
  Pair(weft::machine::Bootstrap& bootstrap, weft::machine::Machine& machine, Memory& memory, Kind kind)
      : bootstrap_(bootstrap), machine_(machine), memory_(memory), place_(memory.default_place(kind)) {
    weft::base::check(machine_.set_am_handler(
        kAm,
        [](void* self, weft::machine::AmArrival& arrival) {
          auto& pair = *static_cast<Pair*>(self);
          pair.arrived_ = arrival.take();
          pair.has_arrived_ = true;
        },
        this));
    weft::base::check(bootstrap_.barrier());
  }

  void move(std::size_t size_bytes) {
    Block out(memory_, place_, mine(size_bytes));
    exchange_tagged(out);
    exchange_active(out);
    put_and_get(out);
  }

 private:
  static constexpr weft::machine::AmId kAm = 3;
  static constexpr weft::machine::Tag kData = weft::machine::make_tag(15, 1);
  static constexpr weft::machine::Tag kMeeting = weft::machine::make_tag(15, 2);

  int peer() const { return 1 - machine_.pe(); }
  std::vector<std::byte> mine(std::size_t size_bytes) const { return pattern(size_bytes, 7 + machine_.pe()); }
  std::vector<std::byte> theirs(std::size_t size_bytes) const { return pattern(size_bytes, 7 + peer()); }

  void wait(Pending& pending) {
    while (!pending.done) machine_.progress();
    weft::base::check(pending.status);
  }
  // Both PEs have come this far; unlike the bootstrap's barrier it serves the peer meanwhile.
  void meet() {
    Pending sent;
    Pending received;
    received.start(machine_.tag_receive(kMeeting, weft::machine::kFullTagMask, {}, &received));
    sent.start(machine_.tag_send(peer(), kMeeting, {}, &sent));
    wait(sent);
    wait(received);
  }

  void exchange_tagged(const Block& out) {
    const std::size_t size_bytes = out.buffer().size_bytes;
    Block in(memory_, place_, std::vector<std::byte>(size_bytes));
    Pending sent;
    Pending received;
    received.start(machine_.tag_receive(kData, weft::machine::kFullTagMask, in.buffer(), &received));
    sent.start(machine_.tag_send(peer(), kData, out.buffer(), &sent));
    wait(received);
    wait(sent);
    in.expect(theirs(size_bytes), "a tagged message");
  }

  void exchange_active(const Block& out) {
    const std::size_t size_bytes = out.buffer().size_bytes;
    Block in(memory_, place_, std::vector<std::byte>(size_bytes));
    has_arrived_ = false;
    meet();
    Pending sent;
    Pending received;
    sent.start(machine_.am_send(peer(), kAm, {}, out.buffer(), &sent));
    while (!has_arrived_) machine_.progress();
    received.start(machine_.am_receive(std::move(arrived_), in.buffer(), &received));
    wait(received);
    wait(sent);
    in.expect(theirs(size_bytes), "an active message");
  }

  void put_and_get(const Block& out) {
    const std::size_t size_bytes = out.buffer().size_bytes;
    Block window(memory_, place_, std::vector<std::byte>(size_bytes));
    Block got(memory_, place_, std::vector<std::byte>(size_bytes));
    auto registered = machine_.register_memory(window.buffer());
    weft::base::check(registered.status());
    const weft::machine::RemoteMemory remote = exchange(*registered);
    Pending put;
    Pending flushed;
    Pending get;
    put.start(machine_.put(peer(), out.buffer(), remote, 0, &put));
    wait(put);
    flushed.start(machine_.flush(&flushed));
    wait(flushed);
    meet();
    get.start(machine_.get(peer(), got.buffer(), remote, 0, &get));
    wait(get);
    meet();
    window.expect(theirs(size_bytes), "a put");
    got.expect(mine(size_bytes), "a put and a get of it");
    weft::base::check(machine_.deregister_memory(*registered));
  }

  weft::machine::RemoteMemory exchange(const weft::machine::RemoteMemory& registered) {
    meet();  // the exchange blocks, so no PE may need this PE's progress
    std::vector<std::byte> bytes(sizeof registered.address);
    std::memcpy(bytes.data(), &registered.address, sizeof registered.address);
    bytes.push_back(static_cast<std::byte>(registered.place.device));
    bytes.insert(bytes.end(), registered.key.begin(), registered.key.end());
    auto all = bootstrap_.exchange(bytes);
    weft::base::check(all.status());
    const std::vector<std::byte>& from_peer = (*all)[static_cast<std::size_t>(peer())];
    weft::machine::RemoteMemory remote = registered;
    std::memcpy(&remote.address, from_peer.data(), sizeof remote.address);
    remote.place.device = static_cast<std::int16_t>(from_peer[sizeof remote.address]);
    remote.key.assign(from_peer.begin() + sizeof remote.address + 1, from_peer.end());
    return remote;
  }

  weft::machine::Bootstrap& bootstrap_;
  weft::machine::Machine& machine_;
  Memory& memory_;
  Place place_;
  weft::machine::AmPayload arrived_;
  bool has_arrived_ = false;
};

void say_moved(int pe, Place place) {
  std::printf("PE %d moved %s\n", pe, weft::memory::place_name(place).c_str());
  std::fflush(stdout);
}

void run_machine(Kind kind) {
  auto bootstrap = weft::machine::make_bootstrap();
  weft::base::check(bootstrap.status());
  auto options = weft::memory::MemoryOptions::from_environment((*bootstrap)->local_rank());
  weft::base::check(options.status());
  Memory memory(*options);
  auto machine = weft::machine::make_machine(**bootstrap, memory);
  weft::base::check(machine.status());
  {
    Pair pair(**bootstrap, **machine, memory, kind);
    for (const std::size_t size_bytes : kSizes) pair.move(size_bytes);
  }
  say_moved((*bootstrap)->pe(), memory.default_place(kind));
  weft::base::check((*bootstrap)->barrier());
  (*machine)->close();
  memory.close();
  (*bootstrap)->finished(0);
}

// --- memory that two processes map

void share(weft::machine::Bootstrap& bootstrap, Memory& memory, Kind kind) {
  const auto meet = [&] { weft::base::check(bootstrap.barrier()); };
  const Place place = memory.default_place(kind);
  const std::size_t size_bytes = kSizes.back();
  const int pe = bootstrap.pe();
  const int peer = 1 - pe;
  weft::memory::KindBackend& backend = *memory.backend(kind);
  Block own(memory, place, pattern(size_bytes, 7 + pe));
  Block here(memory, place, std::vector<std::byte>(size_bytes));
  auto exported = backend.export_allocation(own.buffer().data);
  weft::base::check(exported.status());
  auto all = bootstrap.exchange(*exported);
  weft::base::check(all.status());
  auto imported = backend.import_allocation((*all)[static_cast<std::size_t>(peer)], place.device);
  weft::base::check(imported.status());

  weft::base::check(Block::copy(memory, here.buffer(), *imported));
  here.expect(pattern(size_bytes, 7 + peer), "a read of what the other PE exported");
  meet();
  Block news(memory, place, pattern(size_bytes, 70 + pe));
  weft::base::check(Block::copy(memory, *imported, news.buffer()));
  meet();
  own.expect(pattern(size_bytes, 70 + peer), "a write by the PE that imported it");
  if (kind == Kind::kEmulated) {  // CUDA leaves it undefined
    own.free();
    meet();
    const Status status = Block::copy(memory, here.buffer(), *imported);
    if (status.message().find("which has freed it") == std::string_view::npos) {
      throw weft::Error(weft::base::StatusCode::kInternal,
                        "nobody noticed that the other PE freed its memory");
    }
  }
  weft::base::check(backend.release_import(imported->data));
  meet();
}

void run_share(Kind kind) {
  auto bootstrap = weft::machine::make_bootstrap();
  weft::base::check(bootstrap.status());
  auto options = weft::memory::MemoryOptions::from_environment((*bootstrap)->local_rank());
  weft::base::check(options.status());
  Memory memory(*options);
  share(**bootstrap, memory, kind);
  say_moved((*bootstrap)->pe(), memory.default_place(kind));
  (*bootstrap)->finished(0);
}

// --- channels

// A failure here has no awaiting caller and ends the job, although the other PE waits for data that never
// comes.
struct Mover : weft::Chare<Mover> {
  weft::Task<> move(std::uint8_t kind) {
    const Place device = runtime().memory().default_place(static_cast<Kind>(kind));
    weft::Channel channel(*this, proxy()[1 - index()]);
    for (const std::size_t size_bytes : kSizes) {
      co_await exchange(channel, device, device, size_bytes);
      co_await exchange(channel, device, Place(), size_bytes);
      co_await exchange(channel, Place(), device, size_bytes);
    }
    say_moved(pe(), device);
    over_.set();
  }

  weft::Task<> over() { co_await over_; }

  // Buffers in the middle of allocations, used three times and then anew; both directions at a time.
  weft::Task<> move_posted(std::uint8_t kind) {
    const Place device = runtime().memory().default_place(static_cast<Kind>(kind));
    weft::Channel channel(*this, proxy()[1 - index()]);
    weft::Channel ready(*this, proxy()[1 - index()], 1);
    int sent = 0;
    for (const std::size_t size_bytes : kSizes) {
      const std::size_t before = 3 * size_bytes / 2;
      const std::size_t whole = before + size_bytes + 5;
      Block out(runtime().memory(), device, pattern(whole, 7 + index()));
      Block in(runtime().memory(), device, std::vector<std::byte>(whole));
      std::vector<std::byte> expected(whole);
      for (const std::size_t offset : {std::size_t{0}, before, std::size_t{0}}) {
        const Buffer to = part(in.buffer(), offset, size_bytes);
        weft::Operation received = channel.recv(to);
        // An empty message on another channel says that the receive is posted.
        ready.send(ConstBuffer()).detach();
        co_await ready.recv(Buffer());
        const ConstBuffer from = part(out.buffer(), before - offset, size_bytes);
        co_await channel.send(from);
        co_await received;
        ++sent;
        const std::vector<std::byte> theirs = pattern(whole, 7 + (1 - index()));
        std::copy_n(theirs.begin() + static_cast<std::ptrdiff_t>(before - offset), size_bytes,
                    expected.begin() + static_cast<std::ptrdiff_t>(offset));
      }
      in.expect(expected, "a channel's posted messages");
    }
    for (const int sender : {0, 1}) co_await wake(channel, ready, device, sender);
    sent += 2;
    std::printf("PE %d moved %s, %d of %d into mapped memory\n", pe(),
                weft::memory::place_name(device).c_str(), num_copies(), sent);
    std::fflush(stdout);
    over_.set();
  }

  weft::Task<> free_early(std::uint8_t kind) {
    const Place device = runtime().memory().default_place(static_cast<Kind>(kind));
    weft::Channel channel(*this, proxy()[1 - index()]);
    co_await exchange(channel, device, device, kSizes.front());  // from now on sends start at once
    Block out(runtime().memory(), device, mine(kSizes.back()));
    Block in(runtime().memory(), device, std::vector<std::byte>(kSizes.back()));
    weft::Operation sent = channel.send(out.buffer());
    if (index() == 0) out.free();
    co_await channel.recv(in.buffer());
    co_await sent;
    over_.set();
  }

 private:
  // One message to a PE that has gone to sleep over its receive, as an idle one does within a millisecond or
  // so. Were it not woken, the job would hang.
  weft::Task<> wake(weft::Channel& channel, weft::Channel& ready, Place device, int sender) {
    constexpr std::size_t kBytes = 100;
    Block out(runtime().memory(), device, mine(kBytes));
    Block in(runtime().memory(), device, std::vector<std::byte>(kBytes));
    for (const double seconds : {0.0, 0.05}) {  // a buffer's first use is with its tag
      if (index() == sender) {
        co_await ready.recv(Buffer());
        co_await runtime().sleep(seconds);
        co_await channel.send(out.buffer());
      } else {
        weft::Operation received = channel.recv(in.buffer());
        ready.send(ConstBuffer()).detach();
        co_await received;
        in.expect(pattern(kBytes, 7 + (1 - index())), "a message to a sleeping PE");
      }
    }
  }
  static Buffer part(const Buffer& whole, std::size_t offset, std::size_t size_bytes) {
    return {static_cast<std::byte*>(whole.data) + offset, size_bytes, whole.place, nullptr};
  }
  int num_copies() {
    std::uint64_t copies = 0;
    for (const auto& use : runtime().machine().transport_use()) {
      if (use.path == weft::machine::TransferPath::kPeerMapped) copies += use.messages;
    }
    return static_cast<int>(copies);
  }
  std::vector<std::byte> mine(std::size_t size_bytes) const { return pattern(size_bytes, 7 + index()); }

  weft::Task<> exchange(weft::Channel& channel, Place from, Place to, std::size_t size_bytes) {
    Block out(runtime().memory(), from, mine(size_bytes));
    Block in(runtime().memory(), to, std::vector<std::byte>(size_bytes));
    weft::Operation sent = channel.send(out.buffer());
    co_await channel.recv(in.buffer());
    co_await sent;
    in.expect(pattern(size_bytes, 7 + (1 - index())), "a channel's message");
  }

  weft::Future<> over_{runtime()};
};

weft::Task<> start(weft::Runtime& runtime, std::string_view what, Kind kind) {
  auto movers = weft::Group<Mover>::create(runtime);
  if (what == "freed") {
    movers.send<&Mover::free_early>(static_cast<std::uint8_t>(kind));
  } else if (what == "mapped") {
    movers.send<&Mover::move_posted>(static_cast<std::uint8_t>(kind));
  } else {
    movers.send<&Mover::move>(static_cast<std::uint8_t>(kind));
  }
  co_await movers.call<&Mover::over>();
}

}  // namespace

const std::set<std::string_view> kWays = {"machine", "channel", "share", "mapped", "freed"};

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const auto kind = weft::memory::kind_from_name(argc > 2 ? argv[2] : "");
  if (!kind.has_value() || !kWays.contains(what)) {
    std::fputs("usage: device_probe machine|channel|share|mapped|freed KIND\n", stderr);
    return 2;
  }
  if (what == "channel" || what == "mapped" || what == "freed") {
    return weft::run(argc, argv, [=](weft::Runtime& runtime) { return start(runtime, what, *kind); });
  }
  try {
    what == "machine" ? run_machine(*kind) : run_share(*kind);
    return 0;
  } catch (const weft::Error& error) {
    std::fprintf(stderr, "device_probe: %s\n", error.what());
    return 1;
  }
}
