// Random accesses to a file, compared with a model: arguments are the seed, the rounds and "host" or a kind of device memory.
//
// All ranks draw the same numbers, so each knows the accesses of all and keeps a copy of what the file must hold. A view gives each
// slot of a tile to one rank or to nobody; or all ranks have the same view and use the shared pointer too.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <tuple>

#include "../device.hpp"

namespace {

constexpr const char* kPath = "random_file";
constexpr char kUntouched = 0x5a;
int rank = 0;
int size = 1;
std::mt19937_64 numbers;

int draw(int bound) { return static_cast<int>(numbers() % static_cast<std::uint64_t>(bound)); }

struct Etype {
  MPI_Datatype type;
  int bytes;
  int value_bytes;  // of a basic value
};

struct View {
  long displacement = 0;
  int tile = 1;            // etypes
  std::vector<int> slots;  // of the tile, which belong to the rank
  int etype_bytes = 1;

  long place(long position) const {
    const long n = static_cast<long>(slots.size());
    return displacement + (position / n * tile + slots[static_cast<std::size_t>(position % n)]) * etype_bytes;
  }
};

enum class Pointer { kExplicit, kIndividual, kShared };
enum class Form { kBlocking, kStarted, kSplit };

struct Access {
  bool writes = false;
  Pointer pointer = Pointer::kExplicit;
  Form form = Form::kBlocking;
  bool is_collective = false;
  bool has_gaps = false;  // in memory
};

// The part of an access that one rank makes.
struct Part {
  long position = 0;
  int count = 0;
  std::vector<char> bytes;  // that are written, or that are to be read
  long got = 0;             // of `bytes`, before the end of the file
};

class Test {
 public:
  explicit Test(std::string kind) : kind_(std::move(kind)) {
    MPI_Info hints;
    MPI_Info_create(&hints);
    const char* const uses[] = {"automatic", "enable", "disable"};
    MPI_Info_set(hints, "cb_nodes", std::to_string(1 + draw(size)).c_str());
    MPI_Info_set(hints, "cb_buffer_size", draw(2) == 0 ? "4096" : "1000000");
    MPI_Info_set(hints, "romio_cb_write", uses[draw(3)]);
    MPI_Info_set(hints, "romio_cb_read", uses[draw(3)]);
    MPI_Info_set(hints, "romio_ds_read", uses[draw(3)]);
    MPI_Info_set(hints, "ind_rd_buffer_size", draw(2) == 0 ? "100" : "100000");
    CHECK(MPI_File_open(MPI_COMM_WORLD, kPath, MPI_MODE_RDWR | MPI_MODE_CREATE, hints, &file_) ==
          MPI_SUCCESS);
    MPI_Info_free(&hints);
    CHECK(MPI_File_set_size(file_, 0) == MPI_SUCCESS);
    CHECK(MPI_Type_contiguous(3, MPI_SHORT, &triple_) == MPI_SUCCESS);
    CHECK(MPI_Type_commit(&triple_) == MPI_SUCCESS);
  }
  ~Test() {
    MPI_Type_free(&triple_);
    MPI_File_close(&file_);
  }

  void round() {
    const Etype etypes[] = {{MPI_BYTE, 1, 1}, {MPI_INT, 4, 4}, {MPI_DOUBLE, 8, 8}, {triple_, 6, 2}};
    etype_ = etypes[draw(4)];
    is_common_ = draw(2) == 0;
    is_swapped_ = draw(3) == 0;
    draw_views();
    set_view();
    positions_.assign(static_cast<std::size_t>(size), 0);
    shared_position_ = 0;
    CHECK(MPI_File_set_atomicity(file_, draw(4) == 0) == MPI_SUCCESS);
    for (int i = 0; i < 8; ++i) {
      access();
      check_positions();
    }
    check_file();
  }

 private:
  // --- Views
  void draw_views() {
    const int tile = 1 + draw(3 * size + 6);
    views_.assign(static_cast<std::size_t>(size), View());
    const long displacement = 24L * draw(5);
    const bool is_regular = draw(3) == 0;
    for (View& view : views_) {
      view.displacement = displacement;
      view.tile = is_common_ ? tile : tile + size;
      view.etype_bytes = etype_.bytes;
    }
    if (is_common_) {
      for (int slot = 0; slot < tile; ++slot)
        if (is_regular || draw(3) > 0) views_[0].slots.push_back(slot);
      if (views_[0].slots.empty()) views_[0].slots.push_back(tile - 1);
      for (View& view : views_) view.slots = views_[0].slots;
      return;
    }
    for (int slot = 0; slot < tile; ++slot) {
      const int owner = is_regular ? slot % size : draw(size + 1);
      if (owner < size) views_[static_cast<std::size_t>(owner)].slots.push_back(slot);
    }
    for (int i = 0; i < size; ++i) views_[static_cast<std::size_t>(i)].slots.push_back(tile + i);
  }

  void set_view() {
    const View& mine = views_[static_cast<std::size_t>(rank)];
    MPI_Datatype slots;
    MPI_Datatype filetype;
    MPI_Type_create_indexed_block(static_cast<int>(mine.slots.size()), 1, mine.slots.data(), etype_.type,
                                  &slots);
    MPI_Type_create_resized(slots, 0, static_cast<MPI_Aint>(mine.tile) * etype_.bytes, &filetype);
    MPI_Type_commit(&filetype);
    CHECK(MPI_File_set_view(file_, mine.displacement, etype_.type, filetype,
                            is_swapped_ ? "external32" : "native", MPI_INFO_NULL) == MPI_SUCCESS);
    MPI_Type_free(&slots);
    MPI_Type_free(&filetype);
  }

  // --- The model
  void swap(std::vector<char>& bytes) const {
    if (!is_swapped_) return;
    for (std::size_t at = 0; at + etype_.value_bytes <= bytes.size(); at += etype_.value_bytes)
      std::reverse(bytes.begin() + at, bytes.begin() + at + etype_.value_bytes);
  }
  void apply(const View& view, const Access& access, Part& part) {
    part.bytes.resize(static_cast<std::size_t>(part.count) * etype_.bytes);
    if (access.writes) {
      for (char& byte : part.bytes) byte = static_cast<char>(draw(256));
      std::vector<char> in_file = part.bytes;
      swap(in_file);
      for (int i = 0; i < part.count; ++i) {
        const auto place = static_cast<std::size_t>(view.place(part.position + i));
        if (model_.size() < place + etype_.bytes) model_.resize(place + etype_.bytes);
        std::copy_n(in_file.begin() + i * etype_.bytes, etype_.bytes, model_.begin() + place);
      }
      return;
    }
    part.got = 0;
    for (int i = 0; i < part.count; ++i) {
      const long place = view.place(part.position + i);
      for (int k = 0; k < etype_.bytes; ++k) {
        if (place + k >= static_cast<long>(model_.size())) {
          swap(part.bytes);
          return;
        }
        part.bytes[static_cast<std::size_t>(part.got++)] = model_[static_cast<std::size_t>(place + k)];
      }
    }
    swap(part.bytes);
  }

  // --- Accesses
  void access() {
    Access access;
    access.writes = draw(2) == 0;
    access.pointer = static_cast<Pointer>(draw(is_common_ ? 3 : 2));
    access.is_collective = draw(2) == 0;
    access.form = static_cast<Form>(draw(access.is_collective ? 3 : 2));
    // There is no MPI_File_iread_ordered.
    if (access.form == Form::kStarted && access.pointer == Pointer::kShared && access.is_collective)
      access.form = Form::kBlocking;
    access.has_gaps = draw(2) == 0;
    const bool takes_turns = access.pointer == Pointer::kShared && !access.is_collective;
    Part mine;
    const long base = draw(30);
    long before = 0;
    const bool seeks = draw(2) == 0 || is_common_;
    for (int i = 0; i < size; ++i) {
      const auto place = static_cast<std::size_t>(i);
      Part part;
      part.count = draw(draw(4) == 0 ? 400 : 40);
      // In a common view no two ranks write the same.
      part.position = is_common_ ? base + before : draw(200);
      before += part.count;
      if (access.pointer == Pointer::kIndividual) {
        if (seeks) positions_[place] = part.position;
        part.position = positions_[place];
      }
      if (access.pointer == Pointer::kShared) {
        part.position = shared_position_;
        shared_position_ += part.count;
      }
      apply(views_[place], access, part);
      if (access.pointer == Pointer::kIndividual) {
        const bool stops = access.form == Form::kBlocking && !access.writes;
        positions_[place] += stops ? part.got / etype_.bytes : part.count;
      }
      if (i == rank) mine = part;
    }
    if (access.pointer == Pointer::kIndividual && seeks)
      CHECK(MPI_File_seek(file_, mine.position, MPI_SEEK_SET) == MPI_SUCCESS);
    for (int turn = 0; turn < (takes_turns ? size : 1); ++turn) {
      if (!takes_turns || turn == rank) carry_out(access, mine);
      if (takes_turns) MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }

  void carry_out(const Access& access, const Part& part) {
    const int stride = access.has_gaps ? 2 : 1;
    std::vector<char> memory(static_cast<std::size_t>(part.count) * etype_.bytes * stride, kUntouched);
    const auto scatter = [&](std::size_t num_bytes, std::vector<char>& to) {
      for (std::size_t i = 0; i < num_bytes; ++i)
        to[i / etype_.bytes * etype_.bytes * stride + i % etype_.bytes] = part.bytes[i];
    };
    if (access.writes) scatter(part.bytes.size(), memory);
    device::Bytes buffer(memory.size(), kind_);
    buffer.write(memory);
    MPI_Datatype type;
    MPI_Type_vector(part.count, 1, stride, etype_.type, &type);
    MPI_Type_commit(&type);
    MPI_Status status;
    CHECK(call(access, part, buffer.data(), access.has_gaps ? 1 : part.count,
               access.has_gaps ? type : etype_.type, &status) == MPI_SUCCESS);
    MPI_Type_free(&type);
    int bytes = -1;
    CHECK(MPI_Get_count(&status, MPI_BYTE, &bytes) == MPI_SUCCESS);
    if (access.writes) {
      CHECK(bytes == static_cast<int>(part.bytes.size()));
      CHECK(buffer.read() == memory);
      return;
    }
    CHECK(bytes == part.got);
    // Bytes behind the last whole value, and behind the end of the file, may be anything.
    scatter(static_cast<std::size_t>(part.got / etype_.value_bytes * etype_.value_bytes), memory);
    const std::vector<char> read = buffer.read();
    for (std::size_t i = 0; i < memory.size(); ++i) {
      const std::size_t value = i / (etype_.bytes * stride) * etype_.bytes + i % (etype_.bytes * stride);
      const bool is_gap = i % (etype_.bytes * stride) >= static_cast<std::size_t>(etype_.bytes);
      if (is_gap || static_cast<long>(value) < part.got / etype_.value_bytes * etype_.value_bytes)
        CHECK(read[i] == memory[i]);
    }
  }

  int call(const Access& access, const Part& part, void* buffer, int count, MPI_Datatype type,
           MPI_Status* status) {
    const bool all = access.is_collective;
    if (access.form == Form::kBlocking) return wait_for(access, part.position, buffer, count, type, status);
    if (access.form == Form::kSplit) return split(access, part.position, buffer, count, type, status);
    MPI_Request request;
    int code;
    if (access.pointer == Pointer::kExplicit) {
      code = access.writes ? (all ? MPI_File_iwrite_at_all : MPI_File_iwrite_at)(file_, part.position, buffer,
                                                                                 count, type, &request)
                           : (all ? MPI_File_iread_at_all : MPI_File_iread_at)(file_, part.position, buffer,
                                                                               count, type, &request);
    } else {
      const auto write = access.pointer == Pointer::kShared ? MPI_File_iwrite_shared
                         : all                              ? MPI_File_iwrite_all
                                                            : MPI_File_iwrite;
      const auto read = access.pointer == Pointer::kShared ? MPI_File_iread_shared
                        : all                              ? MPI_File_iread_all
                                                           : MPI_File_iread;
      code = access.writes ? write(file_, buffer, count, type, &request)
                           : read(file_, buffer, count, type, &request);
    }
    return code != MPI_SUCCESS ? code : MPI_Wait(&request, status);
  }

  int wait_for(const Access& access, long position, void* buffer, int count, MPI_Datatype type,
               MPI_Status* status) {
    const bool all = access.is_collective;
    if (access.pointer == Pointer::kExplicit) {
      return access.writes ? (all ? MPI_File_write_at_all : MPI_File_write_at)(file_, position, buffer, count,
                                                                               type, status)
                           : (all ? MPI_File_read_at_all : MPI_File_read_at)(file_, position, buffer, count,
                                                                             type, status);
    }
    if (access.pointer == Pointer::kIndividual) {
      return access.writes ? (all ? MPI_File_write_all : MPI_File_write)(file_, buffer, count, type, status)
                           : (all ? MPI_File_read_all : MPI_File_read)(file_, buffer, count, type, status);
    }
    return access.writes
               ? (all ? MPI_File_write_ordered : MPI_File_write_shared)(file_, buffer, count, type, status)
               : (all ? MPI_File_read_ordered : MPI_File_read_shared)(file_, buffer, count, type, status);
  }

  int split(const Access& access, long position, void* buffer, int count, MPI_Datatype type,
            MPI_Status* status) {
    if (access.pointer == Pointer::kExplicit) {
      if (access.writes) {
        CHECK(MPI_File_write_at_all_begin(file_, position, buffer, count, type) == MPI_SUCCESS);
        return MPI_File_write_at_all_end(file_, buffer, status);
      }
      CHECK(MPI_File_read_at_all_begin(file_, position, buffer, count, type) == MPI_SUCCESS);
      return MPI_File_read_at_all_end(file_, buffer, status);
    }
    const bool is_shared = access.pointer == Pointer::kShared;
    if (access.writes) {
      const auto begin = is_shared ? MPI_File_write_ordered_begin : MPI_File_write_all_begin;
      CHECK(begin(file_, buffer, count, type) == MPI_SUCCESS);
      return (is_shared ? MPI_File_write_ordered_end : MPI_File_write_all_end)(file_, buffer, status);
    }
    CHECK((is_shared ? MPI_File_read_ordered_begin : MPI_File_read_all_begin)(file_, buffer, count, type) ==
          MPI_SUCCESS);
    return (is_shared ? MPI_File_read_ordered_end : MPI_File_read_all_end)(file_, buffer, status);
  }

  // --- Checks
  void check_positions() {
    const View& mine = views_[static_cast<std::size_t>(rank)];
    MPI_Offset now = -1;
    CHECK(MPI_File_get_position(file_, &now) == MPI_SUCCESS);
    CHECK(now == positions_[static_cast<std::size_t>(rank)]);
    CHECK(MPI_File_get_position_shared(file_, &now) == MPI_SUCCESS && now == shared_position_);
    const int position = draw(1000);
    CHECK(MPI_File_get_byte_offset(file_, position, &now) == MPI_SUCCESS && now == mine.place(position));
    CHECK(MPI_File_get_size(file_, &now) == MPI_SUCCESS && now == static_cast<MPI_Offset>(model_.size()));
    if (draw(4) == 0) check_end(mine);
    // The next access of another rank moves the shared pointer and the end of the file.
    MPI_Barrier(MPI_COMM_WORLD);
  }
  void check_end(const View& mine) {
    MPI_Offset now = -1;
    long end = 0;
    while (mine.place(end) < static_cast<long>(model_.size())) ++end;
    CHECK(MPI_File_seek(file_, -std::min(end, 3L), MPI_SEEK_END) == MPI_SUCCESS);
    CHECK(MPI_File_get_position(file_, &now) == MPI_SUCCESS && now == end - std::min(end, 3L));
    CHECK(MPI_File_seek(file_, positions_[static_cast<std::size_t>(rank)] - now, MPI_SEEK_CUR) ==
          MPI_SUCCESS);
  }

  void check_file() {
    MPI_Barrier(MPI_COMM_WORLD);
    std::FILE* const file = std::fopen(kPath, "rb");
    CHECK(file != nullptr);
    std::vector<char> bytes(model_.size() + 1);
    CHECK(std::fread(bytes.data(), 1, bytes.size(), file) == model_.size());
    std::fclose(file);
    bytes.pop_back();
    CHECK(bytes == model_);
    MPI_Barrier(MPI_COMM_WORLD);
  }

  std::string kind_;
  MPI_File file_ = MPI_FILE_NULL;
  MPI_Datatype triple_ = MPI_DATATYPE_NULL;
  std::vector<char> model_;
  Etype etype_{MPI_BYTE, 1, 1};
  bool is_common_ = false;
  bool is_swapped_ = false;
  std::vector<View> views_;
  std::vector<long> positions_;
  long shared_position_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(argc == 4);
  numbers.seed(static_cast<std::uint64_t>(std::atoi(argv[1])));
  for (int i = 0; i < 3; ++i) {
    Test test(argv[3]);
    for (int round = 0; round < std::atoi(argv[2]); ++round) test.round();
  }
  if (rank == 0) std::printf("random files of %d ranks: as the model says\n", size);
  MPI_Finalize();
  return 0;
}
