#include "models/mpi/datatype/copy.h"

#include <algorithm>
#include <cstring>

namespace weft::mpi {
namespace {

// One copy of bytes between the program's memory and the packed bytes, in either direction. Each function advances `packed_`.
template <bool kPack>
class LayoutCopy {
 public:
  explicit LayoutCopy(std::byte* packed) : packed_(packed) {}

  void dense(std::uintptr_t address, MPI_Count displacement, MPI_Count size) {
    run(at(address, displacement), size);
  }
  void whole(const Layout& layout, std::uintptr_t address);
  void range(const Layout& layout, std::uintptr_t address, MPI_Count first, MPI_Count last);
  void loop(const Layout& child, MPI_Count count, MPI_Count stride, std::uintptr_t address);
  void loop_range(const Layout& child, MPI_Count stride, std::uintptr_t address, MPI_Count first,
                  MPI_Count last);

 private:
  static std::uintptr_t at(std::uintptr_t address, MPI_Count displacement) {
    return address + static_cast<std::uintptr_t>(displacement);
  }
  // Element `number` of a loop. The product can be one stride beyond the last element and wraps around then, unused.
  static std::uintptr_t at(std::uintptr_t address, MPI_Count number, MPI_Count stride) {
    return address + static_cast<std::uintptr_t>(number) * static_cast<std::uintptr_t>(stride);
  }
  static void bytes(std::byte* packed, std::uintptr_t address, std::size_t count) {
    auto* memory = reinterpret_cast<std::byte*>(address);
    if constexpr (kPack) {
      std::memcpy(packed, memory, count);
    } else {
      std::memcpy(memory, packed, count);
    }
  }
  void run(std::uintptr_t address, MPI_Count size) {
    bytes(packed_, address, static_cast<std::size_t>(size));
    packed_ += size;
  }
  template <std::size_t kBytes>
  void strided(std::uintptr_t address, MPI_Count count, MPI_Count stride) {
    std::byte* packed = packed_;
    for (MPI_Count i = 0; i < count; ++i, packed += kBytes, address = at(address, stride))
      bytes(packed, address, kBytes);
    packed_ = packed;
  }
  void strided_runs(MPI_Count size, MPI_Count count, MPI_Count stride, std::uintptr_t address);
  void runs_range(const Layout& layout, std::uintptr_t address, MPI_Count first, MPI_Count last);
  void list_range(const Layout& layout, std::uintptr_t address, MPI_Count first, MPI_Count last);

  std::byte* packed_;
};

// Blocks of a size that the compiler knows are copied without a call.
template <bool kPack>
void LayoutCopy<kPack>::strided_runs(MPI_Count size, MPI_Count count, MPI_Count stride,
                                     std::uintptr_t address) {
  switch (size) {
    case 1:
      return strided<1>(address, count, stride);
    case 2:
      return strided<2>(address, count, stride);
    case 4:
      return strided<4>(address, count, stride);
    case 8:
      return strided<8>(address, count, stride);
    case 12:
      return strided<12>(address, count, stride);
    case 16:
      return strided<16>(address, count, stride);
    case 24:
      return strided<24>(address, count, stride);
    case 32:
      return strided<32>(address, count, stride);
    default:
      break;
  }
  for (MPI_Count i = 0; i < count; ++i, address = at(address, stride)) run(address, size);
}

template <bool kPack>
void LayoutCopy<kPack>::loop(const Layout& child, MPI_Count count, MPI_Count stride, std::uintptr_t address) {
  if (child.kind == Layout::Kind::kRun) {
    strided_runs(child.size, count, stride, at(address, child.start));
    return;
  }
  for (MPI_Count i = 0; i < count; ++i, address = at(address, stride)) whole(child, address);
}

template <bool kPack>
void LayoutCopy<kPack>::whole(const Layout& layout, std::uintptr_t address) {
  switch (layout.kind) {
    case Layout::Kind::kRun:
      run(at(address, layout.start), layout.size);
      return;
    case Layout::Kind::kLoop:
      loop(*layout.child, layout.count, layout.stride, at(address, layout.start));
      return;
    case Layout::Kind::kRuns:
      for (std::size_t i = 0; i < layout.displacements.size(); ++i)
        run(at(address, layout.displacements[i]), layout.offsets[i + 1] - layout.offsets[i]);
      return;
    case Layout::Kind::kList:
      for (std::size_t i = 0; i < layout.displacements.size(); ++i)
        whole(*layout.children[i], at(address, layout.displacements[i]));
      return;
  }
}

template <bool kPack>
void LayoutCopy<kPack>::loop_range(const Layout& child, MPI_Count stride, std::uintptr_t address,
                                   MPI_Count first, MPI_Count last) {
  MPI_Count element = first / child.size;
  const MPI_Count head = first - element * child.size;
  const MPI_Count last_element = last / child.size;
  const MPI_Count tail = last - last_element * child.size;
  if (element == last_element) return range(child, at(address, element, stride), head, tail);
  if (head != 0) {
    range(child, at(address, element, stride), head, child.size);
    ++element;
  }
  loop(child, last_element - element, stride, at(address, element, stride));
  if (tail != 0) range(child, at(address, last_element, stride), 0, tail);
}

// The block or child that holds packed byte `first`.
std::size_t part_with(const std::vector<MPI_Count>& offsets, MPI_Count first) {
  return static_cast<std::size_t>(std::upper_bound(offsets.begin(), offsets.end(), first) - offsets.begin()) -
         1;
}

template <bool kPack>
void LayoutCopy<kPack>::runs_range(const Layout& layout, std::uintptr_t address, MPI_Count first,
                                   MPI_Count last) {
  for (std::size_t i = part_with(layout.offsets, first); first < last; ++i) {
    const MPI_Count end = std::min(last, layout.offsets[i + 1]);
    run(at(address, layout.displacements[i] + (first - layout.offsets[i])), end - first);
    first = end;
  }
}

template <bool kPack>
void LayoutCopy<kPack>::list_range(const Layout& layout, std::uintptr_t address, MPI_Count first,
                                   MPI_Count last) {
  for (std::size_t i = part_with(layout.offsets, first); first < last; ++i) {
    const MPI_Count begin = layout.offsets[i];
    const MPI_Count end = std::min(last, layout.offsets[i + 1]);
    range(*layout.children[i], at(address, layout.displacements[i]), first - begin, end - begin);
    first = end;
  }
}

template <bool kPack>
void LayoutCopy<kPack>::range(const Layout& layout, std::uintptr_t address, MPI_Count first, MPI_Count last) {
  if (first >= last) return;
  if (first == 0 && last == layout.size) return whole(layout, address);
  switch (layout.kind) {
    case Layout::Kind::kRun:
      return run(at(address, layout.start + first), last - first);
    case Layout::Kind::kLoop:
      return loop_range(*layout.child, layout.stride, at(address, layout.start), first, last);
    case Layout::Kind::kRuns:
      return runs_range(layout, address, first, last);
    case Layout::Kind::kList:
      return list_range(layout, address, first, last);
  }
}

template <bool kPack>
void copy_elements(const Elements& elements, MPI_Count first, MPI_Count last, std::byte* packed) {
  if (first >= last) return;  // also the only case of a layout without bytes
  const Layout& layout = *elements.layout;
  LayoutCopy<kPack> copy(packed);
  if (elements.count == 1) return copy.range(layout, elements.address, first, last);
  if (layout.kind == Layout::Kind::kRun && layout.size == elements.extent) {
    return copy.dense(elements.address, layout.start + first, last - first);
  }
  copy.loop_range(layout, elements.extent, elements.address, first, last);
}

}  // namespace

void pack_elements(const Elements& elements, MPI_Count first, MPI_Count last, std::byte* packed) {
  copy_elements<true>(elements, first, last, packed);
}

void unpack_elements(const Elements& elements, MPI_Count first, MPI_Count last, const std::byte* packed) {
  copy_elements<false>(elements, first, last, const_cast<std::byte*>(packed));
}

}  // namespace weft::mpi
