#pragma once
// One socket between two ranks, as frames: a header that names what follows, then the bytes.
// Nothing here blocks.
#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

namespace stratplan {

class Connection {
 public:
  struct Header {
    /// a tag, or a group: frames of one channel arrive in the order in which they were sent
    std::uint32_t channel = 0;
    std::uint32_t call = 0;  ///< what both sides mean by it: a hash of the collective's arguments
    std::int64_t bytes = 0;
  };

  /// Takes the socket over.
  Connection(int socket, int rank, int peer);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  int socket() const { return socket_; }
  /// Puts a frame behind those that wait to be sent; `data` must stay until idle().
  void send(const Header& header, const void* data);
  /// The next frame of that channel goes there; `data` must stay until idle().
  void receive(const Header& header, void* data);
  bool wants_to_write() const { return !outgoing_.empty(); }
  /// The peer may still send.
  bool open() const { return !closed_; }
  /// All that was to be sent and received has been.
  bool idle() const { return outgoing_.empty() && expected_.empty(); }

  /// To be called when the socket may be written, or read. Throw CommunicationError.
  void write_some();
  void read_some();

 private:
  struct Outgoing {
    Header header;
    const std::byte* data;
    std::int64_t done;  ///< header included
  };
  struct Expected {
    Header header;
    std::byte* data;
  };
  struct Early {
    Header header;
    std::vector<std::byte> contents;
    bool complete = false;
  };
  [[noreturn]] void gone(const std::string& why) const;
  void check(const Header& found, const Header& wanted) const;
  void deliver(std::list<Early>::iterator early, std::vector<Expected>::iterator wanted);
  std::vector<Expected>::iterator waiting_for(std::uint32_t channel);
  Early& new_early();
  void begin_frame();
  void end_frame();
  /// Reads into `data` what is there; false if that was not all.
  bool fill(std::byte* data, std::int64_t bytes, std::int64_t& done);

  int socket_, rank_, peer_;
  bool closed_ = false;  ///< by the peer
  // Few at a time. What they lie in is kept, so that an iteration like the one before allocates
  // nothing.
  std::vector<Outgoing> outgoing_;
  std::vector<Expected> expected_;
  std::list<Early> early_;  ///< frames that nobody has asked for yet
  std::list<Early> spare_;  ///< have been asked for
  // The frame that is arriving.
  std::array<std::byte, sizeof(Header)> header_bytes_{};
  std::int64_t header_done_ = 0, done_ = 0;
  Header header_;
  std::byte* into_ = nullptr;
  /// the place among the expected ones, if it was expected: only later ones go before it does
  std::ptrdiff_t taken_ = 0;
  bool was_expected_ = false;
};

}  // namespace stratplan
