// The two requests of point-to-point messages. Programs see them as Request.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "weft/base/completion.h"
#include "weft/runtime/attachment.h"

#include "models/mpi/p2p/point_to_point.h"

namespace weft::mpi {

class SendRequest final : public Request, private base::Completion {
 public:
  SendRequest(PointToPoint& engine, const SendAddress& address, const DataView& view, SendMode mode)
      : Request(Type::kSend), engine_(engine), address_(address), view_(view), mode_(mode) {}
  ~SendRequest() override;

  void start() override;

 private:
  friend class PointToPoint;
  enum Waits : std::uint8_t { kSent = 1, kAnswered = 2 };

  // One thing that the request waited for has happened. The request may be gone afterwards.
  void happened(Waits which);
  // Its receiver is lost: it ends when this process has been told, so that the program then finds out which rank it is.
  void end_when_told();
  static void on_sent(base::Completion* self, base::Status status, std::size_t size_bytes);
  void release_packed();

  PointToPoint& engine_;
  SendAddress address_;
  DataView view_;
  SendMode mode_;
  std::uint8_t waits_ = 0;
  int error_ = 0;
  bool is_offered_ = false;
  std::byte* packed_ = nullptr;  // a block of the pool: the packed form while it is sent
};

class ReceiveRequest final : public Request, public PostedEntry, private OfferedReceive {
 public:
  // `from`: the rank of the source in MPI_COMM_WORLD, or kAny.
  ReceiveRequest(PointToPoint& engine, const MatchKey& wanted, const DataView& view, int from = kAny)
      : Request(Type::kReceive),
        OfferedReceive(&ReceiveRequest::on_offered, from),
        engine_(engine),
        view_(view) {
    key = wanted;
  }

  void start() override;
  // Ends the receive if no message has matched, and none is on its way into an offered receive.
  int cancel() override;

 private:
  friend class PointToPoint;
  static void on_offered(base::Completion* self, base::Status status, std::size_t size_bytes);
  // The message that has accepted the offer is here.
  void accepted();
  // The engine closes, or troubles() end the receive.
  void end_without_message(const Outcome& outcome);
  // A message has matched: keeps what the status tells of it.
  void match(int source, int tag, std::size_t size_bytes) {
    posted_ = false;
    set_outcome({.source = source, .tag = tag, .size_bytes = static_cast<std::int64_t>(size_bytes)});
    if (size_bytes > view_.size_bytes) [[unlikely]]
      cut();
  }
  // The message is larger than the receive.
  void cut();
  // A receive from any source that has a failed one among them: the program is told, and the receive stays posted.
  void hold_up();
  // The operation is over, with the outcome that has been set.
  void end() {
    complete();
    release();
  }
  void fail(int error_class);
  void landed(const std::byte* packed, std::size_t packed_bytes) {
    if (packed != view_.data && view_.place.is_host()) view_.unpack(packed, packed_bytes);
    end();
  }
  // The engine keeps it for the next receive.
  void destroy() override;
  // One that the engine has kept becomes another receive, in host memory and without a layout so far.
  void renew_for(const MatchKey& wanted, int from_rank) {
    renew();
    key = wanted;
    from = from_rank;
  }

  PointToPoint& engine_;
  DataView view_;
  bool posted_ = false;
  const std::shared_ptr<SpareReceives> spares_ = engine_.spares_;
  ReceiveRequest* next_spare_ = nullptr;
};

}  // namespace weft::mpi
