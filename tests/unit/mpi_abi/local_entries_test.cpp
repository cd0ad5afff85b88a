// Functions that programs may call before MPI_Init.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "weft/mpi/mpi.h"

#include "communication/status.h"
#include "ended_jobs.h"

namespace weft::mpi {
namespace {

TEST(Versions, AreThoseOfTheStandard) {
  int version = 0;
  int subversion = 0;
  EXPECT_EQ(MPI_Get_version(&version, &subversion), MPI_SUCCESS);
  EXPECT_EQ(version, 5);
  EXPECT_EQ(subversion, 0);
  EXPECT_EQ(MPI_Abi_get_version(&version, &subversion), MPI_SUCCESS);
  EXPECT_EQ(version, 1);
  EXPECT_EQ(subversion, 0);
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  EXPECT_EQ(MPI_Get_library_version(text, &length), MPI_SUCCESS);
  EXPECT_EQ(std::strlen(text), static_cast<std::size_t>(length));
  EXPECT_NE(std::string(text).find("Weft"), std::string::npos);
}

TEST(Time, DoesNotGoBack) {
  const double before = MPI_Wtime();
  EXPECT_GE(MPI_Wtime(), before);
  EXPECT_GT(MPI_Wtick(), 0);
  EXPECT_LT(MPI_Wtick(), 1e-3);
}

TEST(AllocMem, GivesAlignedMemory) {
  const EndedJobs ended;
  MPI_Info info = MPI_INFO_NULL;
  ASSERT_EQ(MPI_Info_create(&info), MPI_SUCCESS);
  ASSERT_EQ(MPI_Info_set(info, "mpi_minimum_memory_alignment", "4096"), MPI_SUCCESS);
  void* memory = nullptr;
  ASSERT_EQ(MPI_Alloc_mem(100, info, &memory), MPI_SUCCESS);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 4096, 0U);
  EXPECT_EQ(MPI_Free_mem(memory), MPI_SUCCESS);
  ASSERT_EQ(MPI_Alloc_mem(0, MPI_INFO_NULL, &memory), MPI_SUCCESS);
  EXPECT_NE(memory, nullptr);
  EXPECT_EQ(MPI_Free_mem(memory), MPI_SUCCESS);
  EXPECT_EQ(MPI_Alloc_mem(-1, MPI_INFO_NULL, &memory), MPI_ERR_ARG);
  ASSERT_EQ(MPI_Info_set(info, "mpi_minimum_memory_alignment", "100"), MPI_SUCCESS);
  EXPECT_EQ(MPI_Alloc_mem(100, info, &memory), MPI_ERR_INFO_VALUE);
  EXPECT_EQ(MPI_Alloc_mem(INTPTR_MAX, MPI_INFO_NULL, &memory), MPI_ERR_NO_MEM);
  EXPECT_EQ(MPI_Info_free(&info), MPI_SUCCESS);
}

TEST(Status, KeepsItsFields) {
  MPI_Status status = {};
  EXPECT_EQ(MPI_Status_set_source(&status, 3), MPI_SUCCESS);
  EXPECT_EQ(MPI_Status_set_tag(&status, 4), MPI_SUCCESS);
  EXPECT_EQ(MPI_Status_set_error(&status, 5), MPI_SUCCESS);
  EXPECT_EQ(MPI_Status_set_cancelled(&status, 1), MPI_SUCCESS);
  set_status_bytes(status, std::int64_t{5} << 32 | 0x89abcdef);
  int value = 0;
  EXPECT_EQ(MPI_Status_get_source(&status, &value), MPI_SUCCESS);
  EXPECT_EQ(value, 3);
  EXPECT_EQ(MPI_Status_get_tag(&status, &value), MPI_SUCCESS);
  EXPECT_EQ(value, 4);
  EXPECT_EQ(MPI_Status_get_error(&status, &value), MPI_SUCCESS);
  EXPECT_EQ(value, 5);
  EXPECT_EQ(MPI_Test_cancelled(&status, &value), MPI_SUCCESS);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(status_bytes(status), std::int64_t{5} << 32 | 0x89abcdef);
  const EndedJobs ended;
  EXPECT_EQ(MPI_Status_get_source(MPI_STATUS_IGNORE, &value), MPI_ERR_ARG);
}

TEST(ErrorStrings, NameTheirClass) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  EXPECT_EQ(MPI_Error_string(MPI_ERR_RANK, text, &length), MPI_SUCCESS);
  EXPECT_EQ(std::string(text, static_cast<std::size_t>(length)), "MPI_ERR_RANK: invalid rank");
}

TEST(TypeNames, AreThoseThatTheStandardNamesFirst) {
  char name[MPI_MAX_OBJECT_NAME];
  int length = 0;
  EXPECT_EQ(MPI_Type_get_name(MPI_C_COMPLEX, name, &length), MPI_SUCCESS);
  EXPECT_STREQ(name, "MPI_C_COMPLEX");
  EXPECT_EQ(MPI_Type_get_name(MPI_C_DOUBLE_COMPLEX, name, &length), MPI_SUCCESS);
  EXPECT_STREQ(name, "MPI_C_DOUBLE_COMPLEX");
}

TEST(FreedKeys, AreKeysUntilTheirLastAttributeIsGone) {
  const EndedJobs ended;
  int key = MPI_KEYVAL_INVALID;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  ASSERT_EQ(MPI_Type_dup(MPI_INT, &type), MPI_SUCCESS);
  ASSERT_EQ(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &key, nullptr),
            MPI_SUCCESS);
  ASSERT_EQ(MPI_Type_set_attr(type, key, &key), MPI_SUCCESS);
  int kept = key;
  int copy = key;
  EXPECT_EQ(MPI_Type_free_keyval(&key), MPI_SUCCESS);
  EXPECT_EQ(MPI_Type_free_keyval(&copy), MPI_SUCCESS);
  EXPECT_EQ(MPI_Type_delete_attr(type, kept), MPI_SUCCESS);
  EXPECT_EQ(MPI_Type_delete_attr(type, kept), MPI_ERR_KEYVAL);
  EXPECT_EQ(MPI_Type_free_keyval(&kept), MPI_ERR_KEYVAL);
  EXPECT_EQ(MPI_Type_free(&type), MPI_SUCCESS);
}

TEST(HandleNumbersOfPrograms, AreThoseOfTheHandles) {
  EXPECT_EQ(MPI_Comm_toint(MPI_COMM_WORLD), 0x101);
  EXPECT_EQ(MPI_Comm_fromint(0x101), MPI_COMM_WORLD);
  EXPECT_EQ(MPI_Comm_fromint(1 << 30), MPI_COMM_NULL);
  EXPECT_EQ(MPI_Type_fromint(-5), MPI_DATATYPE_NULL);
  MPI_Info info = MPI_INFO_NULL;
  ASSERT_EQ(MPI_Info_create(&info), MPI_SUCCESS);
  EXPECT_EQ(MPI_Info_fromint(MPI_Info_toint(info)), info);
  EXPECT_EQ(MPI_Info_free(&info), MPI_SUCCESS);
}

TEST(EmptyGroup, IsThereBeforeMpiInit) {
  int size = -1;
  int rank = 0;
  EXPECT_EQ(MPI_Group_size(MPI_GROUP_EMPTY, &size), MPI_SUCCESS);
  EXPECT_EQ(size, 0);
  EXPECT_EQ(MPI_Group_rank(MPI_GROUP_EMPTY, &rank), MPI_SUCCESS);
  EXPECT_EQ(rank, MPI_UNDEFINED);
  MPI_Group group = MPI_GROUP_NULL;
  EXPECT_EQ(MPI_Group_union(MPI_GROUP_EMPTY, MPI_GROUP_EMPTY, &group), MPI_SUCCESS);
  EXPECT_EQ(group, MPI_GROUP_EMPTY);
  EXPECT_EQ(MPI_Group_incl(MPI_GROUP_EMPTY, 0, nullptr, &group), MPI_SUCCESS);
  EXPECT_EQ(group, MPI_GROUP_EMPTY);
  const EndedJobs ended;
  const int ranks[] = {0};
  EXPECT_EQ(MPI_Group_incl(MPI_GROUP_EMPTY, 1, ranks, &group), MPI_ERR_RANK);
  EXPECT_EQ(MPI_Group_incl(MPI_GROUP_EMPTY, -1, ranks, &group), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Group_size(MPI_GROUP_NULL, &size), MPI_ERR_GROUP);
  EXPECT_EQ(MPI_Group_free(&group), MPI_SUCCESS);
  EXPECT_EQ(group, MPI_GROUP_NULL);
}

TEST(TypeAttributes, AreCopiedAndDeletedWithTheirDatatype) {
  int key = MPI_KEYVAL_INVALID;
  int num_deleted = 0;
  const auto count = [](MPI_Datatype, int, void*, void* state) -> int {
    ++*static_cast<int*>(state);
    return MPI_SUCCESS;
  };
  ASSERT_EQ(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, count, &key, &num_deleted), MPI_SUCCESS);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Datatype copy = MPI_DATATYPE_NULL;
  int value = 0;
  ASSERT_EQ(MPI_Type_dup(MPI_INT, &type), MPI_SUCCESS);
  ASSERT_EQ(MPI_Type_set_attr(type, key, &value), MPI_SUCCESS);
  ASSERT_EQ(MPI_Type_dup(type, &copy), MPI_SUCCESS);
  void* found = nullptr;
  int flag = 0;
  EXPECT_EQ(MPI_Type_get_attr(copy, key, &found, &flag), MPI_SUCCESS);
  EXPECT_EQ(flag, 1);
  EXPECT_EQ(found, &value);
  EXPECT_EQ(MPI_Type_delete_attr(copy, key), MPI_SUCCESS);
  EXPECT_EQ(num_deleted, 1);
  EXPECT_EQ(MPI_Type_get_attr(copy, key, &found, &flag), MPI_SUCCESS);
  EXPECT_EQ(flag, 0);
  EXPECT_EQ(MPI_Type_free_keyval(&key), MPI_SUCCESS);
  EXPECT_EQ(key, MPI_KEYVAL_INVALID);
  EXPECT_EQ(MPI_Type_free(&type), MPI_SUCCESS);
  EXPECT_EQ(num_deleted, 2);
  EXPECT_EQ(MPI_Type_free(&copy), MPI_SUCCESS);
}

TEST(TypeAttributes, WrongKeysAreErrors) {
  const EndedJobs ended;
  int key = MPI_KEYVAL_INVALID;
  EXPECT_EQ(MPI_Type_set_attr(MPI_INT, key, nullptr), MPI_ERR_KEYVAL);
  ASSERT_EQ(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, nullptr),
            MPI_SUCCESS);
  EXPECT_EQ(MPI_Type_set_attr(MPI_INT, key, nullptr), MPI_ERR_KEYVAL);
  EXPECT_EQ(MPI_Type_free_keyval(&key), MPI_ERR_KEYVAL);
  EXPECT_EQ(MPI_Comm_free_keyval(&key), MPI_SUCCESS);
  EXPECT_EQ(MPI_Type_set_attr(MPI_DATATYPE_NULL, key, nullptr), MPI_ERR_TYPE);
}

TEST(AbiInfo, HasTheSizesOfTheIntegers) {
  MPI_Info info = MPI_INFO_NULL;
  ASSERT_EQ(MPI_Abi_get_info(&info), MPI_SUCCESS);
  for (const char* const key : {"mpi_aint_size", "mpi_count_size", "mpi_offset_size"}) {
    char text[8] = {};
    int length = sizeof(text);
    int flag = 0;
    EXPECT_EQ(MPI_Info_get_string(info, key, &length, text, &flag), MPI_SUCCESS);
    EXPECT_EQ(flag, 1);
    EXPECT_STREQ(text, "8");
  }
  EXPECT_EQ(MPI_Info_free(&info), MPI_SUCCESS);
}

TEST(FortranBooleans, AreSetOnce) {
  const EndedJobs ended;
  std::int32_t true_value = 0;
  std::int32_t false_value = 7;
  int is_set = 1;
  EXPECT_EQ(MPI_Abi_get_fortran_booleans(4, &true_value, &false_value, &is_set), MPI_SUCCESS);
  EXPECT_EQ(is_set, 0);
  std::int32_t given_true = 1;
  std::int32_t given_false = 0;
  EXPECT_EQ(MPI_Abi_set_fortran_booleans(3, &given_true, &given_false), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Abi_set_fortran_booleans(4, &given_true, &given_false), MPI_SUCCESS);
  EXPECT_EQ(MPI_Abi_set_fortran_booleans(4, &given_true, &given_false), MPI_ERR_ABI);
  EXPECT_EQ(MPI_Abi_get_fortran_booleans(4, &true_value, &false_value, &is_set), MPI_SUCCESS);
  EXPECT_EQ(is_set, 1);
  EXPECT_EQ(true_value, 1);
  EXPECT_EQ(false_value, 0);
  EXPECT_EQ(MPI_Abi_get_fortran_booleans(8, &true_value, &false_value, &is_set), MPI_ERR_ARG);
}

}  // namespace
}  // namespace weft::mpi
