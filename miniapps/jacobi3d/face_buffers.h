// The buffers that a block's faces pass through on their way to and from the neighbours.
//
// Every buffer exists twice, in two slots that the iterations use in turn. The kernels that use a slot in one
// iteration are done before the slot is used again, without any wait, for this reason: a neighbour sends the
// data that slot s receives in iteration i + 2 after its update i + 1. That update needs this block's face of
// iteration i + 1, and that face is sent after the work that was queued in iteration i.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "weft/weft.h"

#include "field.h"

namespace jacobi3d {

inline constexpr int kNumSlots = 2;

class FaceBuffers {
 public:
  // With `host_staging`, copies in host memory are sent instead. `field` must outlive this object.
  FaceBuffers(weft::Runtime& runtime, Field& field, std::vector<int> faces, bool host_staging);
  // Faces arrive in `incoming`: memory at the field's place that outlives this object, for num_incoming() values.
  FaceBuffers(weft::Runtime& runtime, Field& field, std::vector<int> faces, const weft::Buffer& incoming);
  static std::size_t num_incoming(const Field& field, const std::vector<int>& faces);

  // Packs all faces. When it is done, outgoing() may be sent. REQUIRES: the slot's last sends are
  // done.
  weft::Task<> pack(int slot);
  // Queues the packing alone. REQUIRES: no host staging, and what sends the slot waits for the field's stream.
  void queue_pack(int slot);
  weft::Buffer outgoing(int face, int slot) const;
  // Where a neighbour's face is received. It must have arrived before unpack().
  weft::Buffer incoming(int face, int slot) const;
  void unpack(int slot);

 private:
  enum Direction : int { kOut, kIn };

  void number_points();
  // Where a face's values begin in a memory that holds all of them.
  std::size_t first(Direction direction, int face, int slot) const;
  double* values(const weft::DeviceArray<double>& memory, Direction direction, int face, int slot) const;
  Halos halos(Direction direction, int slot) const;
  weft::Buffer part(const weft::DeviceArray<double>& memory, Direction direction, int face, int slot) const;
  void copy(Direction direction, int slot);

  Field& field_;
  std::vector<int> faces_;
  std::vector<std::size_t> first_;  // by face
  std::size_t num_points_ = 0;      // of all faces together
  weft::DeviceArray<double> device_;
  double* incoming_ = nullptr;      // memory of the caller; null: faces arrive in device_
  weft::DeviceArray<double> host_;  // empty without host staging
};

}  // namespace jacobi3d
