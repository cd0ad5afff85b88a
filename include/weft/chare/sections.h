// Sections on one PE: calls to their members, and reductions over them. C++ and Python both use it; programs use
// weft::Section (section.h).
//
// A call goes as one message to each PE on which a member is believed to be; what has moved is sent after its element like a
// call to that element. A contribution goes to one PE, which the section's identity names, and which counts.
// docs/decisions/sections.md has the reasons. Threads: one PE's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/chare/chares.h"
#include "weft/chare/section_members.h"

namespace weft::chare {

class CombinedMembers;
class FeatureTable;

// How many reductions over one section an element has contributed to. It moves with the element.
struct SectionCount {
  SectionId section;
  std::uint32_t set = 0;  // of a sparse array: the set of counted elements in which they are counted
  std::uint32_t next = 0;
};

class Sections {
 public:
  explicit Sections(Chares& chares);
  ~Sections();
  Sections(const Sections&) = delete;
  Sections& operator=(const Sections&) = delete;
  void set_handlers(FeatureTable& table);
  // The first of its handlers, which SectionHandler numbers.
  runtime::HandlerId first_handler() const;

  // For each section that was used last and has the element: how many reductions over it the element has contributed to, perhaps 0.
  // REQUIRES: its array is not sparse.
  void for_each_recent(const ChareBase& chare,
                       const std::function<void(const SectionCount& count)>& function) const;

  // --- Members

  // As SectionMembers::unpack(). A section that is unpacked again and again, as for each member of a call, is one object.
  SectionMembers::Pointer unpack(Pup& p, const Collection& collection);
  // Unpacks the members of a combined section, as unpack() does.
  std::shared_ptr<const CombinedMembers> unpack_combined(Pup& p);
  // While it exists, several elements unpack these arguments: unpack() reads each section in them once. REQUIRES: the bytes do
  // not change meanwhile.
  class SharedArguments {
   public:
    SharedArguments(Sections& sections, std::span<const std::byte> arguments);
    ~SharedArguments();
    SharedArguments(const SharedArguments&) = delete;
    SharedArguments& operator=(const SharedArguments&) = delete;

   private:
    Sections& sections_;
    std::span<const std::byte> outer_;
  };

  // --- Calls

  // Where the results of a call go. `done` is called once, as by Chares::expect_gather(): the elements are in the order of
  // their indices, see SectionMembers::places_by_index().
  ReplyTo expect_gather(std::function<void(Pup&)> done);
  // Calls the method on every member. `call` was made by Chares::make_entry_message(); its header's index is not used, its
  // reply is of expect_gather() or none. Flow control may hold the call back. Throws Error(kClosed) if the collection has been
  // destroyed here; then nothing was sent.
  void send(Collection& collection, const SectionMembers& members, const ReplyTo& reply,
            runtime::MessagePtr call);
  // Sends a call to the members of a combined section, with one packed call for all parts. `replies`: for each part what expect_gather() has
  // given, or none at all. Before a part's message is sent, `adapt` gets the number of the part and what is behind the header.
  using Adapt = std::function<void(std::size_t part, std::byte* arguments)>;
  void send(const CombinedMembers& members, std::span<const ReplyTo> replies, runtime::MessagePtr call,
            const Adapt& adapt = {});
  // Forgets replies that are not expected any more, because send() has thrown.
  void forget_replies(std::span<const ReplyTo> replies);
  // Every member as the target of a reduction. `call` is the packed EntryHeader and, behind it, arguments that come before
  // the result.
  runtime::Target target(Collection& collection, const SectionMembers& members,
                         std::span<const std::byte> call) const;
  // Every member of a combined section as the target of a reduction, with a call for each part.
  runtime::Target target(const CombinedMembers& members, std::span<const base::SmallBytes> calls) const;

  // --- Reductions

  // The part of `chare` in its next reduction over the section. Throws Error(kInvalidArgument) if it is no member, and
  // Error(kClosed) if the collection has been destroyed here.
  void contribute(ChareBase& chare, const Collection& of, const SectionMembers& members,
                  runtime::Reducer reducer, const runtime::Combiner* combiner,
                  std::span<const std::byte> value, const runtime::Target& target);
  // Over a combined section. Throws Error(kInvalidArgument) also if a part is of a sparse array, and Error(kClosed) if the
  // collection of any part has been destroyed here.
  void contribute(ChareBase& chare, const CombinedMembers& members, runtime::Reducer reducer,
                  const runtime::Combiner* combiner, std::span<const std::byte> value,
                  const runtime::Target& target);

  // --- For the chare model: what becomes of elements and collections

  std::vector<SectionCount> counts_of(const ChareBase& chare) const;
  void left(const ChareBase& chare);
  // The element was not made: its constructor has thrown.
  void forget(const Collection& collection, std::uint64_t index);
  void arrived(const ChareBase& chare, const std::vector<SectionCount>& counts);
  // Whether the element has contributed to reductions of that set of a sparse array.
  bool has_contributed(const ChareBase& chare, std::uint32_t set) const;
  // The collection has been destroyed: reductions have no result.
  void end(const Collection& collection, const std::string& why);
  // The elements of the sparse array have been counted anew: reductions of sets below `set` have no result.
  void close_sets(const Collection& collection, std::uint32_t set, const std::string& why);
  // Whether this PE has contributions to reductions over sections of the collection that are not complete.
  bool has_incomplete(const Collection& collection) const;

 private:
  struct SectionState;
  struct Member;
  struct Outgoing;
  // Whether flow control may hold the messages back.
  enum class IsCall : bool { kNo, kYes };

  SectionMembers::Pointer unpack_anew(Pup& p, const Collection& collection);
  // The members of a part by PE, and the message for them.
  Outgoing outgoing(Collection& collection, const SectionMembers& members, runtime::MessagePtr call) const;
  void send_all(std::span<Outgoing> parts, IsCall is_call);
  // Prepares the buffers of a call for several messages. The result reports jointly with these and sends nothing, so that the
  // buffers come free if there are none; null if there are no buffers.
  runtime::MessagePtr share_buffers(runtime::Message& call) const;
  void send_to_members(Collection& collection, const SectionMembers& members, runtime::MessagePtr call,
                       IsCall is_call);
  void send_to_pe(int pe, std::span<const Member> members, runtime::Message& call, IsCall is_call);
  // With room for further bytes behind the payload, and the same buffers.
  runtime::MessagePtr copy_of(runtime::Message& call, std::size_t behind_bytes,
                              runtime::HandlerId handler) const;
  // The identity of a section of the collection. It is computed once for sections that are used in turn.
  const SectionId& id_of(const Collection& collection, const SectionMembers& members);
  SectionId id_of(const CombinedMembers& members);
  // The results of a call to no member.
  void send_no_results(const ReplyTo& reply) const;
  void on_call(runtime::MessagePtr message);
  void on_target(runtime::MessagePtr message);
  void on_combined_target(runtime::MessagePtr message);
  void on_part(runtime::MessagePtr message);
  struct Contribution;
  void contribute(ChareBase& chare, const Contribution& contribution, runtime::Reducer reducer,
                  const runtime::Combiner* combiner, std::span<const std::byte> value,
                  const runtime::Target& target);

  Chares& chares_;
  std::unique_ptr<SectionState> state_;
};

// Packs a section as its collection and members.
void pup_section(Pup& p, Collection*& collection, SectionMembers::Pointer& members);
// A combined section, or null: one without parts.
void pup_combined(Pup& p, std::shared_ptr<const CombinedMembers>& members);

}  // namespace weft::chare
