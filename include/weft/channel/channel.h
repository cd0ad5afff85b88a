// weft::Channel: an ordered, two-sided stream of messages between two chares, in memory of any kind.
//
//   weft::Channel to_right(*this, proxy()[(index() + 1) % n]);
//   to_right.send(std::span(a)).detach();
//   co_await to_right.recv(std::span(b));
//
// Both chares name each other and the same id. Each then has one end of the channel. The n-th receive of an end
// gets the n-th message that the other end has sent. Either side may start first, and many operations may be in
// flight. An end lives as long as its chare: the same peer and id give the same end again. A chare may name itself: it then
// receives what it sends. Ends move with their chare: name a Channel in the chare's pup function, or make it again with the
// same peer and id. Operations of the chare that are under way delay the move.
//
// When a collection is destroyed, the ends of its chares close. Their operations end, with Error(kClosed) unless a message
// was under way, and send() and recv() throw it from then on. The other ends' operations fail with Error(kClosed), except for
// receives of what was sent before; what the destroyed chare has not received is dropped. A send in place whose message is
// under way ends when the peer has received it or is destroyed. A chare with operations in flight is freed when they are
// over. Their buffers must outlive them also if an Error leaves the entry method: keep them in the chare.
//
// A receive names the size that was sent. If the sizes differ, the receive fails with an Error that names both.
// If a send fails, for example because its device could not copy, its receive fails too, with the reason. Later
// messages are not affected.
//
// Buffers: a send copies host data of up to kCopyLimitBytes during the call, so the caller may overwrite it at
// once. All other data is sent in place: it belongs to the runtime until the operation is over. The buffer of a
// receive belongs to the runtime until the operation is over. An operation starts after the work that is queued
// on its buffer's stream. No call blocks.
//
// A message is plain bytes: a receive of int64 where float64 was sent is not detected. In check mode
// (`weft run --check`, WEFT_CHECK=1) such a receive fails with an Error that names both element types. Messages
// take longer in check mode.
//
// Each message is one tagged message of the machine. The ends exchange their tags once, when they are made.
// Device memory between PEs of one host takes the peer-mapped path if the receive is posted before the send: the
// sender's device copies into the receiver's buffer.
//
// Threads: the PE's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "weft/channel/contents.h"
#include "weft/chare/proxy.h"
#include "weft/memory/buffer.h"
#include "weft/runtime/attachment.h"
#include "weft/runtime/operation.h"

namespace weft::channel {

inline constexpr std::size_t kCopyLimitBytes = 4096;

struct ChannelEnd;
class QueuedChannel;

// The part of the state that a language attaches to an end, see Channel::attached(), that travels with the end.
struct AttachedState {
  std::uint32_t numbers[2] = {0, 0};  // of the language's own
  std::uint32_t num_busy = 0;  // operations of the language; the chare does not move while there are any
};

// The chare at the other end of a channel.
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
  // An empty channel: it may only be assigned to or destroyed.
  Channel() = default;
  // `id` distinguishes several channels between the same two chares.
  Channel(chare::ChareBase& self, const Peer& peer, std::uint32_t id = 0);

  // A send of device memory, or of more than kCopyLimitBytes, may not complete before its receive is posted.
  // `contents` describes the elements. It is read during the call, and only in check mode; null: plain bytes.
  // Both throw Error(kClosed) if the chare's collection has been destroyed. In the chare's destructor the operation fails.
  runtime::Operation send(const memory::ConstBuffer& buffer, const Contents* contents = nullptr);
  runtime::Operation recv(const memory::Buffer& buffer, const Contents* contents = nullptr);
  // Whether the job is in check mode.
  bool is_checked() const;

  // Contiguous data in memory of any kind. The kind is found from the address.
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

  // For handles of other languages, which may outlive the chare: the end stays while what this returns lives, and its
  // operations fail. It may be released after the end of the job. Threads: the PE's.
  std::shared_ptr<void> hold() const;
  // For other languages: a further channel between the same two chares, which no id of a program names. Its messages
  // belong to messages of this one. Throws Error(kClosed) if one of the two collections has been destroyed.
  Channel out_of_band() const;
  // For other languages: the receive of a message of up to the buffer's size. The operation has the size that came.
  runtime::Operation recv_up_to(const memory::Buffer& buffer);
  // For other languages, on the channel of out_of_band(): a message whose memory the receiver may keep. If the other end is on
  // this PE and holds few bytes, hand_over() takes the block, and the message is sent; else it returns false, and the caller
  // sends the bytes.
  // take_handed_over() is the receive of such a message. It returns an empty attachment if the next message is none, or not
  // here; recv() receives that one. Host memory. REQUIRES: each receive of the channel asks take_handed_over() first.
  bool hand_over(runtime::Attachment& block) const;
  runtime::Attachment take_handed_over() const;
  // For other languages: what they keep for this end. It is released with the end, or when the job ends.
  std::shared_ptr<void>& attached() const;
  // The part of it that a move takes along. When num_busy has become 0, call attached_is_idle().
  AttachedState& attached_state() const;
  void attached_is_idle() const;

  // For the pup function of the chare that has this end: names the end. After a move it is the same end on the new PE.
  // Throws Error(kInvalidArgument) when unpacked where that chare is not.
  void pup(Pup& p);

  // The channel's name in error messages, such as "the channel Ring[3] - Ring[4], id 0".
  std::string description() const;

 private:
  friend class QueuedChannel;
  explicit Channel(ChannelEnd& end) : end_(&end) {}
  memory::Buffer locate(const void* data, std::size_t size_bytes) const;

  ChannelEnd* end_ = nullptr;
};

}  // namespace weft::channel
