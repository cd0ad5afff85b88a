// The tool information interface: its start and end, enumerations, and categories of variables.
#include "tools/tools.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "ranks/environment.h"

namespace weft::mpi {

void give_text(std::string_view value, char* text, int* length) {
  if (length == nullptr) return;
  const int needed = static_cast<int>(value.size()) + 1;
  if (text == nullptr || *length <= 0) {
    *length = needed;
    return;
  }
  copy_string(value, static_cast<std::size_t>(*length), text);
  *length = std::min(*length, needed);
}

namespace {

// The variables of a category have consecutive indices.
struct Indices {
  int first = 0;
  int count = 0;
};
struct Category {
  std::string_view name;
  std::string_view description;
  Indices control;
  Indices performance;
};

std::array<Category, 3> categories() {
  const int transfers = num_transfer_variables();
  return {{{"weft_settings", "the settings of the job", {0, num_control_variables()}, {}},
           {"weft_transfers", "what this process has sent, by the path that it took", {}, {0, transfers}},
           {"weft_matching",
            "receives and messages that wait for each other",
            {},
            {transfers, num_performance_variables() - transfers}}}};
}

int with_category(int index, const auto& body) {
  return tool_call([&]() -> int {
    const auto all = categories();
    if (index < 0 || index >= static_cast<int>(all.size())) return MPI_T_ERR_INVALID_INDEX;
    return body(all[static_cast<std::size_t>(index)]);
  });
}

// At most `length` indices.
int give_indices(const Indices& indices, int length, int* result) {
  if (length < 0 || (length > 0 && !is_place(result))) return MPI_T_ERR_INVALID;
  for (int i = 0; i < std::min(length, indices.count); ++i) result[i] = indices.first + i;
  return MPI_SUCCESS;
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_T_init_thread(int required, int* provided) {
  const Error error = outcome_of(nullptr, [&]() -> Error {
    if (!is_place(provided) || required < MPI_THREAD_SINGLE || required > MPI_THREAD_MULTIPLE)
      return {MPI_T_ERR_INVALID, {}};
    *provided = std::min(required, thread_level());
    ++this_rank().tools.num_users;
    return {};
  });
  return error.error_class;
}
int MPI_T_finalize(void) {
  return tool_call([]() -> int {
    ToolState& tools = this_rank().tools;
    if (--tools.num_users == 0) tools.clear();
    return MPI_SUCCESS;
  });
}

// --- Enumerations: no variable has one.

int MPI_T_enum_get_info(MPI_T_enum, int*, char*, int*) {
  return tool_call([]() -> int { return MPI_T_ERR_INVALID; });
}
int MPI_T_enum_get_item(MPI_T_enum, int, int*, char*, int*) {
  return tool_call([]() -> int { return MPI_T_ERR_INVALID; });
}

// --- Categories

int MPI_T_category_get_num(int* num_cat) {
  return tool_call([&]() -> int {
    if (!is_place(num_cat)) return MPI_T_ERR_INVALID;
    *num_cat = static_cast<int>(categories().size());
    return MPI_SUCCESS;
  });
}
int MPI_T_category_get_info(int cat_index, char* name, int* name_len, char* desc, int* desc_len,
                            int* num_cvars, int* num_pvars, int* num_categories) {
  return with_category(cat_index, [&](const Category& category) -> int {
    if (!are_optional(name, name_len, desc, desc_len, num_cvars, num_pvars, num_categories))
      return MPI_T_ERR_INVALID;
    give_text(category.name, name, name_len);
    give_text(category.description, desc, desc_len);
    give(num_cvars, category.control.count);
    give(num_pvars, category.performance.count);
    give(num_categories, 0);
    return MPI_SUCCESS;
  });
}
int MPI_T_category_get_num_events(int cat_index, int* num_events) {
  return with_category(cat_index, [&](const Category&) -> int {
    if (!is_place(num_events)) return MPI_T_ERR_INVALID;
    *num_events = 0;
    return MPI_SUCCESS;
  });
}
int MPI_T_category_get_index(const char* name, int* cat_index) {
  return tool_call([&]() -> int {
    if (!is_place(name) || !is_place(cat_index)) return MPI_T_ERR_INVALID;
    const auto all = categories();
    const auto* const found = std::ranges::find(all, std::string_view(name), &Category::name);
    if (found == all.end()) return MPI_T_ERR_INVALID_NAME;
    *cat_index = static_cast<int>(found - all.begin());
    return MPI_SUCCESS;
  });
}
int MPI_T_category_get_cvars(int cat_index, int len, int indices[]) {
  return with_category(cat_index,
                       [&](const Category& found) { return give_indices(found.control, len, indices); });
}
int MPI_T_category_get_pvars(int cat_index, int len, int indices[]) {
  return with_category(cat_index,
                       [&](const Category& found) { return give_indices(found.performance, len, indices); });
}
int MPI_T_category_get_events(int cat_index, int len, int indices[]) {
  return with_category(cat_index, [&](const Category&) -> int { return give_indices({}, len, indices); });
}
int MPI_T_category_get_categories(int cat_index, int len, int indices[]) {
  return with_category(cat_index, [&](const Category&) -> int { return give_indices({}, len, indices); });
}
int MPI_T_category_changed(int* update_number) {
  return tool_call([&]() -> int {
    if (!is_place(update_number)) return MPI_T_ERR_INVALID;
    *update_number = 0;  // categories and variables never change
    return MPI_SUCCESS;
  });
}

}  // extern "C"
