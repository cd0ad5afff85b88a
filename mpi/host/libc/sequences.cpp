// Functions of the C and C++ libraries that go on from where their last call ended, with a state per rank: random numbers,
// and the words of a text.
#include <cstdlib>
#include <cstring>

#include "slots/rank_state.h"

using weft::mpi_host::current_state;
using weft::mpi_host::RandomState;
using weft::mpi_host::RankState;
using weft::mpi_host::replaced;

namespace {

RandomState* own_random() {
  RankState* const state = current_state();
  return state == nullptr ? nullptr : &state->random;
}

}  // namespace

extern "C" {

long random() noexcept {
  RandomState* const own = own_random();
  static auto* const form = replaced<long()>("random");
  if (own == nullptr) return form();
  int32_t number = 0;
  random_r(&own->numbers, &number);
  return number;
}

void srandom(unsigned seed) noexcept {
  RandomState* const own = own_random();
  static auto* const form = replaced<void(unsigned)>("srandom");
  if (own == nullptr) return form(seed);
  srandom_r(seed, &own->numbers);
}

int rand() noexcept { return static_cast<int>(random()); }

void srand(unsigned seed) noexcept { srandom(seed); }

char* initstate(unsigned seed, char* memory, std::size_t size) noexcept {
  RandomState* const own = own_random();
  if (own == nullptr) return replaced<char*(unsigned, char*, std::size_t)>("initstate")(seed, memory, size);
  char* const before = reinterpret_cast<char*>(own->numbers.state) - sizeof(int32_t);
  return initstate_r(seed, memory, size, &own->numbers) == 0 ? before : nullptr;
}

char* setstate(char* memory) noexcept {
  RandomState* const own = own_random();
  if (own == nullptr) return replaced<char*(char*)>("setstate")(memory);
  char* const before = reinterpret_cast<char*>(own->numbers.state) - sizeof(int32_t);
  return setstate_r(memory, &own->numbers) == 0 ? before : nullptr;
}

double drand48() noexcept {
  RandomState* const own = own_random();
  static auto* const form = replaced<double()>("drand48");
  if (own == nullptr) return form();
  double number = 0;
  drand48_r(&own->numbers48, &number);
  return number;
}

long lrand48() noexcept {
  RandomState* const own = own_random();
  static auto* const form = replaced<long()>("lrand48");
  if (own == nullptr) return form();
  long number = 0;
  lrand48_r(&own->numbers48, &number);
  return number;
}

long mrand48() noexcept {
  RandomState* const own = own_random();
  static auto* const form = replaced<long()>("mrand48");
  if (own == nullptr) return form();
  long number = 0;
  mrand48_r(&own->numbers48, &number);
  return number;
}

// Their callers keep the position; lcong48() of the rank applies to them.
double erand48(unsigned short position[3]) noexcept {
  RandomState* const own = own_random();
  static auto* const form = replaced<double(unsigned short*)>("erand48");
  if (own == nullptr) return form(position);
  double number = 0;
  erand48_r(position, &own->numbers48, &number);
  return number;
}

long nrand48(unsigned short position[3]) noexcept {
  RandomState* const own = own_random();
  static auto* const form = replaced<long(unsigned short*)>("nrand48");
  if (own == nullptr) return form(position);
  long number = 0;
  nrand48_r(position, &own->numbers48, &number);
  return number;
}

long jrand48(unsigned short position[3]) noexcept {
  RandomState* const own = own_random();
  static auto* const form = replaced<long(unsigned short*)>("jrand48");
  if (own == nullptr) return form(position);
  long number = 0;
  jrand48_r(position, &own->numbers48, &number);
  return number;
}

void srand48(long seed) noexcept {
  RandomState* const own = own_random();
  if (own == nullptr) return replaced<void(long)>("srand48")(seed);
  srand48_r(seed, &own->numbers48);
}

unsigned short* seed48(unsigned short* seed) noexcept {
  RandomState* const own = own_random();
  if (own == nullptr) return replaced<unsigned short*(unsigned short*)>("seed48")(seed);
  seed48_r(seed, &own->numbers48);
  return own->numbers48.__old_x;
}

void lcong48(unsigned short* parameters) noexcept {
  RandomState* const own = own_random();
  if (own == nullptr) return replaced<void(unsigned short*)>("lcong48")(parameters);
  lcong48_r(parameters, &own->numbers48);
}

char* strtok(char* text, const char* separators) noexcept {
  RankState* const state = current_state();
  static auto* const form = replaced<char*(char*, const char*)>("strtok");
  return state == nullptr ? form(text, separators) : strtok_r(text, separators, &state->token_position);
}

// std::ios_base::sync_with_stdio(): the library would replace the buffers of the streams in all copies. The streams stay as
// they are, which is allowed.
bool weft_mpi_host_sync_with_stdio(bool is_synchronized) __asm__("_ZNSt8ios_base15sync_with_stdioEb");
bool weft_mpi_host_sync_with_stdio(bool is_synchronized) {
  static auto* const form = replaced<bool(bool)>("_ZNSt8ios_base15sync_with_stdioEb");
  return current_state() == nullptr ? form(is_synchronized) : true;
}

}  // extern "C"
