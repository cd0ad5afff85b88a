// The messages that arrive in bounce buffers of this PE (bounce_ring.h), because the memory that they are for cannot be
// mapped by their senders. This PE's devices copy them on.
//
// Threads: the PE's. Invariant: a bounce buffer is freed, and a BouncedReceive is over, only when no copy uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"

#include "machine/peer_memory/mapping/exports.h"
#include "machine/peer_memory/mapping/imports.h"
#include "machine/peer_memory/mapping/mailbox.h"
#include "machine/peer_memory/mapping/peer_operation.h"

namespace weft::machine {

// A message that arrives through bounce buffers: where it goes, and how much has arrived. Part of its PostedReceive.
struct BouncedReceive {
  memory::Buffer buffer;          // names no stream
  std::size_t arrived_bytes = 0;  // of which copies may be under way
  int copies_under_way = 0;
  base::Status failure;

  bool is_over() const { return arrived_bytes == buffer.size_bytes && copies_under_way == 0; }
  // The message ends with `status` when no copy is under way any more.
  void fail(base::Status status) {
    if (failure.ok()) failure = std::move(status);
  }
};

class BounceArrivals {
 public:
  // The receive of a message that this PE has posted with a ring, and that its sender has taken; null if there is none.
  using Find = std::function<BouncedReceive*(int peer, Tag stream, std::uint32_t message)>;

  // All must outlive it.
  BounceArrivals(PeerContext& context, Exports& exports, Imports& imports);
  ~BounceArrivals();
  BounceArrivals(const BounceArrivals&) = delete;
  BounceArrivals& operator=(const BounceArrivals&) = delete;

  // For tests, before the first ring is made.
  void set_buffer_bytes(std::size_t size_bytes) { buffer_bytes_ = size_bytes; }

  // The number of the ring for messages from `peer` to memory of `place`; it is made at first use. Nothing if it cannot
  // be made.
  std::optional<std::uint64_t> ring_for(int peer, memory::Place place, const MailboxFile& file);

  // Whether a message has come that poll() has not seen.
  bool has_arrivals() const;
  // Copies on what has come. Returns whether there was something.
  bool poll(const Find& find);
  // No copy is begun any more. Frees the bounce buffers that no copy uses.
  void close();

  // The first reason for which there is no bounce buffer; ok if there is none.
  const base::Status& first_failure() const { return first_failure_; }

 private:
  struct Ring;
  struct Copy;

  base::Status make(Ring& ring, memory::Place place, const MailboxFile& file);
  void take(Ring& ring, std::uint64_t number, const Find& find);
  bool copy_chunk(Ring& ring, std::uint64_t number, BouncedReceive& receive);
  bool copy_source(Ring& ring, std::uint64_t number, BouncedReceive& receive);
  bool start(Ring& ring, std::uint64_t number, BouncedReceive& receive, const memory::Buffer& to,
             const memory::ConstBuffer& from, Imports::Import* import);
  void copied(Copy& copy, base::Status status);
  static void free_entry(Ring& ring, std::uint64_t number);

  PeerContext& context_;
  Exports& exports_;
  Imports& imports_;
  std::size_t buffer_bytes_ = BounceSizes::kBufferBytes;
  std::map<std::tuple<int, memory::Kind, int>, std::unique_ptr<Ring>> rings_;  // by sender and own device
  std::vector<Copy*> copies_;
  base::Status first_failure_;
};

}  // namespace weft::machine
