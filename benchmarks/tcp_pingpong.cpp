// A ping-pong over one TCP connection whose ends poll: what the kernel alone takes between two hosts. No library can be faster
// over TCP. For hosts.py.
//
//     tcp_pingpong serve PORT latency STEPS...         ends after the steps of one client
//     tcp_pingpong ADDRESS PORT latency STEPS...       exits with 2 if nothing listens
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "benchmarks/measuring.h"

namespace weft::benchmarks {
namespace {

constexpr int kNobodyListens = 2;

[[noreturn]] void die_of(std::string_view what) { die(std::string(what) + ": " + std::strerror(errno)); }

sockaddr_in address_of(const char* host, const char* port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::strtol(port, nullptr, 10)));
  if (host != nullptr && inet_pton(AF_INET, host, &address.sin_addr) != 1)
    die("the address is not one of IPv4");
  return address;
}

int accept_one(const char* port) {
  const sockaddr_in address = address_of(nullptr, port);
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener, 1) != 0)
    die_of("no listener");
  const int fd = accept(listener, nullptr, nullptr);
  if (fd < 0) die_of("no client");
  close(listener);
  return fd;
}

int connect_to(const char* host, const char* port) {
  const sockaddr_in address = address_of(host, port);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    std::exit(kNobodyListens);
  return fd;
}

// Both poll: neither sleeps in the kernel.
void send_all(int fd, std::vector<char>& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t some = send(fd, bytes.data() + sent, bytes.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (some > 0) sent += static_cast<std::size_t>(some);
    if (some < 0 && errno != EAGAIN) die_of("the connection broke");
  }
}
void receive_all(int fd, std::vector<char>& bytes) {
  for (std::size_t received = 0; received < bytes.size();) {
    const ssize_t some = recv(fd, bytes.data() + received, bytes.size() - received, MSG_DONTWAIT);
    if (some > 0) received += static_cast<std::size_t>(some);
    if (some == 0 || (some < 0 && errno != EAGAIN)) die_of("the connection ended");
  }
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  using namespace weft::benchmarks;
  if (argc < 5) die("usage: serve|ADDRESS PORT latency STEPS...");
  const bool is_server = std::string_view(argv[1]) == "serve";
  const Arguments arguments = parse_arguments(argc - 2, argv + 2);
  pin(is_server ? 1 : 0);
  const int fd = is_server ? accept_one(argv[2]) : connect_to(argv[1], argv[2]);
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  for (const Step& step : arguments.steps) {
    std::vector<char> bytes(step.size_bytes);
    Stopwatch stopwatch;
    for (std::int64_t i = -step.warmup; i < step.iterations; ++i) {
      if (i == 0) stopwatch = Stopwatch();
      if (!is_server) send_all(fd, bytes);
      receive_all(fd, bytes);
      if (is_server) send_all(fd, bytes);
    }
    if (!is_server) report(arguments.bench, step, stopwatch.elapsed_s());
  }
  close(fd);
  return 0;
}
