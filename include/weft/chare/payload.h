// weft::Payload<T>: an argument of an entry method whose elements travel out of band, from memory of
// any kind. They are sent in place, without a copy at the sender, and land once.
//
//   struct Block : weft::Chare<Block> {
//     void halo(int side, weft::Payload<double> values);             // runs when they are here
//     void post_halo(int side, weft::ReceiveBuffer<double>& values) {      // before: says where they land
//       values.into(ghosts_[side], stream_);
//     }
//     using PostEntryMethods = weft::PostEntryMethods<weft::Post<&Block::halo, &Block::post_halo>>;
//   };
//   co_await blocks[3].send<&Block::halo>(side, weft::nocopy(face, stream));  // face may change again
//
// A method takes any number of payloads among its other arguments. Without a post entry method the runtime
// allocates memory of the sender's kind if this PE has it, else host memory. In a call to a whole collection
// each element gets its own payload. A method that is called on one chare may return a payload. Constructors,
// gathered results and other arguments cannot contain payloads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weft/base/pup.h"
#include "weft/memory/buffer.h"
#include "weft/runtime/attachment.h"

namespace weft::runtime {
class Runtime;
}

namespace weft::chare {

using base::Pup;

// Elements that a call sends in place; made by nocopy().
template <class T>
struct NoCopy {
  std::span<const T> values;
  memory::StreamHandle stream = nullptr;
};

// Passes `values`, contiguous in memory of any kind, for a Payload. The kind is found from the address. The
// values are read after the work queued on `stream` now. They must stay valid and unchanged until the send's
// Operation is done or the call's result is ready. Host memory has no stream.
template <std::ranges::contiguous_range Range>
  requires std::ranges::borrowed_range<Range>
auto nocopy(Range&& values, memory::StreamHandle stream = nullptr) {
  using T = std::remove_cv_t<std::ranges::range_value_t<Range>>;
  return NoCopy<T>{std::span<const T>(std::ranges::data(values), std::ranges::size(values)), stream};
}

namespace payload_detail {

void pup(Pup& p, runtime::Attachment& attachment, std::size_t element_bytes);
void choose(runtime::Runtime& runtime, runtime::ReceiveBuffer& receive_buffer, const memory::Buffer& into);
runtime::ReceiveBuffer& find(std::span<runtime::ReceiveBuffer> receive_buffers, std::uint32_t which,
                             std::size_t element_bytes);

}  // namespace payload_detail

// The elements that an entry method gets. There are two cases:
//   - The runtime allocated the memory. The Payload owns it: the method may read and change the elements, and
//     move the Payload away to keep them. Destroying the Payload releases the memory.
//   - The post entry method chose the memory. The Payload is a view of it.
// Move-only. A received Payload can be sent again.
//
// A method may return a Payload that nocopy() made or that it received. The elements are sent in place after
// the method has returned, and land at the caller in memory of the runtime. The method is not notified when
// they have been sent, so it must return a copy of elements that it changes later.
template <class T>
class Payload {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                "a payload's elements travel as bytes: give a trivially copyable type");

 public:
  using Element = T;

  Payload() = default;
  Payload(const NoCopy<T>& given)
      : attachment_(memory::Buffer{
            const_cast<T*>(given.values.data()), given.values.size_bytes(), {}, given.stream}) {}

  std::span<T> span() const { return {data(), size()}; }
  // An address in memory of place(). Only kernels and copies can access device memory.
  T* data() const { return static_cast<T*>(attachment_.buffer().data); }
  std::size_t size() const { return attachment_.buffer().size_bytes / sizeof(T); }
  memory::Place place() const { return attachment_.buffer().place; }

  // Work queued on `stream` uses the elements. Their memory is reused or sent only after that work, also if
  // this Payload is destroyed before.
  void use_on(memory::StreamHandle stream) { attachment_.use_on(stream); }

  void pup(Pup& p) { payload_detail::pup(p, attachment_, sizeof(T)); }
  // For the runtime: takes landed memory. REQUIRES: a whole number of elements.
  explicit Payload(runtime::Attachment landed) : attachment_(std::move(landed)) {}

 private:
  runtime::Attachment attachment_;
};

// In a post entry method: the receive buffer of a payload that is about to arrive.
template <class T>
class ReceiveBuffer {
 public:
  ReceiveBuffer() = default;
  ReceiveBuffer(const ReceiveBuffer&) = delete;
  ReceiveBuffer& operator=(const ReceiveBuffer&) = delete;

  // The number of elements.
  std::size_t size() const { return receive_buffer_->size_bytes / sizeof(T); }
  // The memory kind at the sender, on this PE's own device.
  memory::Place place() const { return receive_buffer_->place; }

  // The elements land at the beginning of `room`, contiguous memory of any kind, after the work queued on `stream`
  // now, and the entry method gets that part. Throws base::Error if `room` has fewer than size() elements. The room
  // must stay valid, and the runtime owns it until the entry method runs. If another call lands in the same memory,
  // this call waits at its sender until the other entry method has returned, or has suspended for the first time.
  template <std::ranges::contiguous_range Range>
    requires std::ranges::borrowed_range<Range> && std::is_same_v<std::ranges::range_value_t<Range>, T>
  void into(Range&& room, memory::StreamHandle stream = nullptr) {
    std::span<T> values(std::ranges::data(room), std::ranges::size(room));
    payload_detail::choose(*runtime_, *receive_buffer_, {values.data(), values.size_bytes(), {}, stream});
  }

  // For the runtime.
  void bind(runtime::Runtime& runtime, runtime::ReceiveBuffer& receive_buffer) {
    runtime_ = &runtime;
    receive_buffer_ = &receive_buffer;
  }

 private:
  runtime::Runtime* runtime_ = nullptr;
  runtime::ReceiveBuffer* receive_buffer_ = nullptr;
};

// Names the post entry method of an entry method. It takes the same arguments, with a ReceiveBuffer<T>& in the
// place of each Payload<T>, and runs before the payloads land. It cannot suspend. Its exceptions go to the
// same caller as those of the entry method, which then does not run.
template <auto EntryMethod, auto PostEntryMethod>
struct Post {};
// The list of them, a member type of the chare with this name.
template <class... Posts>
struct PostEntryMethods {};

namespace payload_detail {

template <class T>
inline constexpr bool kIsPayload = false;
template <class T>
inline constexpr bool kIsPayload<Payload<T>> = true;
template <class T>
inline constexpr bool kIsPayload<NoCopy<T>> = true;

template <class T>
inline constexpr bool kIsNoCopy = false;
template <class T>
inline constexpr bool kIsNoCopy<NoCopy<T>> = true;

template <class T>
inline constexpr bool kHasPayload = false;
template <class... Ts>
inline constexpr bool kHasPayload<std::tuple<Ts...>> = (kIsPayload<std::decay_t<Ts>> || ...);

template <auto Value>
struct Constant {};

// Constant<the post entry method of Method>, or void.
template <auto Method, class Posts>
struct FindPost {
  using Found = void;
};
template <auto Method, auto Entry, auto PostMethod, class... Rest>
struct FindPost<Method, PostEntryMethods<Post<Entry, PostMethod>, Rest...>> {
  using Found = std::conditional_t<std::is_same_v<Constant<Method>, Constant<Entry>>, Constant<PostMethod>,
                                   typename FindPost<Method, PostEntryMethods<Rest...>>::Found>;
};

template <class T, auto Method>
struct PostOf {
  using Found = void;
};
template <class T, auto Method>
  requires requires { typename T::PostEntryMethods; }
struct PostOf<T, Method> : FindPost<Method, typename T::PostEntryMethods> {};

// The arguments as a post entry method takes them.
template <class T>
struct PostArgument {
  using Type = T;
};
template <class T>
struct PostArgument<Payload<T>> {
  using Type = ReceiveBuffer<T>;
};
template <class Arguments>
struct PostArguments;
template <class... Args>
struct PostArguments<std::tuple<Args...>> {
  using Type = std::tuple<typename PostArgument<Args>::Type...>;
};

}  // namespace payload_detail

}  // namespace weft::chare
