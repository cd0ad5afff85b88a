#include "models/mpi/objects/attributes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/mpi/objects/object.h"

namespace weft::mpi {
namespace {

// What the functions below have seen.
struct AttributeLog {
  std::vector<std::string> calls;
  int copy_flag = 1;
  int copy_code = MPI_SUCCESS;
  int delete_code = MPI_SUCCESS;
};

const MPI_Comm kAttributedComm = reinterpret_cast<MPI_Comm>(0x5000);

int copy_logged(MPI_Comm comm, int /*key*/, void* state, void* value, void* result, int* flag) {
  EXPECT_EQ(comm, kAttributedComm);
  auto* const log = static_cast<AttributeLog*>(state);
  log->calls.push_back("copy " + *static_cast<std::string*>(value));
  *static_cast<void**>(result) = value;
  *flag = log->copy_flag;
  return log->copy_code;
}

int delete_logged(MPI_Comm comm, int /*key*/, void* value, void* state) {
  EXPECT_EQ(comm, kAttributedComm);
  auto* const log = static_cast<AttributeLog*>(state);
  log->calls.push_back("delete " + *static_cast<std::string*>(value));
  return log->delete_code;
}

Ref<AttributeKey> make_key(MPI_Comm_copy_attr_function* copy, MPI_Comm_delete_attr_function* remove,
                           AttributeLog* log) {
  return Ref<AttributeKey>::adopt(new AttributeKey(ObjectKind::kCommunicator,
                                                   reinterpret_cast<AttributeKey::Function>(copy),
                                                   reinterpret_cast<AttributeKey::Function>(remove), log));
}

using Calls = std::vector<std::string>;

TEST(Attributes, ANewValueReplacesTheOldOneAfterItsDeleteFunction) {
  AttributeLog log;
  const Ref<AttributeKey> key = make_key(copy_logged, delete_logged, &log);
  Attributes attributes;
  std::string one = "one";
  std::string two = "two";
  void* value = nullptr;
  EXPECT_FALSE(attributes.find(2000, &value));
  EXPECT_TRUE(attributes.set(kAttributedComm, 2000, key, &one).ok());
  EXPECT_TRUE(attributes.set(kAttributedComm, 2000, key, &two).ok());
  ASSERT_TRUE(attributes.find(2000, &value));
  EXPECT_EQ(value, &two);
  EXPECT_EQ(log.calls, (Calls{"delete one"}));
}

TEST(Attributes, AFailingDeleteFunctionKeepsTheAttribute) {
  AttributeLog log;
  log.delete_code = MPI_ERR_OTHER;
  const Ref<AttributeKey> key = make_key(copy_logged, delete_logged, &log);
  Attributes attributes;
  std::string one = "one";
  ASSERT_TRUE(attributes.set(kAttributedComm, 2000, key, &one).ok());
  EXPECT_EQ(attributes.remove(kAttributedComm, 2000).error_class, MPI_ERR_OTHER);
  EXPECT_EQ(attributes.remove_all(kAttributedComm).error_class, MPI_ERR_OTHER);
  void* value = nullptr;
  EXPECT_TRUE(attributes.find(2000, &value));
}

// Changes the attributes while the function for the end of a value runs, as another thread may: it gets the lock of calls meanwhile.
struct ChangedMeanwhile {
  Attributes attributes;
  Ref<AttributeKey> key;
  std::string other = "other";
  int num_deleted = 0;
  bool sets = false;

  static int on_delete(MPI_Comm comm, int number, void* value, void* state) {
    auto& self = *static_cast<ChangedMeanwhile*>(state);
    if (++self.num_deleted > 1) return MPI_SUCCESS;
    void* found = nullptr;
    EXPECT_TRUE(self.attributes.find(number, &found));
    EXPECT_EQ(found, value);
    EXPECT_TRUE(self.attributes.remove(comm, number).ok());
    EXPECT_TRUE(self.attributes.remove_all(comm).ok());
    EXPECT_EQ(self.num_deleted, 1) << "its function runs already";
    if (self.sets) {
      EXPECT_TRUE(self.attributes.set(comm, number, self.key, &self.other).ok());
    }
    return MPI_SUCCESS;
  }
  ChangedMeanwhile()
      : key(Ref<AttributeKey>::adopt(new AttributeKey(ObjectKind::kCommunicator, nullptr,
                                                      reinterpret_cast<AttributeKey::Function>(&on_delete),
                                                      this))) {}
};

TEST(Attributes, TheDeleteFunctionIsCalledOnceForEachValue) {
  ChangedMeanwhile changed;
  std::string one = "one";
  void* value = nullptr;
  ASSERT_TRUE(changed.attributes.set(kAttributedComm, 2000, changed.key, &one).ok());
  EXPECT_TRUE(changed.attributes.remove(kAttributedComm, 2000).ok());
  EXPECT_EQ(changed.num_deleted, 1);
  EXPECT_FALSE(changed.attributes.find(2000, &value));
}

TEST(Attributes, AValueThatIsSetDuringTheDeleteFunctionOfTheOldOneStays) {
  ChangedMeanwhile changed;
  changed.sets = true;
  std::string one = "one";
  void* value = nullptr;
  ASSERT_TRUE(changed.attributes.set(kAttributedComm, 2000, changed.key, &one).ok());
  EXPECT_TRUE(changed.attributes.remove(kAttributedComm, 2000).ok());
  ASSERT_TRUE(changed.attributes.find(2000, &value));
  EXPECT_EQ(value, &changed.other);
}

TEST(Attributes, TheLastOfTwoValuesThatAreSetAtTheSameTimeStaysAlone) {
  ChangedMeanwhile changed;
  changed.sets = true;
  std::string one = "one";
  std::string two = "two";
  void* value = nullptr;
  ASSERT_TRUE(changed.attributes.set(kAttributedComm, 2000, changed.key, &one).ok());
  EXPECT_TRUE(changed.attributes.set(kAttributedComm, 2000, changed.key, &two).ok());
  EXPECT_EQ(changed.num_deleted, 2);
  ASSERT_TRUE(changed.attributes.find(2000, &value));
  EXPECT_EQ(value, &two);
  EXPECT_TRUE(changed.attributes.remove(kAttributedComm, 2000).ok());
  EXPECT_FALSE(changed.attributes.find(2000, &value));
}

TEST(Attributes, AllGoInTheReverseOrderOfSetting) {
  AttributeLog log;
  Attributes attributes;
  std::string one = "one";
  std::string two = "two";
  ASSERT_TRUE(attributes.set(kAttributedComm, 1, make_key(copy_logged, delete_logged, &log), &one).ok());
  ASSERT_TRUE(attributes.set(kAttributedComm, 2, make_key(copy_logged, delete_logged, &log), &two).ok());
  EXPECT_TRUE(attributes.remove_all(kAttributedComm).ok());
  EXPECT_EQ(log.calls, (Calls{"delete two", "delete one"}));
}

TEST(Attributes, ADuplicateGetsWhatTheCopyFunctionsSay) {
  AttributeLog wanted;
  AttributeLog unwanted;
  unwanted.copy_flag = 0;
  Attributes attributes;
  std::string text[] = {"function", "refused", "dup", "none"};
  ASSERT_TRUE(
      attributes.set(kAttributedComm, 1, make_key(copy_logged, delete_logged, &wanted), &text[0]).ok());
  ASSERT_TRUE(
      attributes.set(kAttributedComm, 2, make_key(copy_logged, delete_logged, &unwanted), &text[1]).ok());
  ASSERT_TRUE(
      attributes
          .set(kAttributedComm, 3, make_key(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, nullptr), &text[2])
          .ok());
  ASSERT_TRUE(
      attributes.set(kAttributedComm, 4, make_key(MPI_COMM_NULL_COPY_FN, delete_logged, &wanted), &text[3])
          .ok());
  Attributes duplicate;
  EXPECT_TRUE(attributes.copy_to(duplicate, kAttributedComm).ok());
  void* value = nullptr;
  EXPECT_TRUE(duplicate.find(1, &value));
  EXPECT_FALSE(duplicate.find(2, &value));
  EXPECT_TRUE(duplicate.find(3, &value));
  EXPECT_EQ(value, &text[2]);
  EXPECT_FALSE(duplicate.find(4, &value));
  EXPECT_EQ(wanted.calls, (Calls{"copy function"}));
}

TEST(Attributes, AFailingCopyFunctionFailsTheDuplicate) {
  AttributeLog log;
  log.copy_code = MPI_ERR_INTERN;
  Attributes attributes;
  std::string one = "one";
  ASSERT_TRUE(attributes.set(kAttributedComm, 1, make_key(copy_logged, delete_logged, &log), &one).ok());
  Attributes duplicate;
  EXPECT_EQ(attributes.copy_to(duplicate, kAttributedComm).error_class, MPI_ERR_INTERN);
}

TEST(AttributeKeys, AFreedKeyLivesOnInItsAttributes) {
  AttributeLog log;
  AttributeKeys keys;
  const int number = keys.add(make_key(copy_logged, delete_logged, &log));
  EXPECT_NE(number, MPI_KEYVAL_INVALID);
  Ref<AttributeKey> key;
  EXPECT_EQ(keys.find(number, ObjectKind::kDatatype, &key).error_class, MPI_ERR_KEYVAL);
  ASSERT_TRUE(keys.find(number, ObjectKind::kCommunicator, &key).ok());
  Attributes attributes;
  std::string one = "one";
  ASSERT_TRUE(attributes.set(kAttributedComm, number, std::move(key), &one).ok());
  EXPECT_TRUE(keys.free(number, ObjectKind::kCommunicator).ok());
  EXPECT_TRUE(keys.free(number, ObjectKind::kCommunicator).ok());
  EXPECT_TRUE(keys.find(number, ObjectKind::kCommunicator, &key).ok());
  key = nullptr;
  EXPECT_TRUE(attributes.remove_all(kAttributedComm).ok());
  EXPECT_EQ(log.calls, (Calls{"delete one"}));
  EXPECT_EQ(keys.find(number, ObjectKind::kCommunicator, &key).error_class, MPI_ERR_KEYVAL);
  EXPECT_EQ(keys.free(number, ObjectKind::kCommunicator).error_class, MPI_ERR_KEYVAL);
  EXPECT_NE(keys.add(make_key(nullptr, nullptr, nullptr)), number);
}

TEST(AttributeKeys, AFreedKeyWithoutAttributesIsNone) {
  AttributeKeys keys;
  const int number = keys.add(make_key(nullptr, nullptr, nullptr));
  EXPECT_TRUE(keys.free(number, ObjectKind::kCommunicator).ok());
  Ref<AttributeKey> key;
  EXPECT_EQ(keys.find(number, ObjectKind::kCommunicator, &key).error_class, MPI_ERR_KEYVAL);
}

// A delete function that deletes another attribute of the same object.
struct Chained {
  Attributes* attributes = nullptr;
  int other = 0;
};

int delete_other(MPI_Comm comm, int /*key*/, void* value, void* /*state*/) {
  const auto* const chained = static_cast<Chained*>(value);
  return chained->attributes->remove(comm, chained->other).error_class;
}

TEST(Attributes, ADeleteFunctionMayUseTheAttributesOfItsObject) {
  Attributes attributes;
  Chained chained = {&attributes, 2};
  const Ref<AttributeKey> key = make_key(MPI_COMM_NULL_COPY_FN, delete_other, nullptr);
  ASSERT_TRUE(attributes.set(kAttributedComm, 1, make_key(nullptr, nullptr, nullptr), nullptr).ok());
  ASSERT_TRUE(attributes.set(kAttributedComm, 2, make_key(nullptr, nullptr, nullptr), nullptr).ok());
  ASSERT_TRUE(attributes.set(kAttributedComm, 3, key, &chained).ok());
  EXPECT_TRUE(attributes.remove(kAttributedComm, 3).ok());
  void* value = nullptr;
  EXPECT_TRUE(attributes.find(1, &value));
  EXPECT_FALSE(attributes.find(2, &value));
  EXPECT_FALSE(attributes.find(3, &value));
}

}  // namespace
}  // namespace weft::mpi
