#include "machine/peer_memory/pulls.h"

#include <memory>
#include <span>
#include <utility>

namespace weft::machine {

using base::Completion;
using base::Status;
using base::StatusCode;

namespace {

// With so many under way the sender copies the next one. Windows of 64 messages between two H200, from 1 MiB, 4 MiB and
// 16 MiB on, in GB/s: none 147, 294, 353; at most 1 145, 302, 358; 2 182, 307, 364; 4 177, 319, 366; all 167, 287, 359.
constexpr std::size_t kMostPulls = 4;

}  // namespace

// Deletes itself.
struct Pulls::Pull final : Completion, PeerOperation {
  Pull(Pulls& pulls_in, const IncomingStream& stream_in, StreamMessage message_in, Imports::Import& import_in,
       std::size_t size_bytes_in, Completion* user)
      : Completion([](Completion* self, Status status, std::size_t) {
          const std::unique_ptr<Pull> pull(static_cast<Pull*>(self));
          if (pull->pulls != nullptr) pull->pulls->copied(*pull, std::move(status));
        }),
        PeerOperation(user),
        pulls(&pulls_in),
        peer(stream_in.peer),
        stream(stream_in.name),
        message(message_in),
        import(import_in),
        size_bytes(size_bytes_in) {}
  void cancel() override {}  // the device uses the buffers

  Pulls* pulls;  // null after close()
  int peer;
  Tag stream;
  StreamMessage message;
  Imports::Import& import;
  std::size_t size_bytes;
};

bool Pulls::has_room() const { return pulls_.size() < kMostPulls; }

std::optional<Status> Pulls::start(const IncomingStream& stream, StreamMessage message,
                                   const SourceName& source, const memory::Buffer& buffer, Completion* user) {
  if (!has_room()) return {};
  const PeerBuffer& name = source.buffer;
  if (name.size_bytes != buffer.size_bytes || name.exported_bytes > kMaxExportedBytes) return {};
  Imports::Import* const import =
      imports_.find(stream.peer, name, std::span(source.exported.data(), name.exported_bytes), buffer.place);
  if (import == nullptr) return {};
  const base::Result<memory::Buffer> from = Imports::locate(*import, name);
  if (!from.ok()) return {};
  auto pull = std::make_unique<Pull>(*this, stream, message, *import, buffer.size_bytes, user);
  if (!context_.began(context_.memory.copy(buffer, from.value(), pull.get()))) {
    static_cast<void>(pull->take_user());
    return {};
  }
  ++import->copies_under_way;
  pulls_.push_back(pull.release());
  return Status::pending();
}

void Pulls::copied(Pull& pull, Status status) {
  --context_.memory_waits;
  std::erase(pulls_, &pull);
  imports_.copy_done(pull.import);
  const std::size_t size_bytes = status.ok() ? pull.size_bytes : 0;
  // The receive first: the message is handled while the sender learns of it.
  pull.complete(std::move(status), size_bytes);
  context_.control.send(pull.peer, {.type = ControlMessage::Type::kPulled,
                                    .number = pull.message.number,
                                    .stream = pull.stream,
                                    .file = {}});
}

void Pulls::end_close() {
  for (Pull* pull : std::exchange(pulls_, {})) {
    --context_.memory_waits;
    pull->pulls = nullptr;  // its device hangs
    pull->complete({StatusCode::kClosed, "the machine was closed before the message arrived"}, 0);
  }
}

}  // namespace weft::machine
