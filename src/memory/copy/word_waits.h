// Waits of the CPU for words of 32 bits that others write: another PE, a device, or a kernel on a device of another PE.
//
// No message tells this PE of such a write, so words are polled. The CPU reads words in host memory itself. Of a word in device memory
// it reads a copy, which a stream of Weft's own brings into page-locked memory again and again, up to kMostCopies words at a time. A
// stream that waits for the word, by KindBackend::queue_wait(), would cost the CPU less. But calls of the program that wait for the
// device would then not return.
//
// Threads: the PE's. Invariant: only progress() and close() call completion functions, each once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <vector>

#include "weft/base/completion.h"
#include "weft/base/status.h"
#include "weft/memory/buffer.h"

#include "memory/kinds/kind.h"

namespace weft::memory {

class WordWaits {
 public:
  // Words of one device that are copied together. More take turns, so many waits do not keep the PE from its other work.
  static constexpr std::size_t kMostCopies = 16;

  // `kinds` is indexed by kind, with null for those that are not usable. The kinds must outlive it.
  explicit WordWaits(const std::array<KindBackend*, kNumKinds>& kinds) : kinds_(kinds) {}
  ~WordWaits();
  WordWaits(const WordWaits&) = delete;
  WordWaits& operator=(const WordWaits&) = delete;

  // ok: the word, in host memory, has reached the value. pending: `completion` is called when has_reached(the word, value).
  // REQUIRES: a known place. The word is aligned, and stays until then.
  base::Status wait(const std::uint32_t* word, Place place, std::uint32_t value,
                    base::Completion* completion);
  // Returns whether a wait has ended.
  bool progress();
  // Each turn of each PE asks.
  bool has_pending() const { return num_pending_ > 0; }
  // For the end: no more words are copied. Returns whether no copy is in flight.
  bool is_drained();
  // Ends the waits with kClosed. REQUIRES: is_drained(), or the kinds have been abandoned.
  void close();

 private:
  struct Wait {
    const std::uint32_t* word = nullptr;
    std::uint32_t value = 0;
    base::Completion* completion = nullptr;
  };
  // The waits for words of one device.
  struct Device {
    Place place;
    StreamHandle stream = nullptr;
    std::byte* landings = nullptr;
    std::deque<Wait> waiting;
    std::vector<Wait> copied;     // number i into landing number i
    EventHandle event = nullptr;  // behind those copies; null: none is in flight
  };
  struct Done {
    base::Completion* completion = nullptr;
    base::Status status;
  };

  KindBackend& kind_of(Place place) const { return *kinds_[static_cast<std::size_t>(place.kind)]; }
  base::Result<Device*> device_at(Place place);
  base::Result<Device> make_device(Place place) const;
  void poll_host();
  void poll(Device& device);
  // Looks at what has been copied.
  void look(Device& device, const base::Status& status);
  void begin_copies(Device& device);
  void end_on_device(const Wait& wait, base::Status status);
  bool deliver();

  const std::array<KindBackend*, kNumKinds> kinds_;
  std::vector<Wait> on_host_;
  std::list<Device> devices_;       // one may be added while they are polled
  std::size_t num_on_devices_ = 0;  // waits
  std::size_t num_pending_ = 0;     // waits whose completion has not been called
  std::vector<Done> done_;
  std::vector<Done> delivering_;
  bool is_draining_ = false;
  bool closed_ = false;
};

}  // namespace weft::memory
