// One-sided operations through UCX alone, of process 0 on memory of process 1 of the same host, as in pgas_copy.cpp.
//
//   raw_ucx_rma BENCH SIZE:ITERATIONS:WARMUP[:BUFFERS]... --way put|get[-allocated][-with-error-handling][,SOURCE-TARGET]
//               [--memory KIND] [--devices 0,1]
//
// SOURCE and TARGET: host or device, which is memory of KIND on the process's own device; by default host.
// A put is ucp_put_nbx and a flush of the endpoint, which comes once behind each window of pgas_flood. pgas_fetch_add is an
// atomic operation, without error handling. "allocated": UCX allocates the memory of both, and may map it in the other
// process. Else it is memory of the program that is registered with UCX. A process that does not operate makes progress.
#include <ucp/api/ucp.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "benchmarks/device_copies.h"
#include "benchmarks/measuring.h"
#include "benchmarks/raw_ucx_pair.h"

namespace weft::benchmarks {
namespace {

constexpr ucp_tag_t kOverTag = 1;
constexpr char kSent = 1;
constexpr char kOld = 2;

struct Way {
  explicit Way(std::string_view text)
      : is_put(text.starts_with("put")),
        is_allocated(text.find("-allocated") != text.npos),
        handles_errors(text.find("-with-error-handling") != text.npos) {
    if (const std::size_t comma = text.find(','); comma != text.npos) {
      const std::string_view pair = text.substr(comma + 1);
      const std::size_t dash = std::min(pair.find('-'), pair.size());
      source_is_device = is_device(pair.substr(0, dash));
      target_is_device = is_device(pair.substr(std::min(dash + 1, pair.size())));
    }
    const bool far_is_device = is_put ? target_is_device : source_is_device;
    if (is_allocated && far_is_device) die("UCX allocates host memory only here");
  }
  static bool is_device(std::string_view name) {
    if (name != "host" && name != "device") die("SOURCE and TARGET are host or device");
    return name == "device";
  }
  bool is_put;
  bool is_allocated;
  bool handles_errors;
  bool source_is_device = false;
  bool target_is_device = false;
};

// Where a process's buffers are. Made in the process that uses it: a device does not survive a fork.
class Places {
 public:
  Places(const Partner& partner, const Arguments& arguments)
      : device_{arguments.memory,
                static_cast<std::int16_t>(arguments.devices[static_cast<std::size_t>(partner.process())])} {
    if (arguments.memory == memory::Kind::kHost) return;
    expect_ok(memory_.availability(arguments.memory));
    // UCX uses the context that is current.
    expect_ok(memory_.backend(arguments.memory)->make_current(device_.device));
  }

  memory::Memory& memory() { return memory_; }
  memory::Place place(bool is_device) const { return is_device ? device_ : memory::Place(); }

 private:
  memory::Memory memory_;
  memory::Place device_;
};

// Bytes that all have one value at first, in host memory or on a device.
class Bytes {
 public:
  Bytes(Places& places, bool is_device, std::size_t size_bytes, char value)
      : memory_(places.memory()), buffer_(value_of(memory_.allocate(size_bytes, places.place(is_device)))) {
    std::vector<char> values(size_bytes, value);
    copy(buffer_.data, buffer_.place, values.data(), memory::Place(), size_bytes);
  }
  ~Bytes() { expect_ok(memory_.deallocate(buffer_)); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  char* data() const { return static_cast<char*>(buffer_.data); }
  std::size_t size() const { return buffer_.size_bytes; }
  char at(std::size_t index) const {
    char value = 0;
    copy(&value, memory::Place(), data() + index, buffer_.place, 1);
    return value;
  }

 private:
  void copy(void* to, memory::Place to_place, const void* from, memory::Place from_place,
            std::size_t size_bytes) const {
    const memory::Place device = to_place.is_host() ? from_place : to_place;
    if (device.is_host()) {
      std::memcpy(to, from, size_bytes);
      return;
    }
    memory::KindBackend& backend = *memory_.backend(device.kind);
    expect_ok(backend.copy_async(to, to_place, from, from_place, size_bytes, nullptr));
    wait_for(backend, device.device);
  }

  memory::Memory& memory_;
  memory::Buffer buffer_;
};

// Registered memory of this process, and the key to that of the other one.
class Region {
 public:
  // UCX allocates the memory if `own` is null.
  Region(const Partner& partner, const Worker& worker, std::size_t size_bytes, const Bytes* own)
      : context_(worker.context()) {
    ucp_mem_map_params_t parameters{};
    parameters.field_mask =
        UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    parameters.address = own == nullptr ? nullptr : own->data();
    parameters.length = size_bytes;
    parameters.flags = own == nullptr ? UCP_MEM_MAP_ALLOCATE : 0;
    check(ucp_mem_map(context_, &parameters, &memory_), "ucp_mem_map");
    ucp_mem_attr_t attributes{};
    attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
    check(ucp_mem_query(memory_, &attributes), "ucp_mem_query");
    data_ = static_cast<char*>(attributes.address);
    void* packed = nullptr;
    std::size_t packed_bytes = 0;
    check(ucp_rkey_pack(context_, memory_, &packed, &packed_bytes), "ucp_rkey_pack");
    const std::vector<char> key = partner.exchange(packed, packed_bytes);
    ucp_rkey_buffer_release(packed);
    check(ucp_ep_rkey_unpack(worker.endpoint(), key.data(), &key_), "ucp_ep_rkey_unpack");
    const std::vector<char> address = partner.exchange(static_cast<const void*>(&data_), sizeof data_);
    std::memcpy(&remote_, address.data(), sizeof remote_);
  }
  ~Region() {
    ucp_rkey_destroy(key_);
    ucp_mem_unmap(context_, memory_);
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  char* data() const { return data_; }
  std::uint64_t remote() const { return remote_; }
  ucp_rkey_h key() const { return key_; }

 private:
  ucp_context_h context_;
  ucp_mem_h memory_ = nullptr;
  char* data_ = nullptr;
  std::uint64_t remote_ = 0;
  ucp_rkey_h key_ = nullptr;
};

// One end: what it puts or gets, and from or to where.
class Peer {
 public:
  Peer(const Partner& partner, Worker& worker, Places& places, const Way& way, const Step& step)
      : worker_(worker),
        is_put_(way.is_put),
        size_(step.size_bytes),
        num_places_(static_cast<std::size_t>(step.buffers)),
        place_(num_places_ - 1),
        local_(places, way.is_put ? way.source_is_device : way.target_is_device, size_ * num_places_,
               way.is_put ? kSent : kOld),
        own_(places, way.is_put ? way.target_is_device : way.source_is_device,
             way.is_allocated ? 1 : local_.size(), way.is_put ? kOld : kSent),
        region_(partner, worker, local_.size(), way.is_allocated ? nullptr : &own_) {
    if (way.is_allocated) std::memset(region_.data(), way.is_put ? kOld : kSent, local_.size());
    partner.barrier();
  }

  void singles(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      worker_.wait(start_one());
      if (is_put_) flush();
    }
  }

  void windows(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      for (int slot = 0; slot < kFloodWindow; ++slot) requests_.push_back(start_one());
      for (ucs_status_ptr_t request : requests_) worker_.wait(request);
      requests_.clear();
      if (is_put_) flush();
    }
  }

  void fetch_add(std::int64_t count) {
    ucp_request_param_t parameters{};
    const std::uint64_t one = 1;
    std::uint64_t before = 0;
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
    parameters.datatype = ucp_dt_make_contig(sizeof one);
    parameters.reply_buffer = &before;
    for (std::int64_t i = 0; i < count; ++i) {
      worker_.wait(ucp_atomic_op_nbx(worker_.endpoint(), UCP_ATOMIC_OP_ADD, &one, 1, region_.remote(),
                                     region_.key(), &parameters));
    }
  }

  // After the other process's operations.
  void expect_arrived() const {
    const bool is_allocated = region_.data() != own_.data();
    const char far = is_allocated ? region_.data()[size_ - 1] : own_.at(size_ - 1);
    if ((is_put_ ? far : local_.at(size_ - 1)) != kSent) die("what was sent has not arrived");
  }

 private:
  [[nodiscard]] ucs_status_ptr_t start_one() {
    if (++place_ >= num_places_) place_ = 0;
    const ucp_request_param_t none{};
    char* const local = local_.data() + place_ * size_;
    const std::uint64_t remote = region_.remote() + place_ * size_;
    return is_put_ ? ucp_put_nbx(worker_.endpoint(), local, size_, remote, region_.key(), &none)
                   : ucp_get_nbx(worker_.endpoint(), local, size_, remote, region_.key(), &none);
  }

  void flush() {
    const ucp_request_param_t none{};
    worker_.wait(ucp_ep_flush_nbx(worker_.endpoint(), &none));
  }

  Worker& worker_;
  bool is_put_;
  std::size_t size_;
  std::size_t num_places_;
  std::size_t place_;  // of the last operation
  Bytes local_;
  Bytes own_;  // a byte where UCX allocates
  Region region_;
  std::vector<ucs_status_ptr_t> requests_;
};

void exchange(Peer& peer, Bench bench, std::int64_t count) {
  if (bench == Bench::kFetchAdd) return peer.fetch_add(count);
  if (bench == Bench::kOneSided || bench == Bench::kMemspeed) return peer.singles(count);
  peer.windows(count);
}

// Makes progress until the other process has come here too.
void wait_for_other(Worker& worker) {
  std::vector<char> nothing;
  const ucs_status_ptr_t sent = worker.send(nothing, kOverTag);
  worker.wait(worker.receive(nothing, kOverTag));
  worker.wait(sent);
}

void measure(const Partner& partner, const Arguments& arguments) {
  pin(partner.process());
  const Way way(arguments.way);
  const bool is_both = arguments.bench == Bench::kFloodBoth;
  const bool is_active = partner.process() == 0 || is_both;
  Places places(partner, arguments);
  Worker worker(partner, way.handles_errors, UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO64);
  for (const Step& step : arguments.steps) {
    Peer peer(partner, worker, places, way, step);
    wait_for_other(worker);
    if (is_active) exchange(peer, arguments.bench, step.warmup);
    wait_for_other(worker);
    Stopwatch stopwatch;
    if (is_active) exchange(peer, arguments.bench, step.iterations);
    if (is_both) wait_for_other(worker);
    if (partner.process() == 0) report(arguments.bench, step, stopwatch.elapsed_s());
    wait_for_other(worker);
    const bool is_receiver = is_both || partner.process() == (way.is_put ? 1 : 0);
    if (is_receiver && arguments.bench != Bench::kFetchAdd && step.iterations > 0) peer.expect_arrived();
    partner.barrier();
  }
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  using namespace weft::benchmarks;
  const Arguments arguments = parse_arguments(argc, argv);
  run_pair([&arguments](const Partner& partner) { measure(partner, arguments); });
  return 0;
}
