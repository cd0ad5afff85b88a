// The bare machine between two PEs, without the layers above: tagged messages (--way tag) or active messages
// (--way am).
//
// As in ucx_perftest, an active message's eager payload is read where it arrived, without a copy.
#include <fmt/format.h>

#include <cstring>
#include <memory>

#include "benchmarks/measuring.h"
#include "machine/bootstrap/bootstrap.h"
#include "machine/factory/factory.h"
#include "machine/machine.h"
#include "memory/memory.h"

namespace weft::benchmarks {
namespace {

constexpr machine::AmId kDataAm = 1;
constexpr machine::AmId kAcknowledgeAm = 2;
constexpr machine::Tag kDataTag = machine::make_tag(15, 1);
constexpr machine::Tag kAcknowledgeTag = machine::make_tag(15, 2);

// A Completion that counts itself.
struct Counted : base::Completion {
  explicit Counted(std::int64_t& done_in) : Completion(&Counted::call), done(&done_in) {}
  static void call(base::Completion* self, base::Status status, std::size_t) {
    if (status.failed()) die(status.to_string());
    ++*static_cast<Counted*>(self)->done;
  }
  std::int64_t* done;
};

// One PE's end: sends and receives by number, so that the loops read alike for both ways.
class Peer {
 public:
  Peer(machine::Machine& machine, memory::Memory& memory, const Arguments& arguments, const Step& step)
      : machine_(machine),
        memory_(memory),
        active_messages_(arguments.way == "am"),
        peer_(1 - machine.pe()),
        // Windows go one way.
        outgoing_(allocate(arguments.memory, step.size_bytes, machine.pe() == 0 ? step.buffers : 1)),
        incoming_(allocate(arguments.memory, step.size_bytes, machine.pe() == 0 ? 1 : step.buffers)) {
    for (int i = 0; i < kWindow; ++i) {
      sends_.emplace_back(sent_);
      receives_.emplace_back(received_);
    }
    check(machine.set_am_handler(kDataAm, &Peer::on_data, this));
    check(machine.set_am_handler(kAcknowledgeAm, &Peer::on_acknowledge, this));
  }
  ~Peer() {
    for (const memory::Buffer& buffer : outgoing_) check(memory_.deallocate(buffer));
    for (const memory::Buffer& buffer : incoming_) check(memory_.deallocate(buffer));
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void ping_pong(std::int64_t round_trips) {
    for (std::int64_t i = 0; i < round_trips; ++i) {
      if (machine_.pe() == 0) send(0);
      receive(0);
      wait(received_, 1);
      if (machine_.pe() == 1) send(0);
      wait(sent_, 1);
    }
  }

  void windows(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (machine_.pe() == 0) {
        for (int slot = 0; slot < kWindow; ++slot) send(slot);
        wait(sent_, kWindow);
        receive_acknowledgement();
      } else {
        for (int slot = 0; slot < kWindow; ++slot) receive(slot);
        wait(received_, kWindow);
        send_acknowledgement();
      }
    }
  }

 private:
  static void check(base::Status status) {
    if (status.failed()) die(status.to_string());
  }
  // Whether the operation is over already.
  static bool over(base::Status status) {
    check(status);
    return !status.is_pending();
  }

  std::vector<memory::Buffer> allocate(memory::Kind kind, std::size_t size_bytes, std::int64_t count) {
    std::vector<memory::Buffer> buffers;
    for (std::int64_t i = 0; i < count; ++i) {
      auto buffer = memory_.allocate(size_bytes, memory_.default_place(kind));
      if (!buffer.ok()) die(buffer.status().to_string());
      // Pages never written are all one page of zeros.
      if (kind == memory::Kind::kHost) std::memset(buffer->data, 1, size_bytes);
      buffers.push_back(*buffer);
    }
    return buffers;
  }

  const memory::Buffer& next_outgoing() { return outgoing_[next_sent_++ % outgoing_.size()]; }
  const memory::Buffer& next_incoming() { return incoming_[next_received_++ % incoming_.size()]; }

  void send(int slot) {
    Counted* completion = &sends_[static_cast<std::size_t>(slot)];
    if (over(active_messages_ ? machine_.am_send(peer_, kDataAm, {}, next_outgoing(), completion)
                              : machine_.tag_send(peer_, kDataTag, next_outgoing(), completion))) {
      ++sent_;
    }
  }

  // Active messages need no posted receive.
  void receive(int slot) {
    if (active_messages_) return;
    Counted* completion = &receives_[static_cast<std::size_t>(slot)];
    if (over(machine_.tag_receive(kDataTag, machine::kFullTagMask, next_incoming(), completion))) {
      ++received_;
    }
  }

  void send_acknowledgement() {
    Counted completion(sent_);
    if (over(active_messages_ ? machine_.am_send(peer_, kAcknowledgeAm, {}, {}, &completion)
                              : machine_.tag_send(peer_, kAcknowledgeTag, {}, &completion))) {
      ++sent_;
    }
    wait(sent_, 1);
  }

  void receive_acknowledgement() {
    Counted completion(acknowledged_);
    if (!active_messages_ &&
        over(machine_.tag_receive(kAcknowledgeTag, machine::kFullTagMask, {}, &completion))) {
      ++acknowledged_;
    }
    wait(acknowledged_, 1);
  }

  void wait(std::int64_t& counter, std::int64_t target) {
    while (counter < target) machine_.progress();
    counter -= target;
  }

  static void on_data(void* context, machine::AmArrival& arrival) {
    auto& self = *static_cast<Peer*>(context);
    if (arrival.data != nullptr || arrival.payload_size_bytes == 0) {
      ++self.received_;
      return;
    }
    Counted* completion = &self.receives_[static_cast<std::size_t>(self.next_slot_++ % kWindow)];
    if (over(self.machine_.am_receive(arrival.take(), self.next_incoming(), completion))) ++self.received_;
  }

  static void on_acknowledge(void* context, machine::AmArrival&) {
    ++static_cast<Peer*>(context)->acknowledged_;
  }

  machine::Machine& machine_;
  memory::Memory& memory_;
  bool active_messages_;
  int peer_;
  std::vector<memory::Buffer> outgoing_;
  std::vector<memory::Buffer> incoming_;
  std::size_t next_sent_ = 0;
  std::size_t next_received_ = 0;
  std::vector<Counted> sends_;
  std::vector<Counted> receives_;
  std::int64_t sent_ = 0;
  std::int64_t received_ = 0;
  std::int64_t acknowledged_ = 0;
  std::int64_t next_slot_ = 0;
};

void measure(machine::Bootstrap& bootstrap, machine::Machine& machine, memory::Memory& memory,
             const Arguments& arguments) {
  auto exchange = arguments.bench == Bench::kLatency ? &Peer::ping_pong : &Peer::windows;
  for (const Step& step : arguments.steps) {
    Peer peer(machine, memory, arguments, step);
    if (base::Status status = bootstrap.barrier(); status.failed()) die(status.to_string());
    (peer.*exchange)(step.warmup);
    Stopwatch stopwatch;
    (peer.*exchange)(step.iterations);
    if (machine.pe() == 0) report(arguments.bench, step, stopwatch.elapsed_s());
  }
}

int run(int argc, char** argv) {
  Arguments arguments = parse_arguments(argc, argv);
  auto bootstrap = machine::make_bootstrap();
  if (!bootstrap.ok()) die(bootstrap.status().to_string());
  if ((*bootstrap)->num_pes() != 2) die("this needs 2 PEs: weft run -n 2 machine_pingpong ...");
  pin((*bootstrap)->pe());
  auto options = memory::MemoryOptions::from_environment((*bootstrap)->local_rank());
  if (!options.ok()) die(options.status().to_string());
  memory::Memory memory(*options);
  auto machine = machine::make_machine(**bootstrap, memory);
  if (!machine.ok()) die(machine.status().to_string());
  measure(**bootstrap, **machine, memory, arguments);
  if (base::Status status = (*bootstrap)->barrier(); status.failed()) die(status.to_string());
  (*machine)->close();
  memory.close();
  (*bootstrap)->finished(0);
  return 0;
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) { return weft::benchmarks::run(argc, argv); }
