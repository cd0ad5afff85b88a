// Random accesses to windows, compared with a model: arguments are the seed, the rounds and "host" or a kind of device memory.
//
// All ranks draw the same numbers, so each knows the accesses of all and computes what its window must hold. In a round, a slot
// of a window belongs to one rank, which puts, gets, or makes accumulates one after another whose results are known; or all
// ranks combine values in it by one operator for which the order does not matter.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <type_traits>

#include "../device.hpp"

namespace {

int rank = 0;
int size = 1;
std::mt19937_64 numbers;

int draw(int bound) { return static_cast<int>(numbers() % static_cast<std::uint64_t>(bound)); }

template <class T>
MPI_Datatype basic();
template <>
MPI_Datatype basic<int>() {
  return MPI_INT;
}
template <>
MPI_Datatype basic<double>() {
  return MPI_DOUBLE;
}
template <>
MPI_Datatype basic<std::int16_t>() {
  return MPI_INT16_T;
}

template <class T>
T combined(MPI_Op op, T in, T inout) {
  if (op == MPI_SUM) return static_cast<T>(in + inout);
  if (op == MPI_MAX) return std::max(in, inout);
  if (op == MPI_MIN) return std::min(in, inout);
  if (op == MPI_REPLACE) return in;
  return inout;  // MPI_NO_OP
}

// Some of the words of a range, in any order: a datatype and the words.
struct Places {
  std::vector<int> words;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int count = 1;

  // `length` of `room` words.
  Places(MPI_Datatype word, int length, int room) {
    const int form = draw(3);
    if (form == 0) {
      words.resize(static_cast<std::size_t>(length));
      std::iota(words.begin(), words.end(), draw(room - length + 1));
      const int first = words.front();
      MPI_Type_create_indexed_block(1, 1, &first, word, &type);
      if (first == 0) {
        MPI_Type_free(&type);
        MPI_Type_dup(word, &type);
        count = length;
      } else {
        MPI_Type_free(&type);
        MPI_Type_create_indexed_block(1, length, &first, word, &type);
      }
    } else if (form == 1) {
      const int stride = length == 1 ? 1 : 1 + draw(std::max(1, (room - 1) / (length - 1)));
      for (int i = 0; i < length; ++i) words.push_back(i * stride);
      MPI_Type_vector(length, 1, stride, word, &type);
    } else {
      words.resize(static_cast<std::size_t>(room));
      std::iota(words.begin(), words.end(), 0);
      for (int i = 0; i < length; ++i) std::swap(words[i], words[i + draw(room - i)]);
      words.resize(static_cast<std::size_t>(length));
      MPI_Type_create_indexed_block(length, 1, words.data(), word, &type);
    }
    MPI_Type_commit(&type);
  }
  ~Places() { MPI_Type_free(&type); }
  Places(Places&& other) noexcept : words(std::move(other.words)), type(other.type), count(other.count) {
    other.type = MPI_DATATYPE_NULL;
    MPI_Type_dup(MPI_BYTE, &other.type);
  }
};

template <class T>
class Memory {
 public:
  explicit Memory(const std::vector<T>& values, const std::string& kind)
      : bytes_(values.size() * sizeof(T), kind), is_host_(kind == "host") {
    write(values);
  }
  T* data() const { return reinterpret_cast<T*>(bytes_.data()); }
  void write(const std::vector<T>& values) {
    const char* const first = reinterpret_cast<const char*>(values.data());
    bytes_.write(std::vector<char>(first, first + values.size() * sizeof(T)));
  }
  std::vector<T> read() const {
    const std::vector<char> bytes = bytes_.read();
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

 private:
  device::Bytes bytes_;
  bool is_host_;
};

enum class Epochs { kFence, kLockAll, kLock, kPost };

template <class T>
class Test {
 public:
  Test(int flavor, int slot_words, const std::string& kind)
      : slot_words_(slot_words), kind_(kind), word_(basic<T>()), model_(size) {
    for (auto& window : model_) {
      window.resize(static_cast<std::size_t>(kSlots * slot_words));
      for (T& word : window) word = static_cast<T>(draw(100));
    }
    const auto bytes = static_cast<MPI_Aint>(model_[0].size() * sizeof(T));
    if (flavor == MPI_WIN_FLAVOR_CREATE) {
      memory_ = std::make_unique<Memory<T>>(model_[rank], kind);
      MPI_Win_create(memory_->data(), bytes, sizeof(T), MPI_INFO_NULL, MPI_COMM_WORLD, &win_);
    } else if (flavor == MPI_WIN_FLAVOR_ALLOCATE) {
      MPI_Win_allocate(bytes, sizeof(T), MPI_INFO_NULL, MPI_COMM_WORLD, &own_, &win_);
    } else {
      MPI_Win_allocate_shared(bytes, sizeof(T), MPI_INFO_NULL, MPI_COMM_WORLD, &own_, &win_);
    }
    if (own_ != nullptr) std::copy(model_[rank].begin(), model_[rank].end(), own_);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~Test() { MPI_Win_free(&win_); }

  void round() {
    const auto epochs = static_cast<Epochs>(draw(4));
    begin(epochs);
    for (int target = 0; target < size; ++target) {
      for (int slot = 0; slot < kSlots; ++slot) {
        if (draw(3) == 0) {
          combine_by_all(target, slot, epochs);
        } else {
          access_alone(draw(size), target, slot, epochs);
        }
      }
    }
    end(epochs);
    check();
  }

 private:
  static constexpr int kSlots = 6;

  void begin(Epochs epochs) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (epochs == Epochs::kFence) MPI_Win_fence(0, win_);
    if (epochs == Epochs::kLockAll) MPI_Win_lock_all(0, win_);
    if (epochs == Epochs::kPost) {
      MPI_Group group;
      MPI_Win_get_group(win_, &group);
      MPI_Win_post(group, 0, win_);
      MPI_Win_start(group, 0, win_);
      MPI_Group_free(&group);
    }
  }
  void end(Epochs epochs) {
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    requests_.clear();
    if (epochs == Epochs::kFence) MPI_Win_fence(0, win_);
    if (epochs == Epochs::kLockAll) MPI_Win_unlock_all(win_);
    if (epochs == Epochs::kPost) {
      MPI_Win_complete(win_);
      MPI_Win_wait(win_);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }

  // Values of the origin. Those of all ranks are drawn, those of this one are kept.
  struct Origin {
    Places places;
    std::vector<T> values;
  };
  Origin origin(int length) {
    Places places(word_, length, 2 * length);
    std::vector<T> values(static_cast<std::size_t>(2 * length));
    for (T& value : values) value = static_cast<T>(draw(50));
    return {std::move(places), std::move(values)};
  }
  Memory<T>& keep(const std::vector<T>& values) {
    kept_.push_back(std::make_unique<Memory<T>>(values, draw_kind_));
    return *kept_.back();
  }

  template <class Start>
  void access(bool is_mine, int target, Epochs epochs, const Start& start) {
    if (!is_mine) return;
    if (epochs == Epochs::kLock) MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win_);
    start();
    if (epochs == Epochs::kLock) MPI_Win_unlock(target, win_);
  }
  bool draws_request(Epochs epochs) { return draw(3) == 0 && epochs == Epochs::kLockAll; }
  MPI_Request* next_request() { return &requests_.emplace_back(MPI_REQUEST_NULL); }

  void combine_by_all(int target, int slot, Epochs epochs) {
    const MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_MIN};
    const MPI_Op op = ops[draw(3)];
    for (int from = 0; from < size; ++from) accumulate(from, target, slot, op, epochs, false);
  }

  // As MPI_Accumulate, or as MPI_Get_accumulate with a result that is known.
  void accumulate(int from, int target, int slot, MPI_Op op, Epochs epochs, bool gets) {
    const int length = 1 + draw(slot_words_);
    const Origin in = origin(length);
    const Places to(word_, length, slot_words_);
    const Places out(word_, length, 2 * length);
    const bool wants_request = draws_request(epochs);
    draw_kind();
    std::vector<T>& window = model_[target];
    std::vector<T> result(static_cast<std::size_t>(2 * length), T(-1));
    const std::vector<T> before_result = result;
    for (int i = 0; i < length; ++i) {
      T& word = window[slot * slot_words_ + to.words[i]];
      result[out.words[i]] = word;
      word = combined(op, in.values[in.places.words[i]], word);
    }
    access(from == rank, target, epochs, [&] {
      T* const values = keep(in.values).data();
      const MPI_Aint at = slot * slot_words_;
      if (!gets) {
        if (wants_request) {
          MPI_Raccumulate(values, in.places.count, in.places.type, target, at, to.count, to.type, op, win_,
                          next_request());
        } else {
          MPI_Accumulate(values, in.places.count, in.places.type, target, at, to.count, to.type, op, win_);
        }
        return;
      }
      Memory<T>& got = keep(before_result);
      expected_.push_back({&got, result});
      if (wants_request) {
        MPI_Rget_accumulate(values, in.places.count, in.places.type, got.data(), out.count, out.type, target,
                            at, to.count, to.type, op, win_, next_request());
      } else {
        MPI_Get_accumulate(values, in.places.count, in.places.type, got.data(), out.count, out.type, target,
                           at, to.count, to.type, op, win_);
      }
    });
  }

  void swap_one(int from, int target, int slot, Epochs epochs) {
    const int at = slot * slot_words_ + draw(slot_words_);
    T& word = model_[target][at];
    const T compare = draw(2) == 0 ? word : static_cast<T>(draw(50));
    const T desired = static_cast<T>(draw(50));
    draw_kind();
    const T old = word;
    if (word == compare) word = desired;
    if (std::is_floating_point_v<
            T>) {  // compared as MPI_Fetch_and_op instead: MPI has no comparison of numbers
      word = desired;
    }
    access(from == rank, target, epochs, [&] {
      Memory<T>& got = keep({T(-1)});
      expected_.push_back({&got, {old}});
      T* const value = keep({desired}).data();
      T* const compared = keep({compare}).data();
      if (std::is_floating_point_v<T>) {
        MPI_Fetch_and_op(value, got.data(), word_, target, at, MPI_REPLACE, win_);
      } else {
        MPI_Compare_and_swap(value, compared, got.data(), word_, target, at, win_);
      }
    });
  }

  void access_alone(int from, int target, int slot, Epochs epochs) {
    const int what = draw(3);
    if (what == 2) {
      const MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_REPLACE, MPI_NO_OP};
      for (int i = draw(4); i >= 0; --i) {
        if (draw(3) == 0) {
          swap_one(from, target, slot, epochs);
        } else {
          const MPI_Op op = ops[draw(5)];
          accumulate(from, target, slot, op, epochs, op == MPI_NO_OP || draw(2) == 0);
        }
      }
      return;
    }
    const int length = 1 + draw(slot_words_);
    const Origin local = origin(length);
    const Places to(word_, length, slot_words_);
    const bool wants_request = draws_request(epochs);
    draw_kind();
    std::vector<T> result = local.values;
    for (int i = 0; i < length; ++i) {
      T& word = model_[target][slot * slot_words_ + to.words[i]];
      T& value = result[local.places.words[i]];
      if (what == 0) {
        word = value;
      } else {
        value = word;
      }
    }
    access(from == rank, target, epochs, [&] {
      Memory<T>& memory = keep(local.values);
      const Places& own = local.places;
      const MPI_Aint at = slot * slot_words_;
      if (what == 1) expected_.push_back({&memory, result});
      if (what == 0 && wants_request) {
        MPI_Rput(memory.data(), own.count, own.type, target, at, to.count, to.type, win_, next_request());
      } else if (what == 0) {
        MPI_Put(memory.data(), own.count, own.type, target, at, to.count, to.type, win_);
      } else if (wants_request) {
        MPI_Rget(memory.data(), own.count, own.type, target, at, to.count, to.type, win_, next_request());
      } else {
        MPI_Get(memory.data(), own.count, own.type, target, at, to.count, to.type, win_);
      }
    });
  }

  void draw_kind() { draw_kind_ = draw(2) == 0 ? "host" : kind_; }

  void check() {
    if (own_ != nullptr) {
      CHECK(std::equal(model_[rank].begin(), model_[rank].end(), own_));
    } else {
      CHECK(memory_->read() == model_[rank]);
    }
    for (const auto& [memory, values] : expected_) CHECK(memory->read() == values);
    expected_.clear();
    kept_.clear();
  }

  const int slot_words_;
  const std::string kind_;
  std::string draw_kind_;
  MPI_Datatype word_;
  std::vector<std::vector<T>> model_;  // of each rank
  std::unique_ptr<Memory<T>> memory_;
  T* own_ = nullptr;
  MPI_Win win_ = MPI_WIN_NULL;
  std::vector<MPI_Request> requests_;
  std::vector<std::unique_ptr<Memory<T>>> kept_;
  std::vector<std::pair<Memory<T>*, std::vector<T>>> expected_;
};

bool can_share() {
  MPI_Comm host = MPI_COMM_NULL;
  int host_size = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_size(host, &host_size);
  MPI_Comm_free(&host);
  return host_size == size && std::getenv("WEFT_PGAS_MAPPING") == nullptr;
}

template <class T>
void run(int rounds, const std::string& kind) {
  const int flavors[] = {MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_SHARED};
  const bool is_shared = can_share();
  // Large slots have more pieces and more bytes than a message.
  for (const int slot_words : {8, 1500}) {
    for (const int flavor : flavors) {
      if (flavor == MPI_WIN_FLAVOR_SHARED && !is_shared) continue;
      Test<T> test(flavor, slot_words, kind);
      for (int i = 0; i < rounds; ++i) test.round();
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const unsigned long long seed = std::strtoull(argv[1], nullptr, 10);
  const int rounds = std::atoi(argv[2]);
  device::kind() = argv[3];
  numbers.seed(seed);
  run<int>(rounds, argv[3]);
  run<double>(rounds, argv[3]);
  run<std::int16_t>(rounds, argv[3]);
  if (rank == 0) std::printf("random windows of %d ranks: as the model says\n", size);
  return MPI_Finalize();
}
