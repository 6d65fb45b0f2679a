#include "runtime/comm/connection.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "model/base/error.hpp"

namespace stratplan {
namespace {

constexpr std::int64_t header_bytes = sizeof(Connection::Header);
constexpr std::uint32_t collective_bit = 0x80000000U;

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Connection::Connection(int socket, int rank, int peer) : socket_(socket), rank_(rank), peer_(peer) {
  fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
}

Connection::~Connection() { ::close(socket_); }

void Connection::gone(const std::string& why) const {
  throw CommunicationError(fmt::format("rank {} has lost rank {}: {}", rank_, peer_, why));
}

void Connection::check(const Header& found, const Header& wanted) const {
  if (found.call != wanted.call)
    throw CommunicationError(
        fmt::format("rank {} calls another collective than rank {}", rank_, peer_));
  if (found.bytes != wanted.bytes)
    throw CommunicationError(fmt::format(
        "rank {} expects {} bytes{} from rank {}, which sends {} bytes", rank_, wanted.bytes,
        wanted.channel & collective_bit ? "" : fmt::format(" with tag {}", wanted.channel), peer_,
        found.bytes));
}

void Connection::send(const Header& header, const void* data) {
  outgoing_.push_back({header, static_cast<const std::byte*>(data), 0});
  write_some();
}

void Connection::receive(const Header& header, void* data) {
  expected_.push_back({header, static_cast<std::byte*>(data)});
  const auto early = std::find_if(early_.begin(), early_.end(), [&](const Early& frame) {
    return frame.complete && frame.header.channel == header.channel;
  });
  if (early != early_.end())
    deliver(early, std::prev(expected_.end()));
  else if (closed_)
    gone("that rank has ended");
}

void Connection::deliver(std::list<Early>::iterator early, std::vector<Expected>::iterator wanted) {
  check(early->header, wanted->header);
  std::copy(early->contents.begin(), early->contents.end(), wanted->data);
  spare_.splice(spare_.end(), early_, early);
  expected_.erase(wanted);
}

std::vector<Connection::Expected>::iterator Connection::waiting_for(std::uint32_t channel) {
  return std::find_if(expected_.begin(), expected_.end(),
                      [&](const Expected& wanted) { return wanted.header.channel == channel; });
}

void Connection::write_some() {
  while (!outgoing_.empty()) {
    Outgoing& frame = outgoing_.front();
    const bool in_header = frame.done < header_bytes;
    const std::byte* from = in_header
                                ? reinterpret_cast<const std::byte*>(&frame.header) + frame.done
                                : frame.data + (frame.done - header_bytes);
    const std::int64_t count =
        in_header ? header_bytes - frame.done : frame.header.bytes + header_bytes - frame.done;
    const auto sent =
        count > 0 ? ::send(socket_, from, static_cast<std::size_t>(count), MSG_NOSIGNAL) : 0;
    if (sent < 0 && would_block()) return;
    if (sent < 0) gone(std::strerror(errno));
    frame.done += sent;
    if (frame.done == header_bytes + frame.header.bytes) outgoing_.erase(outgoing_.begin());
  }
}

bool Connection::fill(std::byte* data, std::int64_t bytes, std::int64_t& done) {
  while (done < bytes) {
    const auto got = ::recv(socket_, data + done, static_cast<std::size_t>(bytes - done), 0);
    if (got < 0 && would_block()) return false;
    if (got <= 0) {
      closed_ = true;
      if (!idle() || header_done_ > 0)
        gone(got == 0 ? "that rank has ended" : std::strerror(errno));
      return false;
    }
    done += got;
  }
  return true;
}

void Connection::read_some() {
  while (!closed_) {
    if (header_done_ < header_bytes) {
      if (!fill(header_bytes_.data(), header_bytes, header_done_)) return;
      begin_frame();
    }
    if (!fill(into_, header_.bytes, done_)) return;
    end_frame();
  }
}

void Connection::begin_frame() {
  std::memcpy(&header_, header_bytes_.data(), sizeof header_);
  done_ = 0;
  const auto wanted = waiting_for(header_.channel);
  was_expected_ = wanted != expected_.end();
  if (was_expected_) {
    check(header_, wanted->header);
    taken_ = wanted - expected_.begin();
    into_ = wanted->data;
  } else {
    into_ = new_early().contents.data();
  }
}

/// Returns an entry of early_ with memory for the arriving frame, which receive() does not expect
/// yet.
Connection::Early& Connection::new_early() {
  if (spare_.empty()) spare_.emplace_back();
  early_.splice(early_.end(), spare_, spare_.begin());
  Early& early = early_.back();
  early.header = header_;
  early.contents.resize(static_cast<std::size_t>(header_.bytes));
  early.complete = false;
  return early;
}

void Connection::end_frame() {
  header_done_ = 0;
  if (was_expected_) {
    expected_.erase(expected_.begin() + taken_);
    return;
  }
  early_.back().complete = true;
  const auto wanted = waiting_for(header_.channel);  // receive() may expect the frame by now
  if (wanted != expected_.end()) deliver(std::prev(early_.end()), wanted);
}

}  // namespace stratplan
