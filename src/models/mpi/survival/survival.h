// Survival: what the ranks of a job do when some of them are lost (`weft run --on-loss raise`): operations that cannot complete end, revocations
// reach all living ranks, and the living agree.
//
// Without losses the calls work in every job. Threads: the PE's. All that a peer sends is checked.
// REQUIRES: each rank has a PE for itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/runtime/runtime.h"

#include "models/mpi/communicators/communicator.h"
#include "models/mpi/p2p/rank_engines.h"
#include "models/mpi/survival/agreements.h"

namespace weft::mpi {

// A call of MPIX_Comm_iagree or MPIX_Comm_ishrink.
class AgreementRequest final : public Request {
 public:
  AgreementRequest() : Request(Type::kCollective) {
    activate();
    acquire();  // until finish()
  }
  void finish(int error) {
    complete({.error = error});
    release();
  }
};

class Survival final : private AgreementWay {
 public:
  // Offsets in the range of handlers.
  enum Handler : runtime::HandlerId { kRevoked, kAgreement };
  static constexpr runtime::HandlerId kNumHandlers = 2;

  Survival(runtime::Runtime& runtime, RankEngines& engines, runtime::HandlerId first_handler);
  Survival(const Survival&) = delete;
  Survival& operator=(const Survival&) = delete;

  // Whether lost ranks do not end the job.
  bool is_on() const;
  // Ends the operations of the communicator here, and at all its living members.
  void revoke(Communicator& communicator);
  // The program acknowledges the first `count` lost members that this process knows of.
  void acknowledge(Communicator& communicator, std::size_t count);
  // All living members call it. `decided` is called once, perhaps at once, and runs no code of the program.
  void agree(Communicator& communicator, std::int32_t flag, Agreement::Decided decided);
  // The program has freed the communicator.
  void leave(const Communicator& communicator);
  // All living ranks call it when their program makes no more calls: the job ends then. Returns at once.
  void end_job();

  // The communicator of the living members; null if a group of an intercommunicator has none.
  static Ref<Communicator> shrunk(const Communicator& parent, const AgreementResult& result);

 private:
  void on_loss(int pe);
  void lose(int rank, int pe);
  void refuse_what_cannot_survive(const Communicator& communicator, int rank, int pe);
  void on_revoked(const runtime::Message& message);
  void on_agreement(const runtime::Message& message);
  void revoke(std::uint64_t base);
  void pass_on(std::uint64_t base, const Members& members);
  std::vector<Ref<Communicator>> communicators() const;
  void enter(AgreementName name, Members members, AgreementGift gift, Agreement::Decided decided);
  PointToPoint& engine() const { return *engines_.engines().front(); }
  SharedState& shared() const { return engine().shared(); }
  void send_to(int rank, Handler handler, std::span<const std::byte> bytes);

  // --- AgreementWay
  void send(int rank, std::vector<std::byte> message) override { send_to(rank, kAgreement, message); }
  bool is_lost(int rank) const override { return shared().troubles().is_lost(rank); }
  std::uint64_t new_context() override { return engine().new_context_base(); }

  runtime::Runtime& runtime_;
  RankEngines& engines_;
  const runtime::HandlerId first_handler_;
  Agreements agreements_{*this};
};

}  // namespace weft::mpi
