// Messages that an end has received before its chare has asked for them, because the chare moves: they travel with it.
//
// They are received with their tags, into memory of this object. They are given back on the new PE, or on this one if the
// chare stays: each is sent to the own PE with the tag that its receive will name. So receives know nothing of them, and
// sizes, kinds of memory and errors are those of any message.
//
// Threads: the PE's. Invariant: each message is given back once, or travels once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/pup.h"
#include "weft/runtime/runtime.h"

#include "models/channel/channel_end.h"

namespace weft::channel {

// A message that travels with its end, as it is packed.
struct TravellingMessage {
  std::uint32_t number = 0;
  std::string why;  // not empty: the sender could not send it
  std::vector<std::byte> bytes;
  void pup(Pup& p) { p | number | why | bytes; }
};

class TravellingMessages {
 public:
  // `end` must outlive the messages that have not arrived. `settled` is called, later, when a message has arrived.
  TravellingMessages(ChannelEnd& end, std::function<void()> settled)
      : end_(end), settled_(std::move(settled)) {}
  ~TravellingMessages();
  TravellingMessages(const TravellingMessages&) = delete;
  TravellingMessages& operator=(const TravellingMessages&) = delete;

  // Receives the end's next message, of up to `size_bytes`, and counts it as asked for.
  void take_next(std::size_t size_bytes);
  // Gives them back, now or when they arrive: the end's next message is the first of them again.
  void give_back();

  // Whether all have arrived.
  bool is_settled() const { return num_arriving_ == 0; }
  // Sizes or packs them. REQUIRES: is_settled().
  void pack(Pup& p) const;
  // Gives a message that has travelled to the end on this PE.
  static void give(ChannelEnd& end, TravellingMessage message);

 private:
  struct Arriving;

  ChannelEnd& end_;
  std::function<void()> settled_;
  std::vector<Arriving*> messages_;  // in order
  std::size_t num_arriving_ = 0;
};

}  // namespace weft::channel
