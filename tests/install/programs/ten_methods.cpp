// Ten entry methods with usual arguments, each of which is called. For compile_cost.py.
#include <cstdio>
#include <string>
#include <vector>

#include "weft/weft.h"

struct Account : weft::Chare<Account> {
  void deposit(double amount) { balance += amount; }
  void withdraw(double amount) { balance -= amount; }
  double read() { return balance; }
  void rename(std::string to) { name = std::move(to); }
  std::string describe() { return name; }
  void record(int day, double rate) { history.push_back(day * rate); }
  void replace(std::vector<double> values) { history = std::move(values); }
  std::vector<double> list() { return history; }
  weft::Task<double> total() { co_return co_await allreduce(balance, weft::Reducer::kSum); }
  weft::Task<> settle(int with) {
    const double theirs = co_await proxy()[with].call<&Account::read>();
    balance = (balance + theirs) / 2;
  }

  double balance = 0;
  std::string name = "new";
  std::vector<double> history;
};

weft::Task<> start(weft::Runtime& runtime) {
  auto accounts = weft::Array<Account>::create(runtime, 2);
  co_await accounts[0].call<&Account::deposit>(5.0);
  co_await accounts[1].call<&Account::withdraw>(1.0);
  co_await accounts[0].call<&Account::rename>(std::string("first"));
  const std::vector<double> values(2, 1.0);
  co_await accounts[0].call<&Account::replace>(values);
  co_await accounts[0].call<&Account::record>(3, 0.5);
  co_await accounts[1].call<&Account::settle>(0);
  const double read = co_await accounts[1].call<&Account::read>();
  const std::string described = co_await accounts[0].call<&Account::describe>();
  const std::vector<double> listed = co_await accounts[0].call<&Account::list>();
  const std::vector<double> totals = co_await accounts.call<&Account::total>();
  std::printf("%g %s %zu %g\n", read, described.c_str(), listed.size(), totals[0]);
}

int main(int argc, char** argv) { return weft::run(argc, argv, start); }
