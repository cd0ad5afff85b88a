#include "face_buffers.h"

#include <utility>

namespace jacobi3d {

FaceBuffers::FaceBuffers(weft::Runtime& runtime, Field& field, std::vector<int> faces, bool host_staging)
    : field_(field), faces_(std::move(faces)), first_(kNumFaces) {
  number_points();
  const std::size_t size = num_points_ * 2 * kNumSlots;
  device_ = weft::DeviceArray<double>(runtime, size, field.place());
  if (host_staging) host_ = weft::DeviceArray<double>::staging(runtime, size, field.place());
}

FaceBuffers::FaceBuffers(weft::Runtime& runtime, Field& field, std::vector<int> faces,
                         const weft::Buffer& incoming)
    : field_(field),
      faces_(std::move(faces)),
      first_(kNumFaces),
      incoming_(static_cast<double*>(incoming.data)) {
  number_points();
  device_ = weft::DeviceArray<double>(runtime, num_points_ * kNumSlots, field.place());
}

void FaceBuffers::number_points() {
  for (int face : faces_) {
    first_[static_cast<std::size_t>(face)] = num_points_;
    num_points_ += field_.face_points(face);
  }
}

std::size_t FaceBuffers::num_incoming(const Field& field, const std::vector<int>& faces) {
  std::size_t count = 0;
  for (int face : faces) count += field.face_points(face) * kNumSlots;
  return count;
}

std::size_t FaceBuffers::first(Direction direction, int face, int slot) const {
  const int half = direction * kNumSlots + slot;
  return static_cast<std::size_t>(half) * num_points_ + first_[static_cast<std::size_t>(face)];
}

double* FaceBuffers::values(const weft::DeviceArray<double>& memory, Direction direction, int face,
                            int slot) const {
  if (direction == kIn && incoming_ != nullptr) return incoming_ + first(kOut, face, slot);
  return memory.data() + first(direction, face, slot);
}

Halos FaceBuffers::halos(Direction direction, int slot) const {
  Halos halos;
  for (int face : faces_) halos.add(face, values(device_, direction, face, slot));
  return halos;
}

weft::Buffer FaceBuffers::part(const weft::DeviceArray<double>& memory, Direction direction, int face,
                               int slot) const {
  weft::Buffer buffer = memory.buffer();
  buffer.data = values(memory, direction, face, slot);
  buffer.size_bytes = field_.face_points(face) * sizeof(double);
  return buffer;
}

void FaceBuffers::copy(Direction direction, int slot) {
  weft::Buffer device = device_.buffer(), host = host_.buffer();
  const int half = direction * kNumSlots + slot;
  const std::size_t start = static_cast<std::size_t>(half) * num_points_;
  device.data = device_.data() + start;
  host.data = host_.data() + start;
  device.size_bytes = host.size_bytes = num_points_ * sizeof(double);
  if (direction == kOut) {
    field_.stream()->copy(host, device);
  } else {
    field_.stream()->copy(device, host);
  }
}

void FaceBuffers::queue_pack(int slot) {
  if (!faces_.empty()) field_.pack(halos(kOut, slot));
}

weft::Task<> FaceBuffers::pack(int slot) {
  queue_pack(slot);
  if (host_.size() == 0) co_return;
  copy(kOut, slot);
  // Host memory has no stream that a send could wait for.
  co_await field_.done();
}

weft::Buffer FaceBuffers::outgoing(int face, int slot) const {
  weft::Buffer buffer = part(host_.size() == 0 ? device_ : host_, kOut, face, slot);
  if (!buffer.place.is_host()) buffer.stream = field_.stream()->handle();
  return buffer;
}

weft::Buffer FaceBuffers::incoming(int face, int slot) const {
  return part(host_.size() == 0 ? device_ : host_, kIn, face, slot);
}

void FaceBuffers::unpack(int slot) {
  if (faces_.empty()) return;
  if (host_.size() != 0) copy(kIn, slot);
  field_.unpack(halos(kIn, slot));
}

}  // namespace jacobi3d
