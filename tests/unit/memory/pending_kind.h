// A memory kind that allocates nothing, and whose events the test ends.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "memory/kinds/kind.h"

namespace weft::memory {

// Streams and events are numbered from 1. An event is pending until the test ends it.
class PendingKind final : public KindBackend {
 public:
  explicit PendingKind(Kind kind) : kind_(kind) {}

  Kind kind() const override { return kind_; }
  int num_devices() const override { return 2; }
  std::string device_name(int) const override { return "no device"; }
  bool cpu_accessible() const override { return false; }
  base::Result<void*> allocate(std::size_t, int) override { return unused(); }
  base::Status deallocate(void*) override { return unused(); }
  std::optional<Allocation> find_allocation(const void*) override { return {}; }
  bool is_current(const Allocation&, const void*) override { return false; }
  base::Result<void*> allocate_host(std::size_t, int) override { return unused(); }
  void deallocate_host(void*) override {}
  bool host_copy_is_async(const void*, std::size_t) override { return true; }

  base::Result<StreamHandle> create_stream(int device) override {
    if (create_failure.failed()) return create_failure;
    streams[++num_streams_].device = device;
    return handle(num_streams_);
  }
  base::Status destroy_stream(StreamHandle stream) override {
    EXPECT_EQ(streams.erase(number(stream)), 1u);
    return {};
  }
  base::Status copy_async(void*, Place to, const void*, Place from, std::size_t,
                          StreamHandle stream) override {
    const Stream& used = streams.at(number(stream));
    EXPECT_EQ(used.device, from.is_host() ? to.device : from.device) << "a stream of another device";
    copies.push_back({number(stream), used.waits_for});
    return copy_failure;
  }
  base::Result<EventHandle> record(StreamHandle stream, int) override {
    if (record_failure.failed()) return record_failure;
    outcomes.push_back(base::Status::pending());
    event_streams.push_back(number(stream));
    live_events.insert(outcomes.size());
    return handle(outcomes.size());
  }
  base::Status query(EventHandle event) override {
    EXPECT_TRUE(live_events.contains(number(event)));
    return outcomes[number(event) - 1];
  }
  base::Status stream_wait(StreamHandle stream, int, EventHandle event) override {
    streams.at(number(stream)).waits_for.insert(number(event));
    return {};
  }
  void release_event(EventHandle event) override { EXPECT_EQ(live_events.erase(number(event)), 1u); }

  // The n-th event that was recorded is over.
  void end(std::size_t event, base::Status outcome = {}) { outcomes[event - 1] = std::move(outcome); }
  void end_all() {
    for (base::Status& outcome : outcomes) outcome = base::Status();
  }

  using Events = std::set<std::size_t>;
  struct Stream {
    int device = 0;
    Events waits_for;
  };
  struct Copy {
    std::size_t stream;
    Events waits_for;  // the copy starts after these
  };
  base::Status create_failure;
  base::Status copy_failure;
  base::Status record_failure;
  std::map<std::size_t, Stream> streams;  // those that are open
  std::vector<Copy> copies;
  std::vector<base::Status> outcomes;  // by event
  std::vector<std::size_t> event_streams;
  Events live_events;

 private:
  static void* handle(std::size_t number) { return reinterpret_cast<void*>(number); }
  static std::size_t number(void* handle) { return reinterpret_cast<std::size_t>(handle); }
  static base::Status unused() {
    return base::Status(base::StatusCode::kUnsupported, "lanes make no memory");
  }

  Kind kind_;
  std::size_t num_streams_ = 0;
};

}  // namespace weft::memory
