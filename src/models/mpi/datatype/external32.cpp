#include "models/mpi/datatype/external32.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cstdint>
#include <cstring>

#include "base/format.h"

namespace weft::mpi {
namespace {

// Values are converted in portions of this many bytes.
constexpr MPI_Count kPortionBytes = 4096;

// Copies a value between the byte order of this machine and big-endian.
void copy_swapped(const std::byte* from, std::byte* to, std::size_t size) {
  if constexpr (std::endian::native == std::endian::little) {
    std::reverse_copy(from, from + size, to);
  } else {
    std::memcpy(to, from, size);
  }
}

bool is_signed(Number number) { return number <= Number::kInt128; }

std::int64_t load_integer(const std::byte* from, std::size_t size, bool with_sign) {
  std::uint64_t bits = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&bits, from, size);
  } else {
    std::memcpy(reinterpret_cast<std::byte*>(&bits) + (8 - size), from, size);
  }
  const unsigned unused = 64 - 8 * static_cast<unsigned>(size);
  bits <<= unused;
  return with_sign ? static_cast<std::int64_t>(bits) >> unused : static_cast<std::int64_t>(bits >> unused);
}

void store_integer(std::int64_t value, std::byte* to, std::size_t size) {
  const auto bits = static_cast<std::uint64_t>(value);
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(to, &bits, size);
  } else {
    std::memcpy(to, reinterpret_cast<const std::byte*>(&bits) + (8 - size), size);
  }
}

// An integer of other sizes in memory and in "external32". False if the value does not fit.
bool copy_integer(const std::byte* from, std::size_t from_size, std::byte* to, std::size_t to_size,
                  bool with_sign) {
  const std::int64_t value = load_integer(from, from_size, with_sign);
  store_integer(value, to, to_size);
  return load_integer(to, to_size, with_sign) == value;
}

bool to_external_integer(const BasicType& type, const std::byte* native, std::byte* external) {
  std::array<std::byte, 8> resized{};
  const bool fits =
      copy_integer(native, type.size, resized.data(), type.external_size, is_signed(type.number));
  copy_swapped(resized.data(), external, type.external_size);
  return fits;
}

void from_external_integer(const BasicType& type, const std::byte* external, std::byte* native) {
  std::array<std::byte, 8> resized{};
  copy_swapped(external, resized.data(), type.external_size);
  (void)copy_integer(resized.data(), type.external_size, native, type.size, is_signed(type.number));
}

#if LDBL_MANT_DIG == 113
using Quad = long double;
#else
__extension__ using Quad = __float128;
#endif

// A long double is converted to and from the IEEE format of 16 bytes, whatever format the C type has here.
void to_external_long_double(const std::byte* native, std::byte* external) {
  long double value;
  std::memcpy(&value, native, sizeof value);
  const Quad quad = value;
  copy_swapped(reinterpret_cast<const std::byte*>(&quad), external, sizeof quad);
}

void from_external_long_double(const std::byte* external, std::byte* native) {
  Quad quad;
  copy_swapped(external, reinterpret_cast<std::byte*>(&quad), sizeof quad);
  // The padding of an 80-bit value is zero, so that equal values have equal bytes.
  std::memset(native, 0, sizeof(long double));
  const auto value = static_cast<long double>(quad);
  std::memcpy(native, &value, std::min<std::size_t>(sizeof value, LDBL_MANT_DIG == 64 ? 10 : sizeof value));
}

enum class Conversion { kSwap, kInteger, kLongDouble };

Conversion conversion_of(const BasicType& type) {
  if (type.number == Number::kLongDouble) return Conversion::kLongDouble;
  return type.size == type.external_size ? Conversion::kSwap : Conversion::kInteger;
}

// The parts of a value: two for a complex one.
int parts_of(const BasicType& type) { return type.kind == BasicKind::kComplex ? 2 : 1; }

// Calls portion(type, number, first, external_first): `number` values of a basic type, whose packed bytes begin at `first`.
template <class Portion>
void for_each_portion(const Datatype& type, MPI_Count count, Portion&& portion) {
  MPI_Count first = 0;
  MPI_Count external_first = 0;
  for_each_basic_run(type.signature(), count, [&](const BasicType& basic, MPI_Count number) {
    while (number > 0) {
      const MPI_Count now = std::min<MPI_Count>(number, kPortionBytes / basic.size);
      portion(basic, now, first, external_first);
      first += now * basic.size;
      external_first += now * basic.external_size;
      number -= now;
    }
  });
}

}  // namespace

bool write_external32(const BasicType& type, MPI_Count number, const std::byte* native, std::byte* external) {
  const std::size_t size = type.size / parts_of(type);
  const std::size_t external_size = type.external_size / parts_of(type);
  const Conversion conversion = conversion_of(type);
  bool all_fit = true;
  for (MPI_Count i = 0; i < number * parts_of(type); ++i, native += size, external += external_size) {
    switch (conversion) {
      case Conversion::kSwap:
        copy_swapped(native, external, size);
        break;
      case Conversion::kInteger:
        all_fit = to_external_integer(type, native, external) && all_fit;
        break;
      case Conversion::kLongDouble:
        to_external_long_double(native, external);
        break;
    }
  }
  return all_fit;
}

void read_external32(const BasicType& type, MPI_Count number, const std::byte* external, std::byte* native) {
  const std::size_t size = type.size / parts_of(type);
  const std::size_t external_size = type.external_size / parts_of(type);
  const Conversion conversion = conversion_of(type);
  for (MPI_Count i = 0; i < number * parts_of(type); ++i, native += size, external += external_size) {
    switch (conversion) {
      case Conversion::kSwap:
        copy_swapped(external, native, size);
        break;
      case Conversion::kInteger:
        from_external_integer(type, external, native);
        break;
      case Conversion::kLongDouble:
        from_external_long_double(external, native);
        break;
    }
  }
}

Error not_in_external32(const BasicType& type) {
  return {
      MPI_ERR_CONVERSION,
      base::format("a value of type {} does not fit the {} bytes that \"external32\" has for it; use a type "
                   "of fixed size, such as MPI_INT64_T",
                   type.name, type.external_size)};
}

std::optional<MPI_Count> external32_size(const Datatype& type, MPI_Count count) {
  const Wide size = Wide{count} * type.signature().external_size;
  if (count < 0 || !fits_count(size)) return std::nullopt;
  return static_cast<MPI_Count>(size);
}

Error pack_external32(const Datatype& type, const void* buffer, MPI_Count count, std::byte* packed) {
  std::array<std::byte, kPortionBytes> native;
  const BasicType* failed = nullptr;
  for_each_portion(type, count,
                   [&](const BasicType& basic, MPI_Count number, MPI_Count first, MPI_Count external_first) {
                     type.pack(buffer, count, first, first + number * basic.size, native.data());
                     if (!write_external32(basic, number, native.data(), packed + external_first))
                       failed = &basic;
                   });
  return failed == nullptr ? Error() : not_in_external32(*failed);
}

void unpack_external32(const Datatype& type, void* buffer, MPI_Count count, const std::byte* packed) {
  std::array<std::byte, kPortionBytes> native;
  for_each_portion(type, count,
                   [&](const BasicType& basic, MPI_Count number, MPI_Count first, MPI_Count external_first) {
                     read_external32(basic, number, packed + external_first, native.data());
                     type.unpack(buffer, count, first, first + number * basic.size, native.data());
                   });
}

}  // namespace weft::mpi
