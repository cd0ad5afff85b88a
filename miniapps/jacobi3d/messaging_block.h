// A block whose faces travel as payloads of an entry method: sent in place, landing where its post entry
// method says, which is the buffer that they are unpacked from.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "weft/weft.h"

#include "part.h"

namespace jacobi3d {

class MessagingBlock : public weft::Chare<MessagingBlock> {
 public:
  explicit MessagingBlock(Setup setup);

  weft::Task<> run(int iterations);
  weft::Task<std::vector<double>> values() { return part_.values(); }
  weft::Task<std::uint64_t> checksum() { return part_.checksum(); }

  // The ghost points of one side for iteration `iteration`, from the neighbour there. Messages overtake one
  // another and neighbours run ahead, by one iteration at most, since they need this block's halo for the one
  // after.
  void halo(int iteration, int face, weft::Payload<double> values);
  void post_halo(int iteration, int face, weft::ReceiveBuffer<double>& values);
  using PostEntryMethods =
      weft::PostEntryMethods<weft::Post<&MessagingBlock::halo, &MessagingBlock::post_halo>>;

 private:
  // The faces that came, and the ones that went, in the iterations that use a slot.
  struct HaloSlot {
    std::size_t num_halos = 0;
    weft::Future<> all_halos;
    std::vector<weft::Operation> sends;
  };

  HaloSlot& slot(int number) { return slots_[static_cast<std::size_t>(number)]; }
  weft::Task<> iterate();
  void send_halo(int face);
  // Until the slot's buffers are free again.
  weft::Task<> sent(int number);

  Part part_;
  std::array<HaloSlot, kNumSlots> slots_;
};

}  // namespace jacobi3d
