// A call that has arrived and waits in its chare until the condition of its entry method holds, see when.h. Both languages
// derive from WaitingCall; the chare asks those that may be ready in order of arrival (ChareBase::run_ready_calls()).
//
// Threads: the chare's PE. Invariant: each waiting call ends once: try_to_begin() returns true, it travels to another PE, or
// it is refused when its collection is destroyed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "weft/chare/chares.h"

namespace weft::chare {

class WaitingCall {
 public:
  // How it gets to the new PE of a chare that moves.
  enum class Travel : std::uint8_t {
    kBehindState,  // pup_arguments() packs it behind the state; EntryInfo::unpack_waiting makes it there
    kInState,      // the pup function of the class packs it
    kAlone,        // send_on() sends it as a call, because its buffers need a message of their own
  };

  WaitingCall(const EntryInfo& entry, const ReplyTo& reply) : entry_(&entry), reply_(reply) {}
  WaitingCall(const WaitingCall&) = delete;
  WaitingCall& operator=(const WaitingCall&) = delete;
  virtual ~WaitingCall() = default;

  const EntryInfo& entry() const { return *entry_; }
  const ReplyTo& reply() const { return reply_; }
  void set_reply(const ReplyTo& reply) { reply_ = reply; }

  // Runs the entry method if the condition holds. If the condition throws, the exception goes to the caller. Returns whether
  // one of both has happened: the call is over then.
  virtual bool try_to_begin(ChareBase& chare) = 0;

  // --- What is known of the condition, so that not all calls are asked each time. It is the same for all calls with the same group().
  virtual const void* group() const { return entry_; }
  // For a condition that can hold only if a value of this call equals one of the chare: the hash of the former. Nothing: the call
  // is asked each time.
  virtual std::optional<std::uint64_t> key() const { return std::nullopt; }
  // The hash of that value of the chare. Nothing: a call with any key may be ready.
  virtual std::optional<std::uint64_t> key_of(ChareBase& chare) const;
  // Whether what the condition reads of the chare may differ from `seen`, which then becomes what it reads now. Null: nothing was seen.
  virtual bool has_changed(ChareBase& chare, std::shared_ptr<void>& seen) const;

  // "token", for error messages.
  virtual std::string method_name() const;
  virtual Travel travel() const = 0;
  // REQUIRES: kBehindState.
  virtual void pup_arguments(Pup& p);
  // REQUIRES: kAlone; the chare has left this PE.
  virtual void send_on(Collection& collection, std::uint64_t index);

 private:
  const EntryInfo* entry_;
  ReplyTo reply_;
};

}  // namespace weft::chare
