// weft::Channel: an ordered two-sided stream between two chares, of memory of any kind.
//
//   weft::Channel to_right(*this, proxy()[(index() + 1) % n]);
//   to_right.send(std::span(a)).detach();
//   co_await to_right.recv(std::span(b));
//
// Both chares name each other and the same id; then each has one end, and its sends meet the other's receives
// in order. Ends live as long as the job: naming the same peer and id again gives the same end. Either
// side may come first, and many operations may be in flight. A receive must name exactly the size that was
// sent: a disagreement is an Error at the receiver that names both sizes. A send that fails, for instance
// because its device could not copy, fails its receive as well, with the reason; the next messages go on.
//
// Host data up to kCopyLimitBytes is copied at the send, so it may be overwritten on return. Anything else is
// sent in place and belongs to the runtime until the operation is done, as does every receive buffer.
//
// A message is plain bytes: float64 that is received as int64 of the same size is not noticed, except in
// check mode (`weft run --check`, WEFT_CHECK=1). There a receive of other elements than were sent is an
// Error that names both, and a message takes longer.
//
// Each message is one tagged message of the machine; the ends exchange their tags once, when they are made.
// If the receive is posted before the send, device memory takes a shorter path between PEs of one host: the
// sender's device copies it into the receiver's buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "weft/channel/contents.h"
#include "weft/chare/proxy.h"
#include "weft/memory/buffer.h"
#include "weft/runtime/operation.h"

namespace weft::channel {

inline constexpr std::size_t kCopyLimitBytes = 4096;

struct ChannelEnd;

// Names one chare for a channel; made from a proxy.
struct Peer {
  template <class T>
  Peer(const chare::ElementProxy<T>& proxy)  // implicit: a proxy is a peer
      : collection(&proxy.collection()), index(proxy.linear_index()) {}
  Peer(chare::Collection& collection_in, std::uint64_t index_in)
      : collection(&collection_in), index(index_in) {}
  chare::Collection* collection;
  std::uint64_t index;
};

class Channel {
 public:
  // No channel: only assignment may touch it.
  Channel() = default;
  // `id` tells apart several channels between the same two chares.
  Channel(chare::ChareBase& self, const Peer& peer, std::uint32_t id = 0);

  // A send of device memory, or of more than kCopyLimitBytes, may be over only when its receive is posted.
  // `contents` is read during the call, and only in check mode; null stands for plain bytes.
  runtime::Operation send(const memory::ConstBuffer& buffer, const Contents* contents = nullptr);
  runtime::Operation recv(const memory::Buffer& buffer, const Contents* contents = nullptr);
  // Whether the job is in check mode.
  bool is_checked() const;

  // Contiguous data wherever it lives; the kind of memory is looked up.
  template <class T, std::size_t Extent>
  runtime::Operation send(std::span<T, Extent> data) {
    static_assert(std::is_trivially_copyable_v<T>,
                  "a channel moves plain bytes; pack other types with weft::pack");
    return send(locate(data.data(), data.size_bytes()), &kContentsOf<T>);
  }
  template <class T>
  runtime::Operation send(const std::vector<T>& data) {
    return send(std::span<const T>(data));
  }
  template <class T, std::size_t Extent>
  runtime::Operation recv(std::span<T, Extent> data) {
    static_assert(std::is_trivially_copyable_v<T>,
                  "a channel moves plain bytes; unpack other types with weft::unpack");
    return recv(locate(data.data(), data.size_bytes()), &kContentsOf<T>);
  }
  template <class T>
  runtime::Operation recv(std::vector<T>& data) {
    return recv(std::span<T>(data));
  }

  // "the channel Ring[3] - Ring[4], id 0", for messages to people.
  std::string description() const;

 private:
  memory::Buffer locate(const void* data, std::size_t size_bytes) const;

  ChannelEnd* end_ = nullptr;
};

}  // namespace weft::channel
