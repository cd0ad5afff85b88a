// Device memory on a machine without a device, so that programs and tests can use device memory there.
//
// An allocation is one file in memory that is mapped twice. The address that users get is PROT_NONE: a CPU
// access to it faults at once, as it does for a real device whose memory the CPU cannot access. Copies and
// kernels of this class use the other mapping. They run in streams that advance only when polled
// (software_streams.h). A copy is therefore never done inside the call that starts it, and every run does the
// same in the same order.
//
// A copy fails with a Status if its allocation is freed before its turn, also if new memory is at the same
// address. So does a signal, or a wait for one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "memory/kinds/emulated/emulated_options.h"
#include "memory/kinds/emulated/exported_file.h"
#include "memory/kinds/software/software_kind.h"

namespace weft::memory {

class EmulatedBackend final : public SoftwareKind, public SoftwareDevice {
 public:
  explicit EmulatedBackend(int num_devices, const EmulatedFaults& faults = {});
  ~EmulatedBackend() override;
  EmulatedBackend(const EmulatedBackend&) = delete;
  EmulatedBackend& operator=(const EmulatedBackend&) = delete;

  // Copies and allocations are counted from this call on.
  void set_faults(const EmulatedFaults& faults);
  // The next allocation gets exactly this address, or fails. REQUIRES: a multiple of the page size.
  void place_next_at(void* address) { next_address_ = address; }

  base::Status launch(StreamHandle stream, int device, Kernel kernel) override;
  base::Status begin_capture(StreamHandle stream, int device) override {
    return streams_.begin_capture(stream, device);
  }
  base::Result<Graph> end_capture(StreamHandle stream, int device) override {
    return streams_.end_capture(stream, device);
  }
  base::Status launch_graph(const Graph& graph, StreamHandle stream, int device) override {
    return streams_.launch(graph, stream, device);
  }
  base::Result<void*> device_view(const void* address, std::size_t size_bytes) override;
  // The text that parse_emulated_faults() takes.
  base::Status inject_faults(std::string_view text) override;

  std::string device_name(int) const override { return "emulated device"; }
  bool cpu_accessible() const override { return false; }
  SoftwareDevice* software_device() override { return this; }

  base::Result<void*> allocate(std::size_t size_bytes, int device) override;
  base::Status deallocate(void* data) override;
  std::optional<Allocation> find_allocation(const void* address) override;
  // This process reports its releases to the listener. The file of an import says whether its owner has freed
  // it.
  bool is_current(const Allocation&, const void* address) override {
    return num_imports_ == 0 || !was_freed_by_owner(address);
  }
  base::Result<std::vector<std::byte>> export_allocation(const void* address) override;
  base::Result<Buffer> import_allocation(std::span<const std::byte> exported, int device) override;
  base::Status release_import(void* data) override;

  base::Status copy_async(void* destination, Place destination_place, const void* source, Place source_place,
                          std::size_t size_bytes, StreamHandle stream) override;
  Activity activity() override;
  base::Status queue_step(const DeviceStep& step, Place place, StreamHandle stream) override;
  base::Status queue_messages(std::span<const MessageEnd> ends, Place place, StreamHandle stream) override;
  base::Status queue_reduction(const DeviceReduction& reduction, Place place, StreamHandle stream) override;
  bool abort_steps() override;
  base::Result<void*> allocate_host(std::size_t size_bytes, int device) override;
  void deallocate_host(void* data) override;

 private:
  struct Block {
    Allocation allocation;
    std::size_t mapped_bytes = 0;
    std::byte* view = nullptr;
    ExportedFile file;  // if other processes may map the block, or one of them owns it
    bool is_import = false;
    bool refuses_export = false;

    bool was_freed_by_owner() const { return is_import && file.was_freed(); }
  };
  // One side of a queued copy, or a word of streams. The generation shows whether the memory is still the same allocation.
  struct Side {
    std::uintptr_t address = 0;
    std::uint64_t generation = 0;  // 0: host memory
  };

  Block* find_block(std::uintptr_t address);
  base::Result<Side> check_side(const char* role, const void* address, Place place, std::size_t size_bytes);
  base::Result<void*> reach(const char* role, const Side& side, std::size_t size_bytes);
  base::Status copy_now(const Side& destination, const Side& source, std::size_t size_bytes);
  // --- Steps, in emulated_steps.cpp
  struct Word;
  struct Reduction;
  struct End;
  struct Step;
  base::Result<Side> check_device_side(const char* role, const void* address, std::size_t size_bytes);
  base::Result<Word> check_word(const StepWord& word);
  // Each source has other places behind it.
  base::Result<Reduction> check_reduction(const DeviceReduction& reduction, std::size_t other_places_bytes);
  base::Status run_step(Step& step);
  // ok: all words have been reached.
  base::Status await_words(const std::vector<Word>& words);
  base::Status write_words(const std::vector<Word>& words);
  base::Status reduce_now(const Reduction& reduction);
  // --- Messages, in emulated_messages.cpp
  base::Result<End> check_end(const MessageEnd& end, Place place);
  base::Status begin_end(End& end);
  base::Status run_end(End& end);
  base::Status check_message_label(const End& end);
  base::Status await_message_words(const End& end);
  base::Status finish_end(const End& end);
  base::Status signal_freed(const End& end);
  // pending: the packets have not come.
  base::Status move_data(const End& end, std::uint32_t next);
  base::Status view(const char* role, const Side& at, std::size_t size_bytes, void*& address);
  base::Status run_ends(std::vector<End>& ends);
  static base::Status injected_failure(const Side& destination, std::size_t size_bytes);
  bool was_freed_by_owner(const void* address);
  base::Result<void*> make_block(std::size_t size_bytes, int device);
  // Moves the bytes of a block to a file that other processes may open. The block keeps its addresses.
  static base::Status move_to_file(Block& block);
  Block& add_block(void* address, std::byte* view, std::size_t size_bytes, int device);
  void forget_block(std::uintptr_t base);
  static void unmap(const Block& block);

  EmulatedFaults faults_;
  std::uint64_t copies_ = 0;
  std::uint64_t allocations_ = 0;
  std::uint64_t next_generation_ = 1;
  int num_imports_ = 0;
  bool has_steps_ = false;
  std::uint64_t num_step_waits_ = 0;  // polls in which a step was pending
  struct {
    SoftwareStreams::Counts counts;
    std::uint64_t num_step_waits = 0;
  } seen_;  // by the last activity()
  bool steps_are_aborted_ = false;
  void* next_address_ = nullptr;
  std::vector<std::size_t> used_bytes_;  // by device
  std::map<std::uintptr_t, Block> blocks_;
};

}  // namespace weft::memory
