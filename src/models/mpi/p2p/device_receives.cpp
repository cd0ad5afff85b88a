// The part of PointToPoint for receives in device memory whose bytes cannot land there at once.
#include <algorithm>
#include <memory>
#include <utility>

#include "weft/mpi/mpi.h"

#include "memory/memory.h"
#include "models/mpi/p2p/matching/header.h"
#include "models/mpi/p2p/point_to_point.h"
#include "models/mpi/p2p/point_to_point_requests.h"

namespace weft::mpi {

namespace {

// Calls a function of its own once, and deletes itself.
template <class Ended>
class EndOfCopy final : public base::Completion {
 public:
  explicit EndOfCopy(Ended ended)
      : base::Completion([](base::Completion* self, base::Status status, std::size_t) {
          std::unique_ptr<EndOfCopy> copy(static_cast<EndOfCopy*>(self));
          copy->ended_(status);
        }),
        ended_(std::move(ended)) {}
  // Starts it with what a start function of the memory layer returns, given the completion.
  template <class Start>
  static void start(Ended ended, const Start& start_function) {
    auto copy = std::make_unique<EndOfCopy>(std::move(ended));
    const base::Status status = start_function(copy.get());
    if (status.is_pending()) {
      static_cast<void>(copy.release());  // its own
    } else {
      copy->ended_(status);
    }
  }

 private:
  Ended ended_;
};

template <class Ended, class Start>
void when_copied(Ended ended, const Start& start_function) {
  EndOfCopy<Ended>::start(std::move(ended), start_function);
}

}  // namespace

void PointToPoint::land_on_device(ReceiveRequest& request, runtime::MessagePtr message) {
  const DataView& view = request.view_;
  const auto size_bytes =
      static_cast<std::size_t>(request.outcome().size_bytes);  // what the receive has room for
  const memory::ConstBuffer source(message->payload() + sizeof(MessageHeader), size_bytes);
  runtime::Attachment place({view.data, size_bytes, view.place, view.stream});
  if (!view.is_dense()) {
    base::Result<runtime::Attachment> block = device_elements_.allocate(size_bytes, view);
    if (!block.ok()) return request.fail(MPI_ERR_NO_MEM);
    place = std::move(block).value();
  }
  const memory::Buffer destination = place.buffer();
  auto ended = [this, &request, place = std::move(place),
                kept = std::move(message)](const base::Status& status) mutable {
    if (status.failed()) return request.fail(MPI_ERR_OTHER);
    if (request.view_.is_dense()) return request.end();
    unpack_on_device(request, std::move(place));
  };
  when_copied(std::move(ended), [&](base::Completion* completion) {
    return messenger_.memory().copy(destination, source, completion);
  });
}

void PointToPoint::unpack_on_device(ReceiveRequest& request, runtime::Attachment block) {
  const DataView& view = request.view_;
  const memory::Buffer packed = block.buffer();
  if (packed.place != view.place) return request.fail(MPI_ERR_NO_MEM);  // there was no block on the device
  const std::size_t size_bytes = std::min(packed.size_bytes, view.size_bytes);
  base::Result<DeviceStreams::Lease> stream =
      device_elements_.unpack(view, static_cast<const std::byte*>(packed.data), size_bytes);
  if (!stream.ok()) return request.fail(MPI_ERR_OTHER);
  const memory::StreamHandle handle = stream->handle();
  auto ended = [&request, kept = std::move(block),
                lease = std::move(stream).value()](const base::Status& status) {
    if (status.failed()) return request.fail(MPI_ERR_OTHER);
    request.end();
  };
  when_copied(std::move(ended), [&](base::Completion* completion) {
    return messenger_.memory().when_stream_done(view.place, handle, completion);
  });
}

// Packed bytes land on the device of the elements. If it has no memory left, they land in the runtime's memory, and the
// receive fails.
void PointToPoint::choose_receive_block(ReceiveRequest& request, runtime::ReceiveBuffer& receive_buffer) {
  base::Result<runtime::Attachment> block =
      device_elements_.allocate(std::min(receive_buffer.size_bytes, request.view_.size_bytes), request.view_);
  if (block.ok()) receive_buffer.into = std::move(block).value();
}

}  // namespace weft::mpi
